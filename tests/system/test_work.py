"""baton work: a command for each job, by runners that share queues and are killed."""
import json
import os
import re
import select
import signal
import time

import pytest

from handlers import PATIENCE, Pipe, is_gone

OK, NO, USAGE = 0, 1, 64
MIB = 1 << 20

# What fails is not tried again while a test runs.
LATER = ['backoff=fixed', 'base=1h', 'cap=1h', 'lane-backoff=fixed', 'lane-base=1h', 'lane-cap=1h']


@pytest.fixture
def pipe(tmp_path):
    return Pipe(tmp_path / 'pipe')


def work(shop, queue, script, *options, **given):
    """Until nothing is ready any more."""
    shop.ok('queue', 'set', queue, *LATER)
    return shop.run('work', queue, '--until-empty', *options, '--', 'sh', '-c', script, **given)


def test_the_jobs_of_a_lane_are_executed_in_order(shop):
    for i in range(20):
        shop.put('mail', '--lane', 'a', str(i))
    out = shop.folder / 'out'
    result = work(shop, 'mail', f'cat >> {out}; echo >> {out}', '-j', '4')
    assert result.returncode == OK, result
    assert out.read_text().split() == [str(i) for i in range(20)]
    assert shop.objects('ls', 'mail') == []


def test_the_payload_is_given_as_it_is(shop):
    payload = bytes(range(256)) * 100
    shop.ok('put', 'mail', '-', input=payload)
    out = shop.folder / 'out'
    assert work(shop, 'mail', f'cat > {out}').returncode == OK
    assert out.read_bytes() == payload


def test_the_environment_says_what_the_job_is(shop):
    shop.put('mail', '--lane', 'a/b', 'x')
    out = shop.folder / 'out'
    work(shop, 'mail', f'env | grep ^BATON_ | grep -v -e STORE -e FLEET -e BIN > {out}')
    found = dict(line.split('=', 1) for line in out.read_text().splitlines())
    assert found['BATON_QUEUE'] == 'mail' and found['BATON_LANE'] == 'a/b'
    assert found['BATON_ATTEMPT'] == '1' and found['BATON_JOB'] == '1'
    assert found['BATON_SEQ'] == '1' and found['BATON_JOBS'] == '1' and found['BATON_KEY'] == ''
    assert int(found['BATON_FENCE']) > 0 and found['BATON_CLAIM'].startswith('1-')
    shop.put('mail', '--concurrency-key', 'a key', 'x')
    work(shop, 'mail', f'env | grep -e ^BATON_KEY= -e ^BATON_LANE= -e ^BATON_SEQ= > {out}')
    assert sorted(out.read_text().splitlines()) == ['BATON_KEY=a key', 'BATON_LANE=', 'BATON_SEQ=2']


def test_lines_of_json_are_given_when_asked_for_or_several(shop):
    shop.ok('put', 'mail', '--lane', 'a', '--join', 'x "quoted"')
    shop.ok('put', 'mail', '--lane', 'a', '--join', '-', input=b'\xff\0')
    out = shop.folder / 'out'
    assert work(shop, 'mail', f'cat >> {out}', '--join', '10').returncode == OK
    assert [json.loads(line) for line in out.read_text().splitlines()] == [
        {'job': '1', 'seq': 1, 'payload': 'x "quoted"'},
        {'job': '2', 'seq': 2, 'payload_base64': '/wA='}]
    for job, option in (('3', '--lines'), ('4', '--json')):
        shop.put('mail', 'y')
        assert work(shop, 'mail', f'cat > {out}', option).returncode == OK
        assert json.loads(out.read_text()) == {'job': job, 'seq': int(job), 'payload': 'y'}


def test_what_it_writes_is_the_result_and_beside_that_goes_to_the_log(shop):
    shop.ok('queue', 'set', 'mail', 'keep=1h')
    shop.put('mail', 'x')
    result = work(shop, 'mail', 'echo done; echo $BATON_CLAIM aside >&2')
    assert result.returncode == OK
    said = re.search(r' claim=(\S+) line="(\S+) aside"\n', result.stderr.decode())
    assert said and said.group(1) == said.group(2), result.stderr
    job = shop.object('show', '1')
    assert (job['state'], job['result']) == ('done', 'done\n')


