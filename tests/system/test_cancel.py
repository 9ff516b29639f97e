"""Cancelling what a runner works on, with the real program."""
import pytest

from handlers import PATIENCE, Pipe


@pytest.fixture
def pipe(tmp_path):
    return Pipe(tmp_path / 'pipe')


def test_a_command_is_asked_to_stop_and_its_job_does_not_come_back(shop, pipe):
    job = shop.put('mail', 'x')
    script = f'trap "echo asked > {pipe.path}; exit 1" TERM; echo on > {pipe.path}; ' \
             'while :; do sleep 1000 & wait; done'
    runner = shop.start('work', 'mail', '--grace', '100s', '-j', '1', '--', 'sh', '-c', script)
    assert pipe.line() == 'on'
    assert shop.ok('cancel', job) == f'{job} told\n'
    assert pipe.line() == 'asked'
    shop.put('mail', 'y')
    assert pipe.line() == 'on'      # it has ended, and the runner goes on
    assert shop.run('show', job).returncode == 1
    runner.kill()


def test_a_command_that_does_not_stop_is_killed(shop, pipe):
    job = shop.put('mail', 'x')
    script = f'trap "" TERM; echo on > {pipe.path}; while :; do sleep 1000; done'
    runner = shop.start('work', 'mail', '--grace', '10ms', '-j', '1', '--', 'sh', '-c', script)
    assert pipe.line() == 'on'
    shop.ok('cancel', job)
    shop.put('mail', 'y')
    assert pipe.line() == 'on'
    assert shop.run('show', job).returncode == 1
    runner.kill()


def test_a_worker_is_told_and_answers(shop, pipe):
    job = shop.put('mail', 'x')
    script = 'import json, socket; s = socket.socket(fileno=3).makefile("rw")\n' \
             'claim = json.loads(s.readline())\n' \
             f'print("on", file=open("{pipe.path}", "w"), flush=True)\n' \
             'told = json.loads(s.readline())\n' \
             'assert told == {"cancel": claim["claim"]}, told\n' \
             's.write(json.dumps({"claim": claim["claim"], "ok": False, "error": "stopped"})' \
             ' + "\\n")\n' \
             's.flush(); s.readline()'
    runner = shop.start('work', 'mail', '--stream', '--until-empty', '--', 'python3', '-c', script)
    assert pipe.line() == 'on'
    shop.ok('cancel', job)
    assert runner.wait(PATIENCE) == 0
    assert shop.run('show', job).returncode == 1


def test_a_cancelled_job_whose_runner_is_killed_does_not_come_back(shop, pipe):
    job = shop.put('mail', 'x')
    script = f'trap "" TERM; echo on > {pipe.path}; while :; do sleep 1000; done'
    runner = shop.start('work', 'mail', '--grace', '100s', '--', 'sh', '-c', script)
    assert pipe.line() == 'on'
    shop.ok('cancel', job)
    runner.kill()
    runner.wait(PATIENCE)
    assert shop.run('work', 'mail', '--until-empty', '--', 'false').returncode == 0
    assert shop.run('show', job).returncode == 1
