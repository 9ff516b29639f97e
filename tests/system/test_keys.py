"""Concurrency keys, with the real program: how many handlers of a key run at once, what waits for
them, and that a kill leaves no key held."""
import json

import pytest

from handlers import PATIENCE, Pipe

USAGE = 64
DATA = 65
UNAVAILABLE = 69
TEMPORARY = 75


@pytest.fixture
def pipe(tmp_path):
    return Pipe(tmp_path / 'pipe')


def put(shop, key, text='x'):
    return shop.put('mail', '--concurrency-key', key, text)


def counts(shop):
    return shop.object('queue', 'show', 'mail')


def test_a_key_is_shown_wherever_its_job_is(shop):
    job = put(shop, 'k')
    assert shop.object('ls', 'mail')['concurrency_key'] == 'k'
    assert shop.object('show', job)['concurrency_key'] == 'k'
    assert 'key       k\n' in shop.ok('show', job)
    assert shop.object('claim', 'mail')['concurrency_key'] == 'k'
    assert shop.object('show', shop.put('mail', 'x'))['concurrency_key'] is None


def test_a_shell_gets_the_key(shop):
    put(shop, 'a key')
    assert "BATON_KEY='a key'" in shop.ok('claim', 'mail', '--shell')


def test_each_line_of_a_file_has_its_key(shop):
    lines = b'{"payload": 1, "concurrency_key": "a"}\n{"payload": 2}\n'
    shop.ok('put', 'mail', '--file', '-', input=lines)
    assert [job['concurrency_key'] for job in shop.objects('ls', 'mail')] == ['a', None]


@pytest.mark.parametrize('arguments, words', [
    (['--concurrency-key', ''], 'concurrency key'),
    (['--concurrency-key', 'k' * 256], '255'),
])
def test_a_bad_key_is_refused(shop, arguments, words):
    assert words in shop.refused(USAGE, 'put', 'mail', *arguments, 'x')


@pytest.mark.parametrize('change', [
    'key-limit=0', 'key-limit=1000001', 'hold-on-retry=no', 'on-conflict=no',
    'key-waiting-max=10001', 'key-fair=maybe', 'key-rate=', 'key-rate=10', 'key-rate=0/1s',
    'key-rate=1001/1s', 'key-rate=1/0', 'key-rate=1/366d', 'key-rate=/1s', 'key-rate=x/1s',
    'key-rate=1/1s/1s', 'key-rate=-1/1s', 'key-rate=100000000000000000000000/1s',
])
def test_a_bad_policy_of_keys_is_refused(shop, change):
    shop.refused(USAGE, 'queue', 'set', 'mail', change)


@pytest.mark.parametrize('change, words', [
    ('key-rate=1/366d', 'the window of key-rate is 366d: 1ms to 365d are allowed'),
    ('key-rate=1/0', 'the window of key-rate is 0: 1ms to 365d are allowed'),
    ('key-rate=1001/1s', "key-rate is '1001/1s': off, or N/SPAN with N from 1 to 1000"),
])
def test_what_is_bad_about_a_rate_is_named(shop, change, words):
    assert words in shop.refused(USAGE, 'queue', 'set', 'mail', change)


def test_the_policy_of_keys_is_kept(shop):
    shop.put('mail', 'x')
    policy = shop.object('queue', 'show', 'mail')['policy']
    assert (policy['key_limit'], policy['hold_on_retry']) == (1, 'keep')
    shop.ok('queue', 'set', 'mail', 'key-limit=7', 'hold-on-retry=give-up')
    policy = shop.object('queue', 'show', 'mail')['policy']
    assert (policy['key_limit'], policy['hold_on_retry']) == (7, 'give-up')


def test_pulled_work_waits_for_its_key_and_why_says_who_has_it(shop):
    first, second = put(shop, 'k'), put(shop, 'k')
    assert shop.object('why', second)['why'] == 'behind'
    claim = shop.claim('mail')
    assert shop.run('claim', 'mail').returncode != 0
    why = shop.object('why', second)
    assert (why['why'], why['ahead'], why['concurrency_key']) == ('key', first, 'k')
    assert why['holder']['id'] == claim['claim']
    assert f"waits for its key k, which job {first} holds, claimed by " in shop.ok('why', second)
    shop.ok('complete', env=claim['env'])
    assert shop.claim('mail')['jobs'][0]['id'] == second