def test_a_result_that_is_too_long_is_cut_and_that_is_said(shop):
    shop.ok('queue', 'set', 'mail', 'keep=1h')
    for size in (MIB, MIB + 1):
        shop.put('mail', str(size))
    result = work(shop, 'mail', 'head -c $(cat) /dev/zero | tr "\\0" x', '-j', '1')
    assert result.returncode == OK
    assert [len(shop.object('show', job)['result']) for job in '12'] == [MIB, MIB]
    line, = [line for line in result.stderr.decode().splitlines() if 'level=warn' in line]
    assert 'the rest is not kept' in line and 'claim=2-' in line and f'kept={MIB}' in line


@pytest.mark.parametrize('script, state, error', [
    ('exit 65', 'dead', 'it ended with status 65'),
    ('exit 75', 'retry', 'it ended with status 75'),
    ('exit 3', 'retry', 'it ended with status 3'),
    ('kill -9 $$', 'retry', 'it was ended by signal 9 (Killed)'),
])
def test_its_status_says_what_becomes_of_the_job(shop, script, state, error):
    shop.put('mail', 'x')
    assert work(shop, 'mail', script).returncode == OK
    job = shop.object('show', '1')
    assert (job['state'], job['error']) == (state, error)


def test_a_command_that_cannot_be_executed_fails_the_job(shop):
    shop.put('mail', 'x')
    assert shop.run('work', 'mail', '--until-empty', '--', '/nowhere/x').returncode == OK
    assert "'/nowhere/x' cannot be executed" in shop.object('show', '1')['error']


def test_what_takes_too_long_is_ended_with_all_that_it_started(shop, pipe):
    shop.put('mail', 'x')
    script = f'trap "" TERM; sleep 1000 & echo $! > {pipe.path}; echo $$ > {pipe.path}; wait; wait'
    result = work(shop, 'mail', script, '--timeout', '300ms', '--grace', '100ms')
    assert result.returncode == OK
    assert is_gone(pipe.line()) and is_gone(pipe.line())
    job = shop.object('show', '1')
    assert (job['state'], job['error']) == ('retry', 'it took longer than 300ms')


def test_once_takes_one_and_waits_for_it(shop, pipe):
    worker = shop.start('work', 'mail', '--once', '--', 'sh', '-c', f'cat > {pipe.path}')
    shop.put('mail', 'one\n')
    shop.put('mail', 'two\n')
    assert pipe.line() == 'one'
    assert worker.wait(PATIENCE) == OK
    assert [job['id'] for job in shop.objects('ls', 'mail')] == ['2']


def test_asked_to_end_it_lets_a_command_end_and_leaves(shop, pipe):
    gate = Pipe(shop.folder / 'gate')
    shop.put('mail', 'x')
    shop.put('mail', 'y')
    worker = shop.start('work', 'mail', '-j', '1', '--', 'sh', '-c',
                        f'echo $$ > {pipe.path}; read x < {gate.path}')
    pipe.line()
    worker.send_signal(signal.SIGTERM)
    gate.file.write(b'go\n')
    assert worker.wait(PATIENCE) == OK
    assert [job['state'] for job in shop.objects('ls', 'mail')] == ['ready']


def test_asked_twice_it_ends_the_command_and_gives_the_job_back(shop, pipe):
    shop.put('mail', 'x')
    worker = shop.start('work', 'mail', '--', 'sh', '-c', f'echo $$ > {pipe.path}; sleep 1000')
    pid = pipe.line()
    worker.send_signal(signal.SIGTERM)
    worker.send_signal(signal.SIGINT)
    assert worker.wait(PATIENCE) == OK
    assert is_gone(pid)
    job = shop.object('show', '1')
    assert (job['state'], job['attempt']) == ('ready', 0)


def test_killed_its_commands_end_and_another_runner_goes_on(shop, pipe):
    for i in range(2):
        shop.put('mail', '--lane', 'a', str(i))
    script = f'trap "" TERM; echo $$ $BATON_ATTEMPT > {pipe.path}; ' \
             '[ $BATON_ATTEMPT != 1 ] || sleep 1000'
    first = shop.start('work', 'mail', '--', 'sh', '-c', script)
    pid, attempt = pipe.line().split()
    assert attempt == '1'
    second = shop.start('work', 'mail', '--', 'sh', '-c', script)
    assert 'for as long as this runner has its shard' in shop.ok('why', '1')
    first.kill()
    first.wait(PATIENCE)
    _, attempt = pipe.line().split()
    assert attempt == '2'
    assert is_gone(pid)
    second.kill()


