"""The Makefile, with stand-ins for what it calls."""
import os
import shutil

import pytest


@pytest.fixture
def make(run, root, write, tmp_path):
    shutil.copy(root / 'Makefile', tmp_path / 'Makefile')
    for name in ('tools/configure', 'tools/setup', 'bin/ninja', 'bin/ldconfig'):
        write(name, '#!/bin/sh\n', 0o755)
    write('bin/meson', f'#!/bin/sh\necho "$DESTDIR" >{tmp_path}/destdir\n', 0o755)

    def call(*arguments):
        # A make that runs these tests must not tell this one what to do.
        clean = {'MAKEFLAGS': '', 'MAKELEVEL': '', 'MFLAGS': '', 'DESTDIR': ''}
        return run('make', *arguments, cwd=tmp_path,
                   env={'PATH': f'{tmp_path}/bin:{os.environ["PATH"]}', **clean})
    return call


@pytest.mark.parametrize('given, meant', [
    ('stage', '{here}/stage'), ('a stage/two', '{here}/a stage/two'), ('/tmp/stage', '/tmp/stage'),
    ('', ''),
])
def test_a_relative_destdir_lies_where_make_was_called(make, tmp_path, given, meant):
    result = make('install', f'DESTDIR={given}')
    assert result.returncode == 0, result.stderr
    assert (tmp_path / 'destdir').read_text() == meant.format(here=tmp_path) + '\n'


@pytest.mark.parametrize('target', ['test', 'asan', 'tsan', 'soak'])
def test_what_make_prints_about_failing_tests_ends_with_the_count(make, write, target):
    write('tools/run-tests', '#!/bin/sh\necho 1 passed, 2 failed\nexit 1\n', 0o755)
    result = make(target)
    assert result.returncode == 2
    assert result.stdout == '1 passed, 2 failed\n'
    assert 'Error 1' in result.stderr


def test_make_without_meson_says_so(make, root, tmp_path):
    shutil.copy(root / 'tools/configure', tmp_path / 'tools/configure')
    (tmp_path / 'bin/meson').unlink()
    # The rest of what is on the PATH is of no use here, and may have a meson.
    for tool in ('make', 'sh'):
        (tmp_path / 'bin' / tool).symlink_to(shutil.which(tool))
    result = make('all', f'PATH={tmp_path}/bin')
    assert result.returncode == 2
    assert result.stderr.splitlines()[0] == \
        'tools/configure: meson is missing; tools/setup run installs it'
