"""What `make install` leaves behind: a library, headers and a program that others can use."""
import os
import pathlib
import shutil
import subprocess

import pytest

PROGRAM = '''
#include <stdio.h>
#include <baton.h>

int main(void)
{
	struct baton_gate *gate = NULL;
	if (baton_gate_new(NULL, &gate) != BATON_OK)
		return 1;
	baton_gate_free(gate);
	puts(baton_version());
	return 0;
}
'''
MACROS = '''
#include <baton.h>
#include <baton/log.h>

void use(const struct baton_log *log);

void use(const struct baton_log *log)
{
	if (log)
		BATON_LOG(log, BATON_LOG_INFO, "one", baton_field_int("i", 1));
	else
		BATON_LOG(log, BATON_LOG_INFO, "two", baton_field_str("s", BATON_STR("a")),
		          baton_field_secret("t", BATON_STR("")));
}
'''
COMPILERS = {'c11': ['gcc', 'clang'], 'c++17': ['g++', 'clang++']}
VERSION = os.environ.get('BATON_VERSION', '')


@pytest.fixture(scope='module')
def installed(tmp_path_factory):
    """Where the build has been installed, staged below a folder of the test."""
    build = os.environ['BATON_BUILD']
    stage = tmp_path_factory.mktemp('stage')
    subprocess.run(['meson', 'install', '-C', build, '--no-rebuild', '--quiet'], check=True,
                   env={**os.environ, 'DESTDIR': str(stage)})
    return stage


def find(stage, name):
    found = list(stage.rglob(name))
    assert len(found) == 1, f'{name}: {found}'
    return found[0]


@pytest.fixture
def pkg_config(installed, run):
    """Asks pkg-config about the staged library; gives the words of its answer."""
    def ask(*arguments):
        folder = find(installed, 'baton.pc').parent
        prefix = find(installed, 'baton.h').parent.parent
        result = run('pkg-config', f'--define-variable=prefix={prefix}', *arguments, 'baton',
                     env={'PKG_CONFIG_PATH': str(folder)})
        assert result.returncode == 0, result.stderr
        return result.stdout.split()
    return ask


def test_a_program_links_the_shared_library(installed, pkg_config, run, write, tmp_path):
    source = write('program.c', PROGRAM)
    flags = pkg_config('--cflags', '--libs')
    result = run('cc', '-Werror', source, '-o', tmp_path / 'program', *flags)
    assert result.returncode == 0, result.stderr
    library = find(installed, 'libbaton.so').parent
    result = run(tmp_path / 'program', env={'LD_LIBRARY_PATH': str(library)})
    assert (result.returncode, result.stdout) == (0, VERSION + '\n')
    needed = run('readelf', '-d', tmp_path / 'program').stdout
    assert 'libbaton.so.0' in needed
    assert 'libsodium' not in needed


@pytest.mark.skipif(os.environ.get('BATON_STATIC') == 'no', reason='no static library with LTO')
def test_a_program_links_the_static_library(pkg_config, run, write, tmp_path):
    source = write('program.c', PROGRAM)
    flags = ['-l:libbaton.a' if flag == '-lbaton' else flag
             for flag in pkg_config('--static', '--cflags', '--libs')]
    result = run('cc', '-Werror', source, '-o', tmp_path / 'program', *flags)
    assert result.returncode == 0, result.stderr
    assert 'libbaton' not in run('readelf', '-d', tmp_path / 'program').stdout
    result = run(tmp_path / 'program')
    assert (result.returncode, result.stdout) == (0, VERSION + '\n')


def test_pkg_config_knows_the_version(pkg_config):
    assert pkg_config('--modversion') == [VERSION]


def public_headers():
    include = pathlib.Path(__file__).parent.parent.parent / 'include'
    names = [h.relative_to(include) for h in sorted(include.rglob('*.h'))]
    return [str(n) for n in names] + ['baton/version.h']


@pytest.mark.parametrize('header', public_headers())
def test_every_header_is_installed(installed, header):
    find(installed, f'include/{header}')


@pytest.fixture
def compile_as(installed, run, write):
    """Compiles a text with every compiler for a standard, and takes no warning."""
    def compile_text(standard, text):
        compilers = [c for c in COMPILERS[standard] if shutil.which(c)]
        if not compilers:
            pytest.skip(f'no compiler for {standard}: {", ".join(COMPILERS[standard])}')
        include = find(installed, 'baton.h').parent
        options = ['-Wall', '-Wextra', '-Werror', '-fsyntax-only', f'-std={standard}',
                   '-I', include]
        if standard == 'c11':
            options.append('-Wpedantic')
        source = write('text.c' if standard == 'c11' else 'text.cc', text)
        for compiler in compilers:
            result = run(compiler, *options, source)
            assert result.returncode == 0, f'{compiler}:\n{text}\n{result.stderr}'
    return compile_text


@pytest.mark.parametrize('standard', COMPILERS)
def test_each_header_compiles_alone(compile_as, standard):
    for header in public_headers():
        compile_as(standard, f'#include <{header}>\n' * 2 + 'extern int x;\n')


@pytest.mark.parametrize('standard', COMPILERS)
def test_the_macros_can_be_used(compile_as, standard):
    compile_as(standard, MACROS)


def test_the_program_runs_where_it_was_installed(installed, run):
    result = run(find(installed, 'bin/baton'), '--version', env={'LD_LIBRARY_PATH': ''})
    assert (result.returncode, result.stdout) == (0, f'baton {VERSION}\n')


def test_the_manual_is_installed(installed):
    find(installed, 'man1/baton.1')
    find(installed, 'man1/baton-lock.1')


def test_the_helper_of_runners_is_installed_and_does_nothing_by_itself(installed, run):
    helper = find(installed, 'baton-guardian')
    assert helper.parent.name == 'libexec'
    result = run(helper)
    assert (result.returncode, result.stdout) == (64, '')
    assert 'started by runners' in result.stderr
    result = run(helper, '--beside-runner')
    assert result.returncode == 64
