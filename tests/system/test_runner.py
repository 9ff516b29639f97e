"""baton runner and baton where: who runs jobs, and where a lane is."""
import datetime
import os
import socket
import subprocess

import pytest

import prometheus
from locks import wait_until

NO, USAGE, UNAVAILABLE = 1, 64, 69
FIELDS = {'runner', 'number', 'host', 'pid', 'guardian', 'endpoint', 'labels', 'weight', 'ttl_ms',
          'since', 'state', 'wish', 'life', 'queues', 'shards', 'metrics'}


@pytest.fixture
def enlist(shop):
    """Starts a runner that does nothing; each of `shards` is a queue, its first shard, and how
    many."""
    started = []

    def start(name, *shards, state='attached'):
        process = subprocess.Popen(
            [os.environ['BATON_ENLIST'], shop.store, name, state,
             *(str(word) for shard in shards for word in shard)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        started.append(process)
        process.number = int(process.stdout.readline())
        return process
    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def leave(process):
    process.stdin.close()
    assert process.wait() == 0


def wishes(shop):
    return {r['runner']: r['wish'] for r in shop.objects('runner')}


def test_a_runner_is_shown_as_it_is(shop, enlist):
    shop.ok('queue', 'set', 'mail', 'shards=8')
    shop.ok('queue', 'set', 'video cut', 'shards=4')
    one = enlist('one', ('mail', 0, 5), ('video cut', 0, 1))
    two = enlist('two', ('video cut', 1, 2), state='detached: manual detachment')
    first, second = shop.objects('runner')
    assert shop.objects('runner', 'list') == [first, second]
    assert set(first) == FIELDS
    since = datetime.datetime.fromisoformat(first.pop('since').replace('Z', '+00:00'))
    assert abs(datetime.datetime.now(datetime.timezone.utc) - since).days == 0
    assert first == {
        'runner': 'one', 'number': one.number, 'host': socket.gethostname(), 'pid': one.pid,
        'guardian': 4711, 'endpoint': 'there:1', 'labels': 'zone=a', 'weight': 3, 'ttl_ms': 30000,
        'state': 'attached', 'wish': 'work', 'life': '/nowhere/life',
        'queues': ['mail', 'video cut'],
        'shards': [{'queue': 'mail', 'count': 5}, {'queue': 'video cut', 'count': 1}],
        'metrics': None}
    assert (second['runner'], second['number']) == ('two', two.number)
    assert second['state'] == 'detached: manual detachment'
    assert second['shards'] == [{'queue': 'video cut', 'count': 2}]


def test_people_get_a_table(shop, enlist):
    assert shop.run('runner').returncode == UNAVAILABLE
    shop.put('mail', 'x')
    assert shop.ok('runner') == ''
    enlist('one', ('mail', 0, 16))
    two = enlist('two', state='draining')
    lines = shop.ok('runner').splitlines()
    assert lines[0].split() == ['RUNNER', 'NUMBER', 'HOST', 'WEIGHT', 'STATE', 'WISH', 'SHARDS']
    assert lines[1].split() == ['one', '1', socket.gethostname(), '3', 'attached', 'work', 'mail',
                                '16']
    assert lines[2].split() == ['two', '2', socket.gethostname(), '3', 'draining', 'work', '-']
    leave(two)
    assert len(shop.ok('runner').splitlines()) == 2


def test_many_runners_are_listed(shop, enlist):
    names = [f'r{i:02}' for i in range(70)]
    shop.put('mail', 'x')
    for name in names:
        enlist(name)
    assert [r['runner'] for r in shop.objects('runner')] == names


def test_a_runner_is_told_what_to_do(shop, enlist):
    shop.put('mail', 'x')
    one = enlist('one')
    enlist('two')
    for verb, wish in (('drain', 'drain'), ('detach', 'detach'), ('attach', 'work'),
                       ('drain', 'drain')):
        assert shop.ok('runner', verb, 'one') == ''
        assert wishes(shop) == {'one': wish, 'two': 'work'}
    leave(one)
    enlist('one')
    assert wishes(shop) == {'one': 'work', 'two': 'work'}


@pytest.mark.parametrize('arguments, status, line', [
    (['detach', 'nobody'], NO, "there is no runner 'nobody'; 'baton runner' has those there are"),
    (['detach'], USAGE, "'runner detach' needs the name of a runner"),
    (['drain', 'a', 'b'], USAGE, None),
    (['atach', 'a'], USAGE, None),
    (['detach', ''], USAGE, None),
])
def test_what_cannot_be_done_is_said(shop, arguments, status, line):
    shop.put('mail', 'x')
    said = shop.refused(status, 'runner', *arguments)
    assert line is None or said == line


def test_a_lane_is_found(shop, enlist):
    shop.ok('queue', 'set', 'mail', 'shards=4')
    result = shop.run('where', 'mail', 'ada', '--json')
    assert (result.returncode, result.stderr) == (NO, b'')
    assert b'"runner":null' in result.stdout and b'"fence":0' in result.stdout
    one = enlist('one', ('mail', 0, 2))
    two = enlist('two', ('mail', 2, 2))
    found = {lane: shop.object('where', 'mail', lane) for lane in map(str, range(20))}
    assert {w['shard'] for w in found.values()} == {0, 1, 2, 3}
    for lane, where in found.items():
        name, process = ('one', one) if where['shard'] < 2 else ('two', two)
        assert where.pop('fence') > 0
        assert where == {'queue': 'mail', 'lane': lane, 'shard': where['shard'], 'runner': name,
                         'host': socket.gethostname(), 'endpoint': 'there:1', 'pid': process.pid}
    lines = dict(line.split() for line in shop.ok('where', 'mail', '7').splitlines())
    assert list(lines) == ['runner', 'host', 'endpoint', 'shard', 'fence']
    assert lines['runner'] == found['7']['runner']
    leave(one)
    gone = next(lane for lane, where in found.items() if where['shard'] < 2)
    result = shop.run('where', 'mail', gone)
    assert result.returncode == NO and result.stdout.startswith(b'runner    -\n')


@pytest.mark.parametrize('arguments, status, line', [
    (['none', 'ada'], NO, "there is no queue 'none'; 'baton queue list' has those there are"),
    (['mail'], USAGE, "'where' needs the names of a queue and of a lane"),
    (['a/b', 'ada'], USAGE, "the queue's name is 'a/b': it may not have a '/'"),
    (['mail', ''], USAGE, None),
])
def test_what_is_nowhere_is_said(shop, arguments, status, line):
    shop.put('mail', 'x')
    said = shop.refused(status, 'where', *arguments)
    assert line is None or said == line


def told(shop, condition):
    """The metrics of the only runner, once they are so."""
    found = []

    def look():
        runner, = shop.objects('runner') or [{'metrics': None}]
        found[:] = [runner['metrics']]
        return found[0] and condition(found[0])
    wait_until(look)
    return found[0]


def test_what_a_runner_does_is_counted_and_told(shop):
    shop.ok('queue', 'set', 'a "b" \\c', 'shards=4')
    for text in ('0', '0', '65', '1'):
        shop.put('a "b" \\c', text, '--attempts', '1')
    work = shop.start('work', 'a "b" \\c', 'other', '--name', 'one', '--beat', '100ms', '-j', '3',
                      '--', 'sh', '-c', 'exit $(cat)', stderr=subprocess.DEVNULL)
    metrics = told(shop, lambda m: sum(q['completed'] + q['failed'] + q['rejected']
                                       for q in m['queues']) == 4)
    queue, other = metrics.pop('queues')
    assert queue['queue'] == 'a "b" \\c'
    assert (queue['shards'], queue['started'], queue['completed'], queue['failed'],
            queue['rejected'], queue['returned'], queue['refused']) == (4, 4, 2, 1, 1, 0, 0)
    assert sum(span['count'] for span in queue['spans']) == 4
    assert [span['to_ms'] for span in queue['spans']][-2:] == [3600000, None]
    assert (other['queue'], other['started']) == ('other', 0)
    assert (metrics['slots'], metrics['slots_used'], metrics['detached']) == (3, 0, False)
    assert set(metrics['detachments'].values()) == {0}
    assert metrics['ticks'] > 0
    samples = prometheus.parse(shop.ok('runner', '--metrics'))

    def sample(name, **labels):
        return samples[name, frozenset({'runner': 'one', **labels}.items())]
    where = {'queue': 'a "b" \\c'}
    assert sample('baton_runner_info', host=socket.gethostname()) == 1
    assert sample('baton_runner_detached') == 0
    assert sample('baton_detach_total', reason='manual detachment') == 0
    assert sample('baton_fenced_writes_total') == 0
    assert sample('baton_claims_started_total', **where) == 4
    assert sample('baton_claims_ended_total', outcome='completed', **where) == 2
    assert sample('baton_claims_ended_total', outcome='rejected', **where) == 1
    assert sample('baton_handler_seconds_count', **where) == 4
    assert sample('baton_runner_slots') == 3
    shop.ok('runner', 'detach', 'one')
    metrics = told(shop, lambda m: m['detached'])
    assert metrics['detachments'] == {'storage': 0, 'streak': 0, 'expired': 0, 'manual': 1,
                                      'guardian': 0}
    samples = prometheus.parse(shop.ok('runner', 'list', '--metrics'))
    assert sample('baton_runner_detached') == 1
    assert sample('baton_detach_total', reason='manual detachment') == 1
    work.terminate()
    assert work.wait() == 0
    assert '{' not in shop.ok('runner', '--metrics')


def test_metrics_are_of_a_list(shop, enlist):
    shop.put('mail', 'x')
    enlist('one')
    assert set(prometheus.parse(shop.ok('runner', '--metrics'))) == {
        ('baton_runner_info', frozenset({('runner', 'one'), ('host', socket.gethostname())}))}
    shop.refused(USAGE, 'runner', 'drain', 'one', '--metrics')
    shop.refused(USAGE, 'runner', '--metrics', '--json')
