"""tools/check-style, on trees with one bad file each."""
import json
import os
import shutil

import pytest

GOOD = '''/* A sum. */
#include "sum.h"

int sum(int a, int b)
{
	return a + b;
}
'''
HEADER = '''/* A sum. */
#ifndef SUM_H
#define SUM_H

int sum(int a, int b);

#endif
'''
INLINE = '''static inline int is_null(char *s)
{
	if (s = 0)
		return 1;
	return 0;
}

'''


@pytest.fixture
def tree(root, write, tmp_path):
    """A small tree in which everything is as it should be."""
    for name in ('.clang-format', '.clang-tidy'):
        shutil.copy(root / name, tmp_path / name)
    write('src/base/sum.c', GOOD)
    write('src/base/sum.h', HEADER)
    write('tools/setup', '#!/bin/sh\ntrue\n')
    write('tools/check', '#!/usr/bin/python3\nprint()\n')
    write('build/compile_commands.json', json.dumps([
        {'directory': str(tmp_path / 'build'), 'file': '../src/base/sum.c',
         'command': 'cc -I../src -DX=1 -c ../src/base/sum.c'}]))
    return tmp_path


@pytest.fixture
def check(run, tree):
    def call(*steps):
        return run('tools/check-style', '--root', tree, '--build', tree / 'build', *steps)
    return call


def test_a_tree_that_is_as_it_should_be_passes_every_step(check):
    result = check()
    assert result.returncode == 0, result.stdout
    assert [x.split(':')[0] for x in result.stdout.splitlines()] == \
        ['text', 'format', 'tidy', 'cppcheck', 'scripts']


@pytest.mark.parametrize('name, content, complaint', [
    ('src/base/x.h', '/* ' + 'x' * 95 + ' */\n', 'src/base/x.h:1: 101 columns, 100 are allowed'),
    ('src/base/x.h', '\t' * 12 + 'int a;\n', 'src/base/x.h:1: 102 columns, 100 are allowed'),
    ('src/base/x.h.in', 'x' * 101 + '\n', 'src/base/x.h.in:1: 101 columns, 100 are allowed'),
    ('docs/x.md', 'a \nb\n', 'docs/x.md:1: blanks at the end of the line'),
    ('src/base/meson.build', "x = 1\t\n", 'src/base/meson.build:1: blanks at the end of the line'),
    ('src/base/x.h', 'int a;\r\n', 'src/base/x.h:1: blanks at the end of the line'),
    ('src/base/x.h', 'int a;', 'src/base/x.h: the last line has no end'),
])
def test_text_is_checked(check, write, name, content, complaint):
    write(name, content)
    result = check('text')
    assert result.returncode == 1
    assert complaint in result.stdout.splitlines()


def test_exactly_100_columns_are_allowed(check, write):
    write('src/base/x.h', '/* ' + 'x' * 94 + ' */\n')
    assert check('text').returncode == 0


def test_a_badly_formatted_file_is_named(check, write):
    write('src/base/x.c', 'int  x(void){return 1;}\n')
    result = check('format')
    assert result.returncode == 1
    assert 'src/base/x.c:1' in result.stdout
    assert 'format: 3 files, 1 complaints' in result.stdout


def test_a_badly_formatted_header_is_named(check, write):
    write('include/baton/x.h', 'int  x( void );\n')
    assert check('format').returncode == 1


@pytest.mark.parametrize('name', ['src/base/x.c', 'tests/unit/base/x.c', 'examples/x.c'])
def test_clang_tidy_sees_every_source_even_one_that_is_not_built(check, write, monkeypatch, name):
    monkeypatch.setenv('BATON_SOAK', '1')
    write(name, 'int f(char *s);\nint f(char *s)\n{\n\tif (s = 0)\n\t\treturn 1;\n\treturn 0;\n}\n')
    result = check('tidy')
    assert result.returncode == 1
    assert name in result.stdout


def test_clang_tidy_finds_headers_of_others(check, write, tree):
    write('others/other.h', 'typedef int other;\n')
    write('src/base/sum.c', '#include <other.h>\n\nother sum(void);\nother sum(void)\n{\n'
                            '\treturn 1;\n}\n')
    write('build/compile_commands.json', json.dumps([
        {'directory': str(tree / 'build'), 'file': '../src/base/sum.c',
         'command': f'cc -I../src -isystem{tree}/others -c ../src/base/sum.c'}]))
    result = check('tidy', 'cppcheck')
    assert result.returncode == 0, result.stdout


def test_clang_tidy_looks_at_tests_in_long_runs_only(check, write, monkeypatch):
    monkeypatch.delenv('BATON_SOAK', raising=False)
    write('tests/unit/base/x.c', 'int f(int x);\nint f(int x)\n{\n\treturn (x = 0);\n}\n')
    assert 'tidy: 1 files' in check('tidy').stdout