def test_the_policy_of_conflicts_is_kept(shop):
    shop.put('mail', 'x')
    policy = shop.object('queue', 'show', 'mail')['policy']
    assert (policy['on_conflict'], policy['key_waiting_max']) == ('wait', 0)
    shop.ok('queue', 'set', 'mail', 'on-conflict=latest', 'key-waiting-max=7')
    assert 'on-conflict=latest\nkey-waiting-max=7\n' in shop.ok('queue', 'show', 'mail')


def test_a_skipped_job_says_for_whom(shop):
    shop.ok('queue', 'set', 'mail', 'on-conflict=skip')
    first = put(shop, 'k')
    second = shop.object('put', 'mail', '--concurrency-key', 'k', 'x')
    assert second['state'] == 'skipped'
    claim = shop.claim('mail')
    why = shop.object('why', second['id'])
    assert (why['why'], why['ahead'], why['holder']['id']) == ('skipped', first, claim['claim'])
    assert f', for job {first}, which had its key k\n' in shop.ok('why', second['id'])
    assert shop.object('show', second['id'])['state'] == 'skipped'
    assert shop.object('ls', 'mail', '--state', 'skipped')['id'] == second['id']
    shop.ok('complete', env=claim['env'])
    assert shop.object('put', 'mail', '--concurrency-key', 'k', 'x')['state'] == 'ready'


def test_a_put_beyond_the_bound_of_a_key_is_refused(shop):
    shop.ok('queue', 'set', 'mail', 'key-waiting-max=1')
    put(shop, 'k')
    put(shop, 'other')
    line = shop.refused(UNAVAILABLE, 'put', 'mail', '--concurrency-key', 'k', 'x')
    assert 'has as many jobs waiting as its key_waiting_max allows, 1' in line
    assert counts(shop)['ready'] == 2


def test_only_the_latest_waits_while_a_killed_runner_is_replaced(shop, pipe):
    shop.ok('queue', 'set', 'mail', 'on-conflict=latest')
    put(shop, 'k')
    script = f'echo $BATON_JOB $BATON_ATTEMPT > {pipe.path}; ' \
             '[ $BATON_JOB$BATON_ATTEMPT != 11 ] || sleep 1000'
    first = shop.start('work', 'mail', '--', 'sh', '-c', script)
    assert pipe.line() == '1 1'
    for _ in range(3):
        put(shop, 'k')
    first.kill()
    first.wait(PATIENCE)
    assert shop.run('work', 'mail', '--until-empty', '--', 'sh', '-c',
                    f'echo $BATON_JOB $BATON_ATTEMPT >> {shop.folder}/ran').returncode == 0
    assert (shop.folder / 'ran').read_text() == '1 2\n4 1\n'
    skipped = {job['id']: shop.object('show', job['id'])['ahead']
               for job in shop.objects('ls', 'mail', '--state', 'skipped')}
    assert skipped == {'2': '3', '3': '4'}


def test_a_running_job_is_replaced(shop, pipe):
    shop.ok('queue', 'set', 'mail', 'on-conflict=replace')
    first = put(shop, 'k')
    script = f'trap "echo asked $BATON_JOB > {pipe.path}; exit 1" TERM; ' \
             f'echo on $BATON_JOB > {pipe.path}; while :; do sleep 1000 & wait; done'
    runner = shop.start('work', 'mail', '--grace', '100s', '--', 'sh', '-c', script)
    assert pipe.line() == f'on {first}'
    second = put(shop, 'k')
    assert [pipe.line() for _ in range(2)] == [f'asked {first}', f'on {second}']
    shown = shop.object('show', first)
    assert (shown['state'], shown['ahead']) == ('skipped', second)
    runner.kill()


