"""baton lock --cluster, holders and force-release in a PostgreSQL database."""
import json
import os

import pytest

from locks import BOUND, RUN, YIELDED, descriptor, ends, guardian_of

NO = 1


@pytest.fixture(autouse=True)
def store(tmp_path, database, monkeypatch):
    """Every test has a database of its own, a folder for locked files, and no fleet."""
    tmp_path.chmod(0o700)
    monkeypatch.setenv('BATON_STORE', database.info())
    monkeypatch.setenv('XDG_STATE_HOME', str(tmp_path / 'state'))
    monkeypatch.setenv('BATON_FLEET', '/nonexistent/fleet')


def running(lock, name):
    """One whose command runs."""
    process = lock('--cluster', name, *RUN)
    process.fence = int(process.stdout.readline())
    return process


def held(baton):
    result = baton('holders', '--cluster', '--json')
    assert (result.returncode, result.stderr) == (0, '')
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_one_command_at_a_time_runs_under_a_name(baton, lock):
    first = running(lock, 'x')
    holder, = held(baton)
    assert (holder['label'], holder['fence']) == ('x', first.fence)
    second = baton('lock', '--cluster', '-n', 'x', 'true')
    assert (second.returncode, second.stdout) == (YIELDED, '')
    assert first.communicate('over\n', timeout=BOUND) == ('over\n', '')
    third = baton('lock', '--cluster', 'x', 'sh', '-c', 'echo $BATON_FENCE; exit 3')
    assert third.returncode == 3
    assert int(third.stdout) > first.fence
    assert held(baton) == []


def test_a_guardian_that_is_killed_is_replaced_once_its_command_has_ended(baton, lock):
    first = running(lock, 'x')
    end = descriptor(first.pid)
    os.kill(guardian_of(first), 9)
    second = baton('lock', '--cluster', '-w', '60s', 'x', 'sh', '-c', 'echo $BATON_FENCE')
    assert second.returncode == 0, second.stderr
    assert int(second.stdout) > first.fence
    ends(end)


def test_a_name_is_taken_away_by_force(baton, lock):
    first = running(lock, 'x')
    result = baton('force-release', '--cluster', 'x')
    assert (result.returncode, result.stderr) == (0, '')
    assert baton('force-release', '--cluster', 'x').returncode == NO
    second = running(lock, 'y')
    assert [h['label'] for h in held(baton)] == ['y']
    assert first.pid != second.pid
