"""Runners whose database is behind a bad network, frozen, or restarted: they stop in time what they
run, with all that it has started, accept nothing late, and go on when it is back."""
import json
import os
import select
import signal
import time

import pytest

import databases
from handlers import PATIENCE, Pipe, is_gone, until_log
from witness import Witness

OK = 0
SOAK = os.environ.get('BATON_SOAK') == '1'
ROUNDS = 10 if SOAK else 1
LANES = 16
TIMES = ['--ttl', '2s', '--beat', '300ms', '--margin', '600ms']
FOREVER, SHORT = 1000000, 700       # ms that a handler takes


@pytest.fixture
def proxy(database):
    proxy = databases.Proxy(database)
    yield proxy
    proxy.done()


@pytest.fixture
def pipe(tmp_path):
    return Pipe(tmp_path / 'begun')


def effect(witness, begun, takes):
    """A handler that leaves a daemon behind, and says its pid when it begins."""
    return ['--', 'sh', '-c', f'echo $$ > {begun}; exec "$@"', 'sh',
            os.environ['BATON_EFFECT'], str(witness.folder), str(takes), 'daemon']


def put_round(shop, put):
    lines = ''.join(json.dumps({'payload': 'x', 'lane': f'l{i % LANES}'}) + '\n'
                    for i in range(3 * LANES))
    for i, job in enumerate(shop.objects('put', 'q', '--file', '-', input=lines.encode())):
        put.setdefault(f'l{i % LANES}', []).append(int(job['id']))


def until(shop, what):
    deadline = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < deadline, shop.ok('runner')


def has_shards(shop, name):
    return any(r['runner'] == name and r['shards'] for r in shop.objects('runner'))


def is_registered(shop, name):
    return any(r['runner'] == name for r in shop.objects('runner'))


@pytest.mark.parametrize('way, takes', [
    ('hold', SHORT), ('swallow', FOREVER), ('reset', FOREVER), *[('hold', FOREVER)] * SOAK,
    *[('swallow', SHORT)] * SOAK])
def test_who_is_cut_off_stops_in_time_and_comes_back(far_shop, database, proxy, pipe, way, takes):
    shop, put, witness = far_shop, {}, Witness(far_shop.folder)
    shop.ok('queue', 'set', 'q', 'lane-attempts=100000', 'lane-backoff=none')
    far = shop.start('work', 'q', '--name', 'far', *TIMES, '--grace', '100ms',
                     *effect(witness, pipe.path, takes),
                     env={'BATON_STORE': database.info(proxy.host)})
    near = None
    for _ in range(ROUNDS):
        until(shop, lambda: has_shards(shop, 'far'))
        put_round(shop, put)
        first = pipe.line()
        # Only now, so that it is far who has something.
        near = near or shop.start('work', 'q', '--name', 'near', *TIMES, '-j', '4',
                                  *effect(witness, '/dev/null', 1), stderr=None)
        proxy.turn(way)
        until_log(far, 'msg=detached')
        until(shop, lambda: not is_registered(shop, 'far'))
        assert is_gone(first)
        proxy.turn('pass')
        until_log(far, 'attached again')
    far.send_signal(signal.SIGINT)
    far.send_signal(signal.SIGINT)
    total = sum(map(len, put.values()))
    until(shop, lambda: shop.object('queue', 'show', 'q')['done'] >= total)
    assert far.wait(PATIENCE) == OK
    near.send_signal(signal.SIGTERM)
    assert near.wait(PATIENCE) == OK
    assert witness.verdict(put) == []
    assert shop.object('queue', 'show', 'q')['done'] == total
    shop.ok('check')


def test_who_is_stranded_in_a_transaction_holds_up_others_only_for_a_moment(far_shop, database,
                                                                            proxy):
    shop = far_shop
    shop.put('q', 'x')
    proxy.turn('strand')
    stranded = shop.start('put', 'q', 'y', env={'BATON_STORE': database.info(proxy.host)})
    assert proxy.stranded.wait(PATIENCE)
    shop.put('q', 'z')
    proxy.turn('pass')
    assert stranded.wait(PATIENCE) == OK
    assert len(shop.objects('ls', 'q')) == 3


def test_a_store_that_hangs_does_not_keep_handlers_alive(far_shop, database, pipe):
    shop = far_shop
    shop.put('q', 'x')
    script = f'trap "" TERM; setsid sleep 1000 & echo $$ > {pipe.path}; echo $! > {pipe.path}; ' \
             '[ $BATON_ATTEMPT != 1 ] || wait'
    runner = shop.start('work', 'q', *TIMES, '--grace', '1h', '--', 'sh', '-c', script)
    handles = [os.pidfd_open(int(pipe.line())) for _ in range(2)]
    database.signal(signal.SIGSTOP)
    try:
        for handle in handles:
            ready, _, _ = select.select([handle], [], [], PATIENCE)
            assert ready, 'a handler lives on while the database hangs'
            os.close(handle)
        until_log(runner, 'msg=detached')
    finally:
        database.signal(signal.SIGCONT)
    until_log(runner, 'attached again')
    runner.send_signal(signal.SIGTERM)
    assert runner.wait(PATIENCE) == OK


def test_a_restart_of_the_database_of_three_seconds_stops_no_handler(far_shop, database, pipe):
    shop, gate = far_shop, Pipe(far_shop.folder / 'gate')
    shop.ok('queue', 'set', 'q', 'keep=1h')
    shop.put('q', 'x')
    runner = shop.start('work', 'q', '--once', '--', 'sh', '-c',
                        f'echo $$ > {pipe.path}; read x < {gate.path}')
    handle = os.pidfd_open(int(pipe.line()))
    database.stop()
    ready, _, _ = select.select([handle], [], [], 3)
    assert not ready, 'the handler was stopped'
    database.start()
    gate.file.write(b'go\n')
    assert runner.wait(PATIENCE) == OK
    os.close(handle)
    assert b'detached' not in runner.stderr.read()
    job = shop.object('show', '1')
    assert (job['state'], job['attempt']) == ('done', 1)