def test_clang_tidy_complains_about_headers_of_the_tree(check, write):
    write('src/base/sum.h', HEADER.replace('int sum', INLINE + 'int sum'))
    result = check('tidy')
    assert result.returncode == 1
    assert 'sum.h' in result.stdout


def test_a_function_that_is_too_long_is_named(check, write):
    body = '\tx++;\n' * 90
    write('src/base/x.c', f'int f(int x);\nint f(int x)\n{{\n{body}\treturn x;\n}}\n')
    result = check('tidy')
    assert result.returncode == 1
    assert 'readability-function-size' in result.stdout


def test_cppcheck_complains(check, write):
    write('src/base/x.c', 'int f(void);\nint f(void)\n{\n\tint a[2];\n\ta[2] = 1;\n'
                          '\treturn a[0];\n}\n')
    result = check('cppcheck')
    assert result.returncode == 1
    assert 'src/base/x.c:5' in result.stdout


@pytest.mark.parametrize('name, content', [
    ('tools/x', '#!/bin/sh\nif true; then\n'),
    ('.ci/x', '#!/usr/bin/env bash\nfor\n'),
    ('tools/x', '#!/usr/bin/python3\ndef (\n'),
    ('tests/tools/x.py', 'def (\n'),
])
def test_a_script_that_cannot_be_read_is_named(check, write, name, content):
    write(name, content)
    result = check('scripts')
    assert result.returncode == 1
    assert name in result.stdout


@pytest.mark.parametrize('step', ['text', 'format', 'tidy', 'cppcheck', 'scripts'])
def test_a_step_without_files_is_an_error(run, tmp_path, step):
    (tmp_path / 'empty').mkdir()
    result = run('tools/check-style', '--root', tmp_path / 'empty', '--build', tmp_path, step)
    assert result.returncode == 1


def test_clang_tidy_without_a_build_directory_is_an_error(check, tree):
    (tree / 'build/compile_commands.json').unlink()
    result = check('tidy')
    assert result.returncode == 1
    assert 'set it up' in result.stdout


def test_an_unknown_step_is_refused(check):
    assert check('fromat').returncode == 2


class TestMemory:
    """What was clean is not looked at again, until something that matters has changed."""

    @pytest.fixture
    def linter(self, write, tmp_path, monkeypatch):
        """A clang-tidy that is always content, and writes down when it is called."""
        write('bin/clang-tidy', f'#!/bin/sh\ntest "$1" = --version && exit\n'
                                f'echo call >>{tmp_path}/log\nexit ${{TIDY_STATUS:-0}}\n', 0o755)
        monkeypatch.setenv('PATH', f'{tmp_path}/bin:{os.environ["PATH"]}')
        log = tmp_path / 'log'
        return lambda: len(log.read_text().splitlines()) if log.exists() else 0

    def test_a_clean_file_is_looked_at_once(self, check, linter):
        check('tidy')
        check('tidy')
        assert linter() == 1

    @pytest.mark.parametrize('name', ['src/base/sum.c', 'src/base/sum.h', '.clang-tidy'])
    def test_a_change_that_matters_is_looked_at(self, check, linter, tree, name):
        check('tidy')
        with (tree / name).open('a') as file:
            file.write('\n')
        check('tidy')
        assert linter() == 2

    def test_a_change_of_the_options_is_looked_at(self, check, linter, tree):
        check('tidy')
        database = tree / 'build/compile_commands.json'
        database.write_text(database.read_text().replace('-DX=1', '-DX=2'))
        check('tidy')
        assert linter() == 2

    def test_a_change_elsewhere_is_not(self, check, linter, write):
        check('tidy')
        write('src/base/other.h', '')
        check('tidy')
        assert linter() == 1

    def test_a_complaint_is_never_remembered(self, check, linter, write, monkeypatch):
        check('tidy')
        write('src/base/sum.c', GOOD + '\n')
        monkeypatch.setenv('TIDY_STATUS', '1')
        assert check('tidy').returncode == 1
        assert check('tidy').returncode == 1
        assert linter() == 3


def test_a_file_that_is_not_utf_8_ends_no_step(check, tree):
    (tree / 'src/base/sum.c').write_bytes(b'/* \xe9 */\n' + GOOD.encode() + b'int  x;\n')
    (tree / 'tools/check').write_bytes(b'#!/usr/bin/python3\nprint("\xe9")\n')
    result = check()
    assert (result.returncode, result.stderr) == (1, '')
    assert 'tools/check:1: ' in result.stdout or 'tools/check:2: ' in result.stdout
    assert len([x for x in result.stdout.splitlines() if x.endswith(' complaints')]) == 5