def test_a_dead_runner_that_nobody_has_replaced_is_shown_as_dead(shop, pipe):
    shop.put('mail', 'x')
    runner = shop.start('work', 'mail', '--', 'sh', '-c', f'echo $$ > {pipe.path}; sleep 1000')
    pipe.line()
    runner.kill()
    runner.wait(PATIENCE)
    assert shop.object('runner')['state'] == 'dead'


def test_of_two_with_one_name_the_second_yields_unless_it_replaces(shop, pipe):
    shop.put('mail', 'x')
    script = f'echo $$ $BATON_ATTEMPT > {pipe.path}; sleep 1000'
    first = shop.start('work', 'mail', '--name', 'w', '--', 'sh', '-c', script)
    pid, _ = pipe.line().split()
    line = shop.refused(NO, 'work', 'mail', '--name', 'w', '--', 'true')
    assert line == f"a runner 'w' is there already, as process {first.pid}: " \
                   '--replace takes its place, --name gives another name'
    second = shop.start('work', 'mail', '--name', 'w', '--replace', '--', 'sh', '-c', script)
    again, _ = pipe.line().split()
    assert is_gone(pid) and again != pid
    second.kill()
    first.kill()


def test_two_share_the_lanes_and_none_is_in_both(shop, pipe):
    for i in range(200):
        shop.put('mail', '--lane', str(i % 20), str(i))
    out = shop.folder / 'out'
    script = f'read x; echo $BATON_LANE $x >> {out}'
    workers = [shop.start('work', 'mail', '--until-empty', '--', 'sh', '-c', script)
               for _ in range(2)]
    for worker in workers:
        assert worker.wait(PATIENCE) == OK
    lanes = {}
    for line in out.read_text().splitlines():
        lane, number = line.split()
        lanes.setdefault(lane, []).append(int(number))
    assert sum(len(numbers) for numbers in lanes.values()) == 200
    assert all(numbers == sorted(numbers) for numbers in lanes.values())


def until_shards(shop, **expected):
    """How many each has, by name."""
    deadline, found = time.monotonic() + PATIENCE, None
    while found != expected:
        assert time.monotonic() < deadline, found
        found = {r['runner']: sum(s['count'] for s in r['shards']) for r in shop.objects('runner')}


def test_a_runner_that_is_drained_ends_what_it_has_and_others_take_its_shards(shop, pipe):
    shop.ok('queue', 'set', 'mail', 'shards=8', 'keep=1h')
    gate = Pipe(shop.folder / 'gate')
    script = f'echo $$ > {pipe.path}; read x < {gate.path}'
    shop.put('mail', '--lane', 'a', 'x')
    one = shop.start('work', 'mail', '--name', 'one', '--beat', '100ms', '--drain', '1h', '--',
                     'sh', '-c', script, stderr=None)
    handle = os.pidfd_open(int(pipe.line()))
    shop.ok('runner', 'drain', 'one')
    two = shop.start('work', 'mail', '--name', 'two', '--beat', '100ms', '--', 'true', stderr=None)
    until_shards(shop, one=1, two=7)
    assert shop.object('where', 'mail', 'a')['runner'] == 'one'
    assert not select.select([handle], [], [], 0)[0]
    gate.file.write(b'go\n')
    until_shards(shop, one=0, two=8)
    os.close(handle)
    job = shop.object('show', '1')
    assert (job['state'], job['attempt']) == ('done', 1)
    shop.ok('runner', 'attach', 'one')
    until_shards(shop, one=4, two=4)
    for runner in (one, two):
        runner.send_signal(signal.SIGTERM)
        assert runner.wait(PATIENCE) == OK


@pytest.mark.parametrize('arguments, line', [
    ([], "'work' needs the name of a queue"),
    (['mail'], "work needs a command behind '--', such as: baton work mail -- ./send"),
    (['mail', '--once', '--until-empty', '--', 'true'],
     '--once and --until-empty cannot be together'),
    (['mail', '-j', '0', '--', 'true'], None),
    (['mail', '--timeout', 'soon', '--', 'true'], None),
    (['a/b', '--', 'true'], None),
])
def test_what_is_wrong_with_a_call_is_said(shop, arguments, line):
    said = shop.refused(USAGE, 'work', *arguments)
    assert line is None or said.startswith(line)