def test_a_runner_that_is_killed_while_its_job_is_replaced_loses_neither(shop, pipe):
    shop.ok('queue', 'set', 'mail', 'on-conflict=replace')
    first = put(shop, 'k')
    # It ignores the signal, so that it is still to be replaced when its runner is killed.
    script = f'trap "" TERM; echo on $BATON_JOB > {pipe.path}; while :; do sleep 1000; done'
    runner = shop.start('work', 'mail', '--grace', '1h', '--', 'sh', '-c', script)
    assert pipe.line() == f'on {first}'
    second = put(shop, 'k')
    assert f'to be cancelled for job {second}, which replaces it' in shop.ok('why', first)
    runner.kill()
    runner.wait(PATIENCE)
    ran = shop.folder / 'ran'
    assert shop.run('work', 'mail', '--until-empty', '--', 'sh', '-c',
                    f'echo $BATON_JOB >> {ran}').returncode == 0
    assert ran.read_text() == f'{second}\n'
    shown = shop.object('show', first)
    assert (shown['state'], shown['ahead']) == ('skipped', second)


def test_a_failed_job_keeps_its_key_until_its_next_attempt(shop):
    shop.ok('queue', 'set', 'mail', 'backoff=fixed', 'base=1h')
    first, second = put(shop, 'k'), put(shop, 'k')
    shop.ok('fail', '--error', 'e', env=shop.claim('mail')['env'])
    assert f'job {first} holds and keeps for its next attempt until' in shop.ok('why', second)
    shop.ok('queue', 'set', 'mail', 'hold-on-retry=give-up')
    assert shop.run('claim', 'mail').returncode != 0
    shop.ok('retry', first)
    shop.ok('fail', '--error', 'e', env=shop.claim('mail')['env'])
    assert shop.claim('mail')['jobs'][0]['id'] == second


@pytest.mark.parametrize('kind', ['shop', 'far_shop'])
def test_a_killed_runner_leaves_no_key_held_and_no_two_run(kind, pipe, request):
    shop = request.getfixturevalue(kind)
    for key in 'k', 'k', 'other':
        put(shop, key)
    # The lock is another proof that no two of a key run: it is not Baton's.
    script = f'exec 9> {shop.folder}/lock-$BATON_KEY; flock -n 9 || echo two of $BATON_KEY ' \
             f'> {pipe.path}; echo $BATON_KEY $BATON_JOB $BATON_ATTEMPT > {pipe.path}; ' \
             '[ $BATON_JOB$BATON_ATTEMPT != 11 ] || sleep 1000'
    first = shop.start('work', 'mail', '-j', '4', '--', 'sh', '-c', script)
    assert sorted(pipe.line() for _ in range(2)) == ['k 1 1', 'other 3 1']
    second = shop.start('work', 'mail', '-j', '4', '--', 'sh', '-c', script)
    why = shop.object('why', '2')
    assert (why['why'], why['ahead']) == ('key', '1')
    first.kill()
    first.wait(PATIENCE)
    ran = []
    while len(ran) < 2:
        ran += [line for line in [pipe.line()] if line != 'other 3 2']  # its end may be lost, too
    assert ran == ['k 1 2', 'k 2 1']
    second.kill()


def put_both(shop, lane, key, text='x'):
    return shop.put('mail', '--lane', lane, '--concurrency-key', key, text)


def test_a_job_with_a_lane_and_a_key_shows_both_and_why_says_what_it_waits_for(shop):
    first, second = put_both(shop, 'a', 'k'), put_both(shop, 'b', 'k')
    third = put_both(shop, 'b', 'l')
    shown = shop.object('show', first)
    assert (shown['lane'], shown['concurrency_key']) == ('a', 'k')
    assert f'job {first} comes first of its key' in shop.ok('why', second)
    assert f'job {second} comes first in its lane' in shop.ok('why', third)
    claim = shop.object('claim', 'mail')
    assert (claim['lane'], claim['concurrency_key']) == ('a', 'k')
    why = shop.object('why', second)
    assert (why['why'], why['ahead']) == ('key', first)
    shop.ok('check')


