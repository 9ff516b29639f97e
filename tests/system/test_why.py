"""baton why: what keeps a job, a lane or a queue."""
import os
import re

import pytest

from handlers import Pipe
from locks import wait_until

NO, USAGE = 1, 64
PATIENCE = 120
NOBODY = "is ready, but nobody works on its queue: 'baton work mail -- COMMAND' does"


def sentence(shop, *arguments):
    return shop.ok('why', *arguments).strip()


def stall(shop, job):
    why = shop.object('why', job)
    return (why['stall'], why['runner'])


@pytest.fixture
def gate(tmp_path):
    """What commands wait for, until somebody opens it."""
    path = str(tmp_path / 'gate')
    os.mkfifo(path)
    return path


@pytest.fixture
def work(shop):
    """A runner named r with one slot for the queue mail, which beats often."""
    def start(*command):
        return shop.start('work', 'mail', '--name', 'r', '-j', '1', '--beat', '50ms',
                          '--', *command)
    return start


def until_stalled(shop, job, *expected):
    wait_until(lambda: stall(shop, job) == expected)


def test_nobody_works_on_the_queue(shop):
    shop.put('mail', 'a')
    assert sentence(shop, '1') == f'job 1 {NOBODY}'
    assert stall(shop, '1') == ('nobody', None)


def test_who_pulls_has_not_asked(shop):
    shop.put('mail', 'a')
    shop.put('mail', 'b')
    shop.claim('mail')
    assert sentence(shop, '2') == 'job 2 is ready: nobody has asked for it yet'
    assert stall(shop, '2') == ('puller', None)


def test_the_lane_is_busy_or_waits_for_a_retry(shop):
    shop.ok('queue', 'set', 'mail', 'lane-backoff=fixed', 'lane-base=1h', 'lane-cap=1h')
    for payload in 'ab':
        shop.put('mail', '--lane', 'l', payload)
    claim = shop.claim('mail', '--owner', 'ada', '--ttl', '1d')
    busy = re.fullmatch(r'job 2 is ready, but job 1 comes first in its lane: claimed by ada at '
                        r'\S+ \S+, \S+ ago, under fence (\d+)', sentence(shop, '2'))
    assert busy and int(busy[1]) == claim['fence']
    assert shop.object('why', '2')['holder']['fence'] == claim['fence']
    lane = sentence(shop, '--queue', 'mail', '--lane', 'l')
    assert lane.startswith('job 1 is claimed, attempt 1, by ada until ')
    shop.ok('fail', '--error', 'no', env=claim['env'])
    assert re.fullmatch(r'job 2 is ready, but job 1 comes first in its lane: it has failed and '
                        r'waits for its next attempt until \S+ \S+ \(in \S+( \S+)*\)',
                        sentence(shop, '2'))
    assert shop.object('why', '--queue', 'mail', '--lane', 'l')['job']['ahead'] == '1'


@pytest.fixture
def busy(shop, work, gate):
    """That runner, at work on job 1; job 2 waits for it."""
    shop.put('mail', 'a')
    runner = work('cat', gate)
    wait_until(lambda: shop.object('why', '1')['why'] == 'claimed')
    shop.put('mail', 'b')
    return runner


@pytest.mark.usefixtures('busy')
def test_the_slots_of_the_runner_are_full(shop):
    until_stalled(shop, '2', 'slots', 'r')
    assert re.fullmatch(r'job 2 is ready, but runner r has all of its 1 slots in use, as it told '
                        r'\S+ ago', sentence(shop, '2'))
    assert shop.object('show', '2')['stall'] == 'slots'


@pytest.mark.usefixtures('busy')
def test_the_runner_is_detached(shop):
    shop.ok('runner', 'detach', 'r')
    until_stalled(shop, '2', 'detached', 'r')
    assert sentence(shop, '2') == 'job 2 is ready, but runner r is detached: manual detachment'


@pytest.mark.usefixtures('busy')
def test_the_shard_is_on_its_way(shop):
    shop.ok('runner', 'drain', 'r')
    until_stalled(shop, '2', 'transit', 'r')
    assert re.fullmatch(r'job 2 is ready, but (runner r gives its shard \d+ up|nobody has its '
                        r'shard \d+ now: runner r serves its queue)', sentence(shop, '2'))


