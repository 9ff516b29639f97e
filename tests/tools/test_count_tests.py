"""tools/count-tests, on logs of runs that ended in every way there is."""
import json

import pytest


@pytest.fixture
def count(run, write, tmp_path):
    """Counts a build directory whose log has the given runs."""
    def count_runs(*runs):
        filled = [{'name': f'program {i}', 'stdout': '', 'result': 'OK', 'returncode': 0,
                   'command': ['program'], **r} for i, r in enumerate(runs)]
        write('build/meson-logs/testlog.json', ''.join(json.dumps(r) + '\n' for r in filled))
        return run('tools/count-tests', 'build', cwd=tmp_path)
    return count_runs


def last(result):
    return result.stdout.splitlines()[-1]


TAP = '1..3\nok 1 - a\nok 2 - b\nok 3 - c\n'
KILLED = {'result': 'ERROR', 'returncode': -6}
CASES = [
    ('every test counts', {'stdout': TAP}, '3 passed, 0 failed', 0),
    ('a program without TAP is one test', {}, '1 passed, 0 failed', 0),
    ('the plan may come last', {'stdout': 'ok 1\nok 2\n1..2\n'}, '2 passed, 0 failed', 0),
    ('comments and noise are not tests', {'stdout': 'okay\n# ok\n' + TAP + 'not okay\n'},
     '3 passed, 0 failed', 0),
    ('a failing test', {'stdout': TAP.replace('ok 2', 'not ok 2'), 'result': 'ERROR',
                        'returncode': 1}, '2 passed, 1 failed', 1),
    ('a failing test with status 0', {'stdout': TAP.replace('ok 2', 'not ok 2'), 'result': 'FAIL'},
     '2 passed, 1 failed', 1),
    ('killed in the first test', {'stdout': '1..3\n', **KILLED}, '0 passed, 3 failed', 1),
    ('killed in the last test', {'stdout': '1..3\nok 1 - a\nok 2 - b\n', **KILLED},
     '2 passed, 1 failed', 1),
    ('killed before the plan', {**KILLED}, '0 passed, 1 failed', 1),
    ('killed after the last test', {'stdout': TAP, **KILLED}, '3 passed, 1 failed', 1),
    ('all well but the status', {'stdout': TAP, 'result': 'ERROR', 'returncode': 23},
     '3 passed, 1 failed', 1),
    ('out of time', {'stdout': '1..3\nok 1 - a\n', 'result': 'TIMEOUT', 'returncode': -15},
     '1 passed, 2 failed', 1),
    ('out of time after the last test', {'stdout': TAP, 'result': 'TIMEOUT', 'returncode': 0},
     '3 passed, 1 failed', 1),
    ('out of time without TAP', {'result': 'TIMEOUT', 'returncode': -15}, '0 passed, 1 failed', 1),
    ('fewer tests than announced, status 0', {'stdout': '1..3\nok 1 - a\n'},
     '1 passed, 2 failed', 1),
    ('more tests than announced', {'stdout': '1..1\nok 1\nok 2\n'}, '2 passed, 1 failed', 1),
    ('no plan', {'stdout': 'ok 1\nok 2\n'}, '2 passed, 1 failed', 1),
    ('an empty plan', {'stdout': '1..0\n', 'result': 'SKIP'}, '0 passed, 1 failed', 1),
    ('a TAP program that says nothing', {'result': 'SKIP'}, '0 passed, 1 failed', 1),
    ('a program that fails', {'result': 'FAIL', 'returncode': 1}, '0 passed, 1 failed', 1),
    ('a skipped test', {'stdout': '1..2\nok 1 - a\nok 2 - b # SKIP no network\n'},
     '1 passed, 0 failed', 0),
    ('a skipped test as cmocka says it', {'stdout': '1..2\nok 1 - a\nnot ok 2 # SKIP b\n'},
     '1 passed, 0 failed', 0),
    ('nothing but skipped tests', {'stdout': '1..0 # SKIP not here\n', 'result': 'SKIP'},
     '0 passed, 0 failed', 1),
    ('a skipped program', {'result': 'SKIP', 'returncode': 77}, '0 passed, 0 failed', 1),
    ('a group whose set-up failed', {'stdout': '1..3\nnot ok 0 - group\n', 'result': 'ERROR',
                                     'returncode': 1}, '0 passed, 3 failed', 1),
]