@pytest.mark.parametrize('change, words', [
    ('on-conflict=skip', 'on_conflict is not wait'), ('key-fair=on', 'key_fair is on'),
])
def test_a_lane_and_a_key_are_refused_where_the_policy_cannot_be_kept(shop, change, words):
    shop.ok('queue', 'set', 'mail', change)
    said = shop.refused(DATA, 'put', 'mail', '--lane', 'a', '--concurrency-key', 'k', 'x')
    assert 'both a lane and a key' in said and words in said
    shop.put('other', '--lane', 'a', '--concurrency-key', 'k', 'x')
    said = shop.refused(DATA, 'queue', 'set', 'other', change)
    assert 'has had some with both a lane and a key' in said and words in said


def test_a_bound_of_a_key_counts_what_waits_in_lanes_whoever_is_killed(shop, pipe):
    shop.ok('queue', 'set', 'mail', 'key-waiting-max=2')
    first = shop.put('mail', '--lane', 'a', '--concurrency-key', 'k', 'x')
    script = f'echo $BATON_JOB $BATON_ATTEMPT > {pipe.path}; [ $BATON_ATTEMPT = 2 ] || sleep 1000'
    runner = shop.start('work', 'mail', '--', 'sh', '-c', script)
    assert pipe.line() == f'{first} 1'
    put_both(shop, 'a', 'k')
    shop.put('mail', '--concurrency-key', 'k', '--concurrency-key', 'l', 'x')
    both = ['put', 'mail', '--lane', 'b', '--concurrency-key', 'k', '--concurrency-key', 'm', 'x']
    assert 'key "k" of queue "mail" has as many jobs waiting' in shop.refused(UNAVAILABLE, *both)
    runner.kill()
    runner.wait(PATIENCE)
    second = shop.start('work', 'mail', '--', 'sh', '-c', script)
    assert pipe.line() == f'{first} 2'
    # One of the two runs, and the other waits.
    assert pipe.line().endswith(' 1')
    shop.ok(*both)
    shop.refused(UNAVAILABLE, *both)
    second.kill()
    shop.ok('check')


def test_a_killed_runner_leaves_no_key_held_that_lanes_want(shop, pipe):
    for lane in 'abc':
        put_both(shop, lane, 'k')
    put_both(shop, 'a', 'other')
    script = f'exec 9> {shop.folder}/lock-$BATON_KEY; flock -n 9 || echo two of $BATON_KEY ' \
             f'> {pipe.path}; echo $BATON_LANE $BATON_KEY $BATON_ATTEMPT > {pipe.path}; ' \
             '[ $BATON_JOB$BATON_ATTEMPT != 11 ] || sleep 1000'
    first = shop.start('work', 'mail', '-j', '4', '--', 'sh', '-c', script)
    assert pipe.line() == 'a k 1'
    second = shop.start('work', 'mail', '-j', '4', '--', 'sh', '-c', script)
    first.kill()
    first.wait(PATIENCE)
    ran = [pipe.line() for _ in range(4)]
    assert [line for line in ran if ' k ' in line] == ['a k 2', 'b k 1', 'c k 1']
    assert ran.index('a other 1') > 0
    second.kill()
    shop.ok('check')


def test_as_many_run_as_the_limit_says_and_more_when_it_is_raised(shop, pipe, tmp_path):
    shop.ok('queue', 'set', 'mail', 'key-limit=2')
    go = Pipe(tmp_path / 'go')
    for _ in range(6):
        put(shop, 'k')
    other = put(shop, 'other')
    script = f'echo $BATON_JOB > {pipe.path}; read x < {go.path}'
    shop.start('work', 'mail', '-j', '8', '--', 'sh', '-c', script)
    assert {pipe.line() for _ in range(3)} == {'1', '2', other}
    found = counts(shop)
    assert (found['running'], found['ready']) == (3, 4)
    shop.ok('queue', 'set', 'mail', 'key-limit=4')
    assert {pipe.line() for _ in range(2)} == {'3', '4'}
    found = counts(shop)
    assert (found['running'], found['ready']) == (5, 2)


