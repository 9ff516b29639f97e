"""tools/run-fuzz: every target is run and counted. With stand-ins for the builders and targets."""
import os
import shutil

import pytest

GOOD = '#!/bin/sh\necho "$*" >>log\necho "stat::number_of_executed_units: 12"\n'


@pytest.fixture
def run_fuzz(run, root, write, tmp_path):
    shutil.copytree(root / 'tools', tmp_path / 'tools')
    for name in ('meson', 'ninja'):
        write(f'bin/{name}', '#!/bin/sh\nexit "${BUILD_STATUS:-0}"\n', 0o755)
    for name in ('one', 'two'):
        write(f'tests/fuzz/{name}.c', '')
        write(f'build-asan/tests/fuzz/fuzz-{name}', GOOD, 0o755)

    def call(*arguments, **environment):
        return run(tmp_path / 'tools/run-fuzz', *arguments, cwd=tmp_path,
                   env={'PATH': f'{tmp_path}/bin:{os.environ["PATH"]}', **environment})
    return call


def last(result):
    return result.stdout.splitlines()[-1]


def test_every_target_runs_for_the_time_given(run_fuzz, tmp_path):
    result = run_fuzz('7')
    assert (result.returncode, last(result)) == (0, '2 passed, 0 failed')
    assert 'one: 12 inputs in 7 s' in result.stdout
    assert (tmp_path / 'log').read_text().count('-max_total_time=7') == 2


def test_a_target_runs_as_the_tests_under_asan_do(run_fuzz, write, tmp_path):
    write('bin/setarch', '#!/bin/sh\nshift\nUNDER=setarch exec "$@"\n', 0o755)
    write('bin/meson', '#!/bin/sh\necho "$CC $*" >>asked\n', 0o755)
    write('build-asan/tests/fuzz/fuzz-one',
          GOOD + 'echo "$UNDER $ASAN_OPTIONS $UBSAN_OPTIONS" >>seen\n', 0o755)
    assert run_fuzz('7', 'one', ASAN_OPTIONS='mine=1').returncode == 0
    seen = (tmp_path / 'seen').read_text()
    assert seen.startswith('setarch ')
    for option in ('detect_stack_use_after_return=1', 'mine=1', 'print_stacktrace=1'):
        assert option in seen
    asked = (tmp_path / 'asked').read_text()
    for word in ('clang', '-Dwerror=true', '-Dfuzz=true', '-Db_sanitize=address,undefined'):
        assert word in asked


def test_a_target_can_be_chosen(run_fuzz):
    assert last(run_fuzz('7', 'two')) == '1 passed, 0 failed'


@pytest.mark.parametrize('target', ['#!/bin/sh\necho what broke\nexit 77\n', '#!/bin/sh\nexit 0\n'])
def test_a_target_that_breaks_or_does_nothing_fails_and_the_others_run(run_fuzz, write, target):
    write('build-asan/tests/fuzz/fuzz-one', target, 0o755)
    result = run_fuzz('7')
    assert (result.returncode, last(result)) == (1, '1 passed, 1 failed')
    assert 'one: FAILED' in result.stdout
    assert ('what broke' in result.stdout) == ('what broke' in target)


def test_a_target_that_is_not_there_fails(run_fuzz):
    assert last(run_fuzz('7', 'three')) == '0 passed, 1 failed'


def test_a_build_that_fails_is_a_failure(run_fuzz):
    assert run_fuzz('7', BUILD_STATUS='1').returncode == 1


@pytest.mark.parametrize('arguments', [[], ['soon'], ['-1']])
def test_a_time_that_is_no_number_is_refused(run_fuzz, arguments):
    assert run_fuzz(*arguments).returncode == 64