def test_the_runner_is_dead(shop, busy):
    busy.kill()
    busy.wait(PATIENCE)
    until_stalled(shop, '2', 'dead', 'r')
    assert re.fullmatch(r'job 2 is ready, but runner r, which has its shard \d+, is dead',
                        sentence(shop, '2'))


def test_a_job_that_is_due_says_who_has_not_seen_it(shop):
    shop.put('mail', '--delay', '1ms', 'a')
    until_stalled(shop, '1', 'nobody', None)
    assert re.fullmatch(rf'job 1 was due at \S+ \S+: it {re.escape(NOBODY)}', sentence(shop, '1'))
    shop.ok('queue', 'pause', 'mail')
    assert sentence(shop, '1').endswith(
        ": it is ready, but its queue is paused: 'baton queue resume mail' goes on")
    why = shop.object('why', '1')
    assert (why['why'], why['stall'], why['runner']) == ('delayed', 'paused', None)


def test_a_lane_and_a_queue_say_what_keeps_their_first_job(shop):
    shop.put('mail', '--lane', 'l', '--delay', '1h', 'a')
    assert sentence(shop, '--queue', 'mail', '--lane', 'l').startswith('job 1 is delayed until ')
    assert sentence(shop, '--queue', 'mail', '--lane', 'other') == 'lane other is empty'
    shop.put('mail', '--lane', 'm', 'b')
    assert sentence(shop, '--queue', 'mail').splitlines() == [
        'queue mail has 1 ready, 1 delayed, 0 running and 0 dead', f'job 2 {NOBODY}']
    shop.ok('queue', 'pause', 'mail')
    assert sentence(shop, '--queue', 'mail').splitlines() == [
        'queue mail has 1 ready, 1 delayed, 0 running and 0 dead, and is paused',
        "job 2 is ready, but its queue is paused: 'baton queue resume mail' goes on"]
    why = shop.object('why', '--queue', 'mail')
    assert why.pop('job')['why'] == 'paused'
    assert why == {'queue': 'mail', 'lane': None, 'paused': True, 'ready': 1,
                   'waiting_on_key': 0, 'delayed': 1,
                   'running': 0, 'dead': 0}
    assert shop.object('why', '--queue', 'mail', '--lane', 'other') == {
        'queue': 'mail', 'lane': 'other', 'paused': True, 'job': None}
    shop.ok('queue', 'set', 'idle', 'keep=1h')
    assert sentence(shop, '--queue', 'idle') == (
        'queue idle has 0 ready, 0 delayed, 0 running and 0 dead')


@pytest.mark.parametrize('arguments, line', [
    ([], "'why' needs the id of a job, or --queue"),
    (['--lane', 'l'], '--lane needs --queue'),
    (['--queue', 'mail', '1'], "--queue takes no id, and got '1'"),
])
def test_a_wrong_call_gets_one_clear_line(shop, arguments, line):
    assert shop.refused(USAGE, 'why', *arguments) == line


def test_a_queue_that_is_not_there_is_no(shop):
    shop.put('mail', 'a')
    assert shop.refused(NO, 'why', '--queue', 'mial') == (
        "there is no queue 'mial'; 'baton queue list' has those there are")


def test_a_holder_that_is_dead_is_called_so(shop):
    pipe = Pipe(shop.folder / 'pipe')
    shop.ok('queue', 'set', 'q', 'shards=1', 'mode=runner')
    for _ in range(2):
        shop.put('q', '--lane', 'l', 'x')
    runner = shop.start('work', 'q', '--', 'sh', '-c', f'echo $$ > {pipe.path}; sleep 1000')
    pipe.line()
    assert 'dead' not in shop.ok('why', '1') + shop.ok('why', '2')
    runner.kill()
    runner.wait(PATIENCE)
    assert ', which is dead, until another runner takes its place' in shop.ok('why', '1')
    assert ', which is dead, at ' in shop.ok('why', '2')
    assert ', which is dead, ' in shop.ok('show', '1')
