"""Concurrency keys that count on each host, or in each process, with the real program and kills in
the middle."""
import subprocess

import pytest

from handlers import PATIENCE, Pipe

DATA = 65
STORES = ['shop', 'far_shop']


@pytest.fixture
def pipe(tmp_path):
    return Pipe(tmp_path / 'pipe')


def scope(shop, value, *more):
    shop.ok('queue', 'set', 'mail', f'key-scope={value}', 'hold-on-retry=give-up', 'shards=2',
            *more)


def put(shop, key='gpu'):
    return shop.put('mail', '--concurrency-key', key, 'x')


def counts(shop):
    found = shop.object('queue', 'show', 'mail')
    return found['running'], found['ready']


@pytest.mark.parametrize('kind', STORES)
def test_each_runner_has_one_and_a_third_waits_without_a_slot(kind, pipe, tmp_path, request):
    shop = request.getfixturevalue(kind)
    scope(shop, 'process')
    go = Pipe(tmp_path / 'go')
    script = f'echo $BATON_KEY $BATON_JOB > {pipe.path}; read x < {go.path}'
    jobs = {put(shop) for _ in range(8)}
    for name in 'a', 'b':
        shop.start('work', 'mail', '--name', name, '-j', '3', '--', 'sh', '-c', script)
    ran = {pipe.line().split()[1] for _ in range(2)}
    assert ran <= jobs and len(ran) == 2
    # The others of the key are in nobody's way.
    put(shop, 'disk')
    assert pipe.line().startswith('disk ')
    assert counts(shop) == (3, 6)
    waiting = (jobs - ran).pop()
    why = shop.object('why', waiting)
    assert (why['why'], why['concurrency_key']) == ('key', 'gpu')
    assert why['ahead'] in ran
    assert ' holds in the same process, claimed by ' in shop.ok('why', waiting)
    assert shop.object('show', waiting)['attempt'] == 0
    owners = {shop.object('show', job)['claim']['owner'] for job in ran}
    assert len(owners) == 2


@pytest.mark.parametrize('kind', STORES)
def test_a_killed_runner_leaves_no_key_held_on_its_host_and_no_two_run(kind, pipe, request):
    shop = request.getfixturevalue(kind)
    scope(shop, 'host')
    jobs = [put(shop) for _ in range(6)]
    # The lock is another proof that no two of a key run: it is not Baton's.
    script = f'exec 9> {shop.folder}/lock; flock -n 9 || echo two > {pipe.path}; ' \
             f'echo $BATON_JOB $BATON_ATTEMPT > {pipe.path}; ' \
             f'[ -e {shop.folder}/go ] || sleep 1000'
    first = shop.start('work', 'mail', '--name', 'a', '-j', '4', '--', 'sh', '-c', script)
    held = pipe.line().split()[0]
    assert held in jobs
    second = shop.start('work', 'mail', '--name', 'b', '-j', '4', '--', 'sh', '-c', script)
    other = next(job for job in jobs if job != held)
    why = shop.object('why', other)
    assert (why['why'], why['ahead']) == ('key', held)
    assert f'which job {held} holds on the same host, claimed by ' in shop.ok('why', other)
    assert counts(shop) == (1, 5)
    (shop.folder / 'go').touch()
    first.kill()
    first.wait(PATIENCE)
    ran = [pipe.line() for _ in range(6)]
    assert sorted(ran) == sorted(f'{job} {2 if job == held else 1}' for job in jobs)
    second.kill()
    shop.ok('check')


@pytest.mark.parametrize('kind', STORES)
def test_runners_of_a_host_pass_a_key_on_to_each_other(kind, pipe, request):
    shop = request.getfixturevalue(kind)
    scope(shop, 'host')
    script = f'exec 9> {shop.folder}/lock; flock -n 9 || echo two > {pipe.path}; ' \
             f'echo $BATON_JOB > {pipe.path}'
    for name in 'a', 'b':
        shop.start('work', 'mail', '--name', name, '-j', '4', '--', 'sh', '-c', script)
    jobs = [put(shop) for _ in range(40)]
    assert sorted(pipe.line() for _ in jobs) == sorted(jobs)


@pytest.mark.parametrize('kind', STORES)
def test_who_waits_for_a_key_is_counted_in_all_shards(kind, request):
    shop = request.getfixturevalue(kind)
    scope(shop, 'host', 'key-waiting-max=3')
    for _ in range(3):
        put(shop)
    refused = shop.run('put', 'mail', '--concurrency-key', 'gpu', 'x')
    assert refused.returncode == 69
    assert b'as its key_waiting_max allows, 3: put again when some are done' in refused.stderr
    put(shop, 'disk')