def test_keys_take_turns_and_a_kill_gives_none_back(shop, pipe):
    shop.ok('queue', 'set', 'mail', 'key-fair=on', 'shards=1')
    for key in 'aaaabbc':
        put(shop, key)
    script = f'echo $BATON_KEY $BATON_JOB $BATON_ATTEMPT > {pipe.path}; ' \
             '[ $BATON_JOB$BATON_ATTEMPT != 11 ] || sleep 1000'
    runner = shop.start('work', 'mail', '-j', '1', '--', 'sh', '-c', script)
    assert pipe.line() == 'a 1 1'
    runner.kill()
    runner.wait(PATIENCE)
    ran = shop.folder / 'ran'
    assert shop.run('work', 'mail', '-j', '1', '--until-empty', '--', 'sh', '-c',
                    f'echo $BATON_KEY >> {ran}').returncode == 0
    assert ran.read_text().split() == list('bcabaaa')


def test_a_key_starts_so_often_and_why_says_when_it_may_again(shop):
    shop.ok('queue', 'set', 'mail', 'key-rate=2/1h')
    policy = shop.object('queue', 'show', 'mail')['policy']
    assert policy['key_rate'] == {'starts': 2, 'window_ms': 3600000}
    jobs = [put(shop, 'k') for _ in range(3)]
    for _ in range(2):
        claim = shop.claim('mail')
        shop.ok('complete', claim['claim'], claim['token'])
    assert shop.run('claim', 'mail').returncode != 0
    why = shop.object('why', jobs[2])
    assert (why['why'], why['concurrency_key']) == ('rate', 'k')
    assert why['due'] is not None
    text = shop.ok('why', jobs[2])
    assert 'has started as often as it may, 2 in 1h, and waits until ' in text
    shop.ok('queue', 'set', 'mail', 'key-rate=off')
    assert shop.object('queue', 'show', 'mail')['policy']['key_rate'] is None
    assert shop.claim('mail')['jobs'][0]['id'] == jobs[2]


def test_a_runner_starts_a_key_again_when_its_window_is_over(shop, pipe):
    shop.ok('queue', 'set', 'mail', 'key-rate=1/1500ms', 'shards=1')
    for key in 'aab':
        put(shop, key)
    shop.start('work', 'mail', '-j', '1', '--', 'sh', '-c', f'echo $BATON_KEY > {pipe.path}')
    assert [pipe.line() for _ in range(3)] == ['a', 'b', 'a']


@pytest.mark.parametrize('timeout', [[], ['--timeout', '1h']])
def test_a_command_that_holds_its_key_for_too_long_is_ended(shop, pipe, timeout):
    shop.ok('queue', 'set', 'mail', 'key-ttl=300ms', 'attempts=1')
    first, second = put(shop, 'k'), put(shop, 'k')
    script = f'echo $BATON_JOB > {pipe.path}; [ $BATON_JOB = {second} ] || sleep 1000'
    shop.start('work', 'mail', '-j', '2', *timeout, '--', 'sh', '-c', script)
    assert [pipe.line(), pipe.line()] == [first, second]
    job = shop.object('show', first)
    assert (job['state'], job['error']) == ('dead', 'it held its key for 300ms')


@pytest.mark.parametrize('says, state', [('True', 'done'), ('False', 'dead')])
def test_a_worker_that_says_how_far_it_is_keeps_its_key(shop, says, state):
    shop.ok('queue', 'set', 'mail', 'key-ttl=2s', 'attempts=1', 'keep=1h')
    job = put(shop, 'k')
    script = 'import json, socket, time; s = socket.socket(fileno=3).makefile("rw")\n' \
             'claim = json.loads(s.readline())["claim"]\n' \
             'def say(what):\n' \
             '    s.write(json.dumps({"claim": claim, **what}) + "\\n"); s.flush()\n' \
             'end = time.monotonic() + 3\n' \
             f'while time.monotonic() < end or not {says}:\n' \
             f'    {says} and say({{"progress": 1}}); time.sleep(0.05)\n' \
             'say({"ok": True}); s.readline()'
    shop.run('work', 'mail', '--stream', '--until-empty', '--', 'python3', '-c', script)
    assert shop.object('show', job)['state'] == state
    assert state == 'done' or shop.object('show', job)['error'] == 'it held its key for 2s'


