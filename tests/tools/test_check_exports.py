"""tools/check-exports and tools/make-static, on small libraries."""
import subprocess

import pytest

HEADER = """
/* BATON_API in a comment is nothing. */
#define BATON_API __attribute__((visibility("default")))
BATON_API int baton_one(void);
BATON_API const char *
baton_two(int (*call)(void *arg), void *arg);
"""
SOURCE = """
#include "baton.h"
int helper(void);
int baton_one(void) { return helper(); }
const char *baton_two(int (*call)(void *), void *arg) { return call(arg) ? "" : "x"; }
"""
HELPER = 'int helper(void);\nint helper(void) { return 1; }\n'
MAP = 'BATON_0.1 {\nglobal:\n\tbaton_one; /* first */\n\tbaton_two;\nlocal:\n\t*;\n};\n'


def cc(*arguments):
    subprocess.run(['cc', *map(str, arguments)], check=True)


@pytest.fixture
def libraries(write, tmp_path, run):
    """Builds both libraries from a header, two sources and a version script."""
    def make(header=HEADER, source=SOURCE, version_script=MAP, options=()):
        write('include/baton.h', header)
        script = write('lib.map', version_script)
        archives = []
        for name, text in (('main', source), ('helper', HELPER)):
            c_file = write(f'{name}.c', text)
            cc(*options, '-fPIC', '-fvisibility=hidden', '-I', tmp_path / 'include', '-c', c_file,
               '-o', tmp_path / f'{name}.o')
            archive = tmp_path / f'{name}.a'
            subprocess.run(['ar', 'rcs', archive, tmp_path / f'{name}.o'], check=True)
            archives.append(archive)
        cc('-shared', f'-Wl,--version-script={script}', '-o', tmp_path / 'lib.so',
           tmp_path / 'main.o', tmp_path / 'helper.o')
        output = tmp_path / 'lib.a'
        result = run('tools/make-static', output, 'objcopy', 'ar', 'cc', '--', *archives)
        assert result.returncode == 0, result.stderr
        return check(tmp_path, run)
    return make


def check(folder, run):
    return run('tools/check-exports', '--map', folder / 'lib.map', '--include', folder / 'include',
               '--shared', folder / 'lib.so', '--static', folder / 'lib.a')


def test_the_same_names_everywhere_pass(libraries):
    result = libraries()
    assert result.returncode == 0, result.stdout
    assert result.stdout == '2 public names, the same everywhere\n'


def test_link_time_optimisation_leaves_no_inner_name_in_the_static_library(libraries, run):
    if 'clang' in run('cc', '--version').stdout:
        pytest.skip('only gcc makes a static library with LTO')
    result = libraries(options=['-flto', '-O2'])
    assert result.returncode == 0, result.stdout
    assert result.stdout == '2 public names, the same everywhere\n'


@pytest.mark.parametrize('name', ['lib.map', 'lib.so', 'lib.a'])
def test_a_file_that_is_not_there_is_said_in_one_line(libraries, run, tmp_path, name):
    libraries()
    (tmp_path / name).unlink()
    result = check(tmp_path, run)
    assert result.returncode == 1
    assert result.stderr.startswith(f'{tmp_path / name}: ')
    assert result.stderr.count('\n') == 1


@pytest.mark.parametrize('name', ['lib.so', 'lib.a'])
def test_a_file_that_is_no_library_is_said_in_one_line(libraries, run, write, tmp_path, name):
    libraries()
    write(name, 'no library\n')
    result = check(tmp_path, run)
    assert (result.returncode, result.stdout) == (1, '')
    assert result.stderr == f'{tmp_path / name}: no library that nm can read\n'


def test_a_name_missing_from_the_map_is_found_there_and_in_the_library(libraries):
    result = libraries(version_script=MAP.replace('baton_two;', ''))
    assert result.returncode == 1
    assert 'baton_two: declared in the headers, but not in' in result.stdout
    assert result.stdout.count('lib.map') == 1
    assert result.stdout.count('lib.so') == 1


def test_a_name_that_only_the_map_has_is_found(libraries):
    result = libraries(version_script=MAP.replace('baton_two;', 'baton_two;\n\tbaton_three;'))
    assert result.returncode == 1
    assert 'baton_three: in ' in result.stdout


def test_a_function_that_nobody_wrote_is_found(libraries):
    header = HEADER + 'BATON_API void baton_three(void);\n'
    result = libraries(header, version_script=MAP.replace('baton_two;', 'baton_two;\nbaton_three;'))
    assert result.returncode == 1
    assert 'lib.map' not in result.stdout
    assert result.stdout.count('baton_three: declared in the headers, but not in') == 2


def test_a_symbol_that_no_header_declares_is_found(libraries):
    source = SOURCE + 'BATON_API void baton_extra(void);\nvoid baton_extra(void) {}\n'
    result = libraries(source=source, version_script=MAP.replace('baton_one', 'baton_*'))
    assert result.returncode == 1
    assert result.stdout.count('baton_extra: in ') == 2


def test_a_public_name_without_the_prefix_is_found(libraries):
    header = HEADER + 'BATON_API int other(void);\n'
    source = SOURCE + 'int other(void) { return 2; }\n'
    result = libraries(header, source, MAP.replace('baton_two;', 'baton_two;\nother;'))
    assert result.returncode == 1
    assert result.stdout == 'other: a public name begins with baton_\n'


def test_a_map_without_local_names_is_refused(libraries):
    result = libraries(version_script='BATON_0.1 { global: baton_one; baton_two; };')
    assert result.returncode == 1
    assert 'not of the form' in result.stderr


def test_headers_without_public_names_are_an_error(run, write, tmp_path):
    write('include/x.h', '')
    script = write('lib.map', MAP)
    result = run('tools/check-exports', '--map', script, '--include', tmp_path / 'include')
    assert result.returncode == 1
    assert 'no BATON_API in any header' in result.stdout


def test_the_static_library_gives_up_no_name_that_a_program_may_want(libraries, write, tmp_path):
    libraries()
    program = write('program.c', SOURCE.split('int helper')[0] + """
int helper(void);
int helper(void) { return 40; }
int main(void) { return helper() + baton_one() == 41 ? 0 : 1; }
""")
    cc('-I', tmp_path / 'include', program, tmp_path / 'lib.a', '-o', tmp_path / 'program')
    assert subprocess.run([tmp_path / 'program'], check=False).returncode == 0