def test_a_transaction_is_refused_beyond_the_bound_of_a_key(far_shop, database):
    scope(far_shop, 'host', 'key-waiting-max=3')
    where = far_shop.store.removeprefix('postgres:')
    for _ in range(3):
        put(far_shop)

    def put_in_sql(key):
        database.run('psql', '-q', '-v', 'ON_ERROR_STOP=1', '-d', where, '-c',
                     f"""SELECT baton.put('mail', 'x'::text, NULL, '{{"key": "{key}"}}')""")
    with pytest.raises(subprocess.CalledProcessError):
        put_in_sql('gpu')
    put_in_sql('gp')
    assert counts(far_shop) == (0, 4)


@pytest.mark.parametrize('kind', STORES)
def test_a_killed_runner_gives_no_start_of_its_host_back(kind, pipe, request):
    shop = request.getfixturevalue(kind)
    scope(shop, 'host', 'key-limit=5', 'key-rate=2/1d')
    jobs = [put(shop) for _ in range(6)]
    script = f'echo $BATON_JOB $BATON_KEY > {pipe.path}; ' \
             f'[ $BATON_KEY = disk ] || [ -e {shop.folder}/go ] || sleep 1000'
    first = shop.start('work', 'mail', '--name', 'a', '-j', '4', '--', 'sh', '-c', script)
    ran = {pipe.line().split()[0] for _ in range(2)}
    assert ran <= set(jobs) and len(ran) == 2
    waiting = next(job for job in jobs if job not in ran)
    why = shop.object('why', waiting)
    assert (why['why'], why['concurrency_key']) == ('rate', 'gpu')
    assert ' has started as often as it may on the same host, 2 in 1d, and waits ' in \
        shop.ok('why', waiting)
    (shop.folder / 'go').touch()
    first.kill()
    first.wait(PATIENCE)
    second = shop.start('work', 'mail', '--name', 'b', '-j', '4', '--', 'sh', '-c', script)
    # Those of the killed one have started, though nobody holds the key any more.
    put(shop, 'disk')
    assert pipe.line().endswith(' disk')
    assert counts(shop)[1] == 6
    assert shop.object('why', waiting)['why'] == 'rate'
    shop.ok('queue', 'set', 'mail', 'key-rate=off')
    assert {pipe.line().split()[0] for _ in jobs} == set(jobs)
    second.kill()
    shop.ok('check')


def test_such_work_is_for_runners(shop):
    scope(shop, 'host')
    put(shop)
    assert shop.refused(DATA, 'claim', 'mail') == (
        'the key_scope of queue "mail" is host, so its work is for runners: nothing else lives as '
        'long as a claim, and can be counted')


@pytest.mark.parametrize('change, words', [
    ('hold-on-retry=keep', 'hold_on_retry is give-up'),
    ('on-conflict=skip', 'on_conflict is wait'),
    ('mode=pull', 'the mode is runner, or open until a runner comes'),
])
def test_what_does_not_go_with_a_scope_is_refused(shop, change, words):
    scope(shop, 'process')
    assert shop.refused(DATA, 'queue', 'set', 'mail', change) == (
        f'key_scope is process: that is possible where {words}')


def test_a_scope_is_kept_and_changes_only_without_jobs(shop):
    scope(shop, 'host')
    assert 'key-scope=host\n' in shop.ok('queue', 'show', 'mail')
    assert shop.object('queue', 'show', 'mail')['policy']['key_scope'] == 'host'
    job = put(shop)
    refused = shop.run('queue', 'set', 'mail', 'key-scope=cluster')
    assert b'has 1 jobs: that can be changed when it has none' in refused.stderr
    shop.ok('cancel', job)
    shop.ok('queue', 'set', 'mail', 'key-scope=cluster')


def test_a_transaction_puts_jobs_into_the_line_of_their_shard(far_shop, database):
    scope(far_shop, 'host')
    where = far_shop.store.removeprefix('postgres:')
    database.run('psql', '-q', '-v', 'ON_ERROR_STOP=1', '-d', where, '-c',
                 """SELECT baton.put('mail', 'x'::text, NULL, '{"key": "gpu"}')
                    FROM generate_series(1, 4)""")
    jobs = far_shop.objects('ls', 'mail')
    assert [job['concurrency_key'] for job in jobs] == ['gpu'] * 4
    ran = far_shop.folder / 'ran'
    assert far_shop.run('work', 'mail', '-j', '4', '--until-empty', '--', 'sh', '-c',
                        f'echo $BATON_KEY >> {ran}').returncode == 0
    assert ran.read_text().split() == ['gpu'] * 4
    far_shop.ok('check')