def test_a_worker_gets_the_key_and_emits_with_one(shop):
    put(shop, 'k')
    script = 'import json, socket; s = socket.socket(fileno=3).makefile("rw")\n' \
             'claim = json.loads(s.readline())\n' \
             'emit = {"queue": "out", "payload": claim["concurrency_key"],' \
             ' "concurrency_key": "l"}\n' \
             'done = {"claim": claim["claim"], "ok": True, "emit": [emit]}\n' \
             's.write(json.dumps(done) + "\\n")\n' \
             's.flush(); s.readline()'
    result = shop.run('work', 'mail', '--stream', '--until-empty', '--', 'python3', '-c', script)
    assert result.returncode == 0, result
    job = shop.object('ls', 'out')
    assert job['concurrency_key'] == 'l'
    assert json.loads(shop.ok('show', job['id'], '--json'))['payload'] == 'k'


def put_several(shop, keys, text='x', *arguments):
    options = [word for key in keys for word in ('--concurrency-key', key)]
    return shop.put('mail', *options, *arguments, text)


def test_several_keys_are_shown_wherever_their_job_is(shop):
    job = put_several(shop, ['l', 'k', 'l'])
    assert shop.object('ls', 'mail')['concurrency_key'] == ['k', 'l']
    assert shop.object('show', job)['concurrency_key'] == ['k', 'l']
    assert 'keys      k, l\n' in shop.ok('show', job)
    assert shop.object('claim', 'mail')['concurrency_key'] == ['k', 'l']
    shop.ok('check')


def test_a_shell_gets_several_keys_on_a_line_each(shop):
    put_several(shop, ['l', 'k'])
    assert "BATON_KEY='k\nl'" in shop.ok('claim', 'mail', '--shell')


def test_each_line_of_a_file_may_have_several_keys(shop):
    lines = b'{"payload": 1, "concurrency_key": ["b", "a"]}\n{"payload": 2}\n' \
            b'{"payload": 3, "concurrency_key": "c"}\n{"payload": 4, "concurrency_key": []}\n'
    shop.ok('put', 'mail', '--file', '-', '--concurrency-key', 'x', '--concurrency-key', 'y',
            input=lines)
    assert [job['concurrency_key'] for job in shop.objects('ls', 'mail')] == \
        [['a', 'b'], ['x', 'y'], 'c', None]


@pytest.mark.parametrize('value, words', [
    ('[1]', 'a string, or a list of strings'), ('[["a"]]', 'a string, or a list of strings'),
    ('{"a": 1}', 'a string, or a list of strings'), ('[null]', 'a string, or a list of strings'),
    ('["1","2","3","4","5","6","7","8","9"]', 'more than 8 keys'), ('["a", ""]', 'key'),
])
def test_a_bad_list_of_keys_is_refused(shop, value, words):
    line = '{"payload": 1, "concurrency_key": %s}\n' % value
    assert words in shop.refused(DATA, 'put', 'mail', '--file', '-', input=line.encode())
    options = ['--concurrency-key=k'] * 9
    assert 'more than 8 times' in shop.refused(USAGE, 'put', 'mail', *options, 'x')


def test_why_names_the_key_that_is_held_and_who_has_it(shop):
    first = put(shop, 'k')
    both = put_several(shop, ['l', 'k'])
    behind = put(shop, 'l')
    shop.object('claim', 'mail')
    assert f'waits for its key k, which job {first} holds' in shop.ok('why', both)
    assert f'job {both} comes first of its key' in shop.ok('why', behind)
    why = shop.object('why', both)
    assert (why['why'], why['ahead'], why['key']) == ('key', first, 'k')
    assert why['concurrency_key'] == ['k', 'l']


