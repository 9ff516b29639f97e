"""tools/pytest-tap: every way in which a test of pytest can end, as TAP."""

TESTS = '''
import pytest

@pytest.fixture
def broken():
    raise RuntimeError('set-up')

@pytest.fixture
def leaking():
    yield
    raise RuntimeError('tear-down')

def test_good():
    print('noise\\n1..7\\nok 9')

def test_bad():
    assert 1 == 2

def test_skipped():
    pytest.skip('not here')

def test_without_set_up(broken):
    pass

def test_without_tear_down(leaking):
    pass

@pytest.mark.parametrize('word', ['a b', 'c # SKIP d'])
def test_values(word):
    pass
'''


def test_every_outcome_has_its_line(run, write, tmp_path):
    write('test_x.py', TESTS)
    result = run('tools/pytest-tap', tmp_path)
    assert result.stdout.splitlines() == [
        '1..7',
        'ok 1 - test_good',
        'not ok 2 - test_bad',
        'ok 3 - test_skipped # SKIP not here',
        'not ok 4 - test_without_set_up',
        'not ok 5 - test_without_tear_down',
        'ok 6 - test_values[a b]',
        'ok 7 - test_values[c  SKIP d]',
    ]
    assert 'assert 1 == 2' in result.stderr
    assert result.returncode == 1


def test_success_is_status_0(run, write, tmp_path):
    write('test_x.py', 'def test_good():\n    pass\n')
    result = run('tools/pytest-tap', tmp_path)
    assert (result.returncode, result.stdout) == (0, '1..1\nok 1 - test_good\n')


def test_a_file_that_cannot_be_read_fails(run, write, tmp_path):
    write('test_x.py', 'def test_good():\n    pass\n')
    write('test_y.py', 'def test_bad(:\n')
    result = run('tools/pytest-tap', tmp_path)
    assert result.returncode != 0
    assert 'ok 1' not in result.stdout


def test_a_process_that_dies_leaves_its_plan_unfulfilled(run, write, tmp_path):
    write('test_x.py', 'import os\ndef test_a():\n    pass\ndef test_b():\n    os._exit(3)\n')
    result = run('tools/pytest-tap', tmp_path)
    assert (result.returncode, result.stdout) == (3, '1..2\nok 1 - test_a\n')


def test_no_tests_are_not_success(run, tmp_path):
    assert run('tools/pytest-tap', tmp_path).returncode != 0