@pytest.mark.parametrize('one, line, status', [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_a_program_is_counted(count, one, line, status):
    result = count(one)
    assert last(result) == line
    assert result.returncode == status


def test_what_a_failing_program_wrote_is_shown(count):
    result = count({'stdout': '1..1\nnot ok 1 - sum\n# 3 != 4\n', 'stderr': 'a reason',
                    'result': 'ERROR', 'returncode': 1})
    assert '# 3 != 4' in result.stdout
    assert 'a reason' in result.stdout
    assert 'FAILED: build: program 0: sum' in result.stdout


def test_what_a_passing_program_reports_is_shown_and_nothing_else_of_it(count):
    result = count({'stdout': '1..1\n# noise\n# report:    12  crashes\n# report: 3 lost\n'
                              'ok 1 - a\n'})
    assert result.stdout == ('---- build: program 0 reports\n   12  crashes\n3 lost\n'
                             'build has 1 passed, 0 failed\n1 passed, 0 failed\n')


def test_the_reason_of_a_skipped_test_is_shown(count):
    result = count({'stdout': '1..2\nok 1 - a\nok 2 - b # SKIP no network\n'})
    assert 'skipped: build: program 0: b: no network' in result.stdout
    assert 'build has 1 passed, 0 failed, 1 skipped' in result.stdout


def test_programs_and_directories_add_up(run, write, tmp_path):
    one = {'name': 'x', 'result': 'OK', 'returncode': 0, 'command': ['x']}
    write('a/meson-logs/testlog.json', json.dumps({**one, 'stdout': TAP}) + '\n' + json.dumps(one))
    write('b/meson-logs/testlog.json', json.dumps({**one, 'stdout': TAP, 'returncode': -9}))
    result = run('tools/count-tests', tmp_path / 'a', tmp_path / 'b')
    assert last(result) == '7 passed, 1 failed'
    assert f'{tmp_path}/a has 4 passed, 0 failed' in result.stdout
    assert result.returncode == 1


def test_a_directory_that_did_not_build_is_a_failure(run, write, tmp_path):
    one = {'name': 'x', 'result': 'OK', 'returncode': 0, 'command': ['x'], 'stdout': ''}
    write('a/meson-logs/testlog.json', json.dumps(one))
    result = run('tools/count-tests', tmp_path / 'a', tmp_path / 'b')
    assert last(result) == '1 passed, 1 failed'
    assert result.returncode == 1


@pytest.mark.parametrize('log', ['', '{"name": '])
def test_an_empty_or_broken_log_is_a_failure(run, write, tmp_path, log):
    write('a/meson-logs/testlog.json', log)
    result = run('tools/count-tests', tmp_path / 'a')
    assert last(result) == '0 passed, 1 failed'
    assert result.returncode == 1


@pytest.mark.parametrize('record, complaint', [
    ({'name': 'x', 'result': 'OK'}, 'build: x: has no exit status'),
    ({'name': 'x', 'result': 'ERROR', 'returncode': None}, 'build: x: has no exit status'),
    ({'name': 'x', 'result': 'OK', 'stdout': '1..0\n'}, 'build: x: has no exit status'),
    ({'returncode': 0}, 'cannot be read: a record without a name'),
    ([], 'cannot be read: a record without a name'),
])
def test_a_record_that_lacks_something_is_a_failure(run, write, tmp_path, record, complaint):
    write('build/meson-logs/testlog.json', json.dumps(record) + '\n')
    result = run('tools/count-tests', 'build', cwd=tmp_path)
    assert (result.returncode, result.stderr) == (1, '')
    assert complaint in result.stdout
    assert last(result) == '0 passed, 1 failed'