def test_several_keys_are_refused_where_the_policy_cannot_be_kept(shop):
    shop.ok('queue', 'set', 'mail', 'key-fair=on')
    options = ['--concurrency-key=k', '--concurrency-key=l']
    said = shop.refused(DATA, 'put', 'mail', *options, 'x')
    assert 'several keys are given' in said and 'key_fair is on' in said


def test_a_killed_runner_leaves_none_of_several_keys_held(shop, pipe):
    for keys in (['k', 'l'], ['l', 'm'], ['m', 'k'], ['k', 'l', 'm']):
        put_several(shop, keys)
    script = 'n=5; for key in $BATON_KEY; do n=$((n+1)); ' \
             f'eval "exec $n> {shop.folder}/lock-$key"; ' \
             f'flock -n $n || echo two of $key > {pipe.path}; done; ' \
             f'echo $BATON_KEY $BATON_ATTEMPT > {pipe.path}; ' \
             '[ $BATON_JOB$BATON_ATTEMPT != 11 ] || sleep 1000'
    first = shop.start('work', 'mail', '-j', '4', '--', 'sh', '-c', script)
    assert pipe.line() == 'k l 1'
    second = shop.start('work', 'mail', '-j', '4', '--', 'sh', '-c', script)
    first.kill()
    first.wait(PATIENCE)
    assert [pipe.line() for _ in range(4)] == ['k l 2', 'l m 1', 'k m 1', 'k l m 1']
    shop.ok('check')
    second.terminate()


def put_to(shop, queue, key='k'):
    return shop.put(queue, '--concurrency-key', key, 'x')


def test_queues_of_a_class_share_its_policy_and_why_names_the_other_queue(shop):
    shop.ok('queue', 'set', 'mail', 'key-class=tenant', 'key-limit=2')
    shop.ok('queue', 'set', 'report', 'key-class=tenant')
    assert shop.object('queue', 'show', 'report')['policy']['key_limit'] == 2
    shop.ok('queue', 'set', 'report', 'key-limit=1')
    found = shop.object('queue', 'show', 'mail')['policy']
    assert (found['key_limit'], found['key_class']) == (1, 'tenant')
    first, second = put_to(shop, 'mail'), put_to(shop, 'report')
    shop.object('claim', 'mail')
    assert f'job {first} of queue mail holds' in shop.ok('why', second)
    why = shop.object('why', second)
    assert (why['why'], why['ahead'], why['ahead_queue']) == ('key', first, 'mail')
    assert ' k ' in shop.ok('top', '--once')
    shop.ok('check')


@pytest.mark.parametrize('change, words, status', [
    ('mode=lane', 'the mode is lane', DATA), ('key-scope=host', 'key_scope is not cluster', DATA),
    ('key-class=', 'has 1 jobs', TEMPORARY),
])
def test_what_a_queue_of_a_class_cannot_have_is_refused(shop, change, words, status):
    shop.ok('queue', 'set', 'mail', 'key-class=tenant')
    put_to(shop, 'mail')
    assert words in shop.refused(status, 'queue', 'set', 'mail', change)


def test_a_class_with_a_bad_name_is_refused(shop):
    assert '255' in shop.refused(USAGE, 'queue', 'set', 'mail', 'key-class=' + 'c' * 256)
    assert 'key class' in shop.refused(DATA, 'queue', 'set', 'mail', 'key-class=\n')


@pytest.mark.parametrize('kind', ['shop', 'far_shop'])
def test_a_killed_runner_leaves_no_key_held_that_other_queues_want(kind, pipe, request):
    shop = request.getfixturevalue(kind)
    for queue in 'mail', 'report':
        shop.ok('queue', 'set', queue, 'key-class=tenant')
        for _ in range(2):
            put_to(shop, queue)
    # The lock is another proof that no two of a key run: it is not Baton's.
    script = f'exec 9> {shop.folder}/lock-$BATON_KEY; flock -n 9 || echo two of $BATON_KEY ' \
             f'> {pipe.path}; echo $BATON_QUEUE $BATON_JOB $BATON_ATTEMPT > {pipe.path}; ' \
             '[ $BATON_JOB$BATON_ATTEMPT != 11 ] || sleep 1000'
    first = shop.start('work', 'mail', '-j', '4', '--', 'sh', '-c', script)
    assert pipe.line() == 'mail 1 1'
    second = shop.start('work', 'report', '-j', '4', '--', 'sh', '-c', script)
    assert shop.object('why', '3')['ahead'] == '1'
    first.kill()
    first.wait(PATIENCE)
    third = shop.start('work', 'mail', '-j', '4', '--', 'sh', '-c', script)
    ran = [pipe.line() for _ in range(4)]
    assert sorted(ran) == ['mail 1 2', 'mail 2 1', 'report 3 1', 'report 4 1']
    assert ran.index('mail 1 2') < ran.index('mail 2 1')
    assert ran.index('report 3 1') < ran.index('report 4 1')
    for runner in second, third:
        runner.terminate()
        runner.wait(PATIENCE)
    shop.ok('check')


@pytest.mark.parametrize('kind', ['shop', 'far_shop'])
def test_starts_of_a_class_are_counted_whoever_is_killed(kind, pipe, request):
    shop = request.getfixturevalue(kind)
    shop.ok('queue', 'set', 'mail', 'key-class=tenant', 'key-rate=2/1h', 'key-waiting-max=3')
    shop.ok('queue', 'set', 'report', 'key-class=tenant')
    jobs = [put_to(shop, queue) for queue in ('mail', 'report', 'report')]
    full = shop.refused(TEMPORARY, 'put', 'mail', '--concurrency-key', 'k', 'x')
    assert 'key_waiting_max allows, 3' in full
    script = f'exec 9> {shop.folder}/lock-$BATON_KEY; flock -n 9 || echo two of $BATON_KEY ' \
             f'> {pipe.path}; echo $BATON_JOB $BATON_ATTEMPT > {pipe.path}; ' \
             '[ $BATON_JOB$BATON_ATTEMPT != 11 ] || sleep 1000'
    first = shop.start('work', 'mail', '-j', '4', '--', 'sh', '-c', script)
    assert pipe.line() == '1 1'
    first.kill()
    first.wait(PATIENCE)
    second = shop.start('work', 'mail', 'report', '-j', '4', '--', 'sh', '-c', script)
    ran = pipe.line()
    assert ran in ('1 2', '2 1')
    second.terminate()
    second.wait(PATIENCE)
    rest = [job for job in jobs if job != ran.split()[0]]
    assert [shop.object('why', job)['why'] for job in rest] == ['rate', 'rate']
    shop.ok('check')


@pytest.mark.parametrize('kind', ['shop', 'far_shop'])
def test_one_that_is_replaced_from_another_queue_gives_its_key_when_it_is_killed(
        kind, pipe, request):
    shop = request.getfixturevalue(kind)
    shop.ok('queue', 'set', 'mail', 'key-class=tenant', 'on-conflict=replace')
    shop.ok('queue', 'set', 'report', 'key-class=tenant')
    script = f'exec 9> {shop.folder}/lock-$BATON_KEY; flock -n 9 || echo two of $BATON_KEY ' \
             f'> {pipe.path}; trap "" TERM; echo $BATON_JOB $BATON_ATTEMPT > {pipe.path}; ' \
             '[ $BATON_QUEUE != mail ] || while :; do sleep 1; done'
    old = put_to(shop, 'mail')
    first = shop.start('work', 'mail', '--', 'sh', '-c', script)
    assert pipe.line() == f'{old} 1'
    new = put_to(shop, 'report')
    assert shop.object('why', new)['ahead'] == old
    second = shop.start('work', 'report', '--', 'sh', '-c', script)
    first.kill()
    first.wait(PATIENCE)
    assert pipe.line() == f'{new} 1'
    second.terminate()
    second.wait(PATIENCE)
    assert shop.object('why', old)['state'] == 'skipped'
    shop.ok('check')
