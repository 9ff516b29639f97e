"""baton queue: list, show, set, pause and resume."""
import os
import re
import sqlite3

import pytest

OK, NO, USAGE, DATA, TEMPORARY = 0, 1, 64, 65, 75
DEFAULTS = {
    'mode': 'open', 'shards': '16', 'payload-max': '1048576', 'waiting-max': '0', 'attempts': '20',
    'backoff': 'exponential', 'base': '1s', 'cap': '1h', 'lane-attempts': '5',
    'lane-backoff': 'exponential', 'lane-base': '1s', 'lane-cap': '30s', 'on-retry': 'block',
    'on-dead': 'continue', 'dedupe': '1d', 'keep': '0', 'key-limit': '1', 'hold-on-retry': 'keep',
    'on-conflict': 'wait', 'key-waiting-max': '0', 'key-fair': 'off',
    'key-rate': 'off', 'key-ttl': '0', 'key-scope': 'cluster', 'key-class': ''}
OTHERS = {
    'mode': 'lane', 'shards': '4096', 'payload-max': '67108864', 'waiting-max': '1000000000000',
    'attempts': '1000000', 'backoff': 'fixed', 'base': '1ms', 'cap': '1d', 'lane-attempts': '1',
    'lane-backoff': 'none', 'lane-base': '2ms', 'lane-cap': '2s', 'on-retry': 'pass',
    'on-dead': 'hold', 'dedupe': '365d', 'keep': '365d', 'key-limit': '1000000',
    'hold-on-retry': 'give-up', 'on-conflict': 'replace', 'key-waiting-max': '10000',
    'key-fair': 'on', 'key-rate': '1000/365d', 'key-ttl': '1d', 'key-scope': 'cluster',
    'key-class': ''}


def policy(shop, queue):
    _, text = shop.ok('queue', 'show', queue).split('\n\n')
    return dict(line.split('=', 1) for line in text.splitlines())


def test_queues_are_listed_with_their_counts(shop):
    shop.put('b', 'x')
    shop.put('b', 'y', '--delay', '1h')
    shop.put('a', 'z')
    shop.ok('complete', env=shop.claim('a')['env'])
    shop.ok('queue', 'pause', 'a')
    rows = [re.split(r'\s{2,}', line) for line in shop.ok('queue').splitlines()]
    assert rows[0] == ['QUEUE', 'MODE', 'READY', 'ON-KEY', 'DELAYED', 'RUNNING', 'DEAD', 'DONE',
                       'FAILED', 'OLDEST']
    assert [row[:9] for row in rows[1:]] == [
        ['a', 'pull, paused', '0', '0', '0', '0', '0', '1', '0'],
        ['b', 'open', '1', '0', '1', '0', '0', '0', '0']]
    assert rows[1][9] == '-' and rows[2][9] != '-'
    a, b = shop.objects('queue', 'list')
    assert (a['queue'], a['paused'], a['done'], b['ready'], b['delayed']) == ('a', True, 1, 1, 1)
    assert a['oldest_ms'] == 0 and b['oldest_ms'] >= 0


def test_what_waits_for_a_key_is_counted(shop):
    for _ in range(3):
        shop.put('mail', '--concurrency-key', 'k', 'x')
    shop.put('mail', '--concurrency-key', 'other', 'x')
    shop.put('mail', '--lane', 'l', '--concurrency-key', 'k', 'x')

    def waiting():
        (queue,) = shop.objects('queue')
        assert shop.ok('queue').splitlines()[1].split()[3] == str(queue['waiting_on_key'])
        return queue['ready'], queue['waiting_on_key']
    assert waiting() == (5, 3)
    claim = shop.claim('mail')
    assert waiting() == (4, 3)
    assert shop.ok('why', '--queue', 'mail').startswith(
        'queue mail has 4 ready, 3 waiting for a key, 0 delayed, 1 running and 0 dead\n')
    shop.ok('complete', env=claim['env'])
    assert waiting() == (4, 2)


def test_many_queues_are_listed(shop):
    for i in range(250):
        shop.ok('queue', 'set', f'q{i:03}', 'mode=pull')
    assert [q['queue'] for q in shop.objects('queue')] == [f'q{i:03}' for i in range(250)]
    assert len(shop.ok('queue').splitlines()) == 251


def test_a_new_queue_has_what_the_manual_says(shop):
    shop.put('mail', 'x')
    assert policy(shop, 'mail') == DEFAULTS


def test_every_key_can_be_set_and_is_shown_as_it_is_set(shop):
    shop.ok('queue', 'set', 'mail', *(f'{k}={v}' for k, v in OTHERS.items()))
    assert policy(shop, 'mail') == OTHERS
    shop.ok('queue', 'set', 'mail', *(f'{k}={v}' for k, v in DEFAULTS.items() if k != 'shards'))
    assert policy(shop, 'mail') == {**DEFAULTS, 'shards': '4096'}


def test_what_is_not_set_stays(shop):
    shop.ok('queue', 'set', 'mail', 'keep=1h')
    shop.ok('queue', 'pause', 'mail')
    shop.ok('queue', 'set', 'mail', 'attempts=3')
    found = shop.object('queue', 'show', 'mail')
    assert (found['paused'], found['policy']['keep_ms'], found['policy']['attempts']) == (
        True, 3600000, 3)
    assert found['policy']['lane_backoff'] == 'exponential'


def test_each_key_changes_nothing_else(shop):
    shop.ok('queue', 'set', 'mail', 'shards=4096')
    expected = {**DEFAULTS, 'shards': '4096'}
    for key, value in {**OTHERS, 'cap': '2h'}.items():
        shop.ok('queue', 'set', 'mail', f'{key}={value}')
        expected[key] = value
        assert policy(shop, 'mail') == expected


def test_what_several_set_at_the_same_moment_is_all_there(shop):
    shop.ok('queue', 'set', 'mail', 'shards=16')
    with sqlite3.connect(shop.path, isolation_level=None) as store:
        store.execute('BEGIN IMMEDIATE')    # so that they all come to the point of writing
        setters = [shop.start('queue', 'set', 'mail', f'{key}={value}')
                   for key, value in OTHERS.items() if key != 'shards']
        store.execute('COMMIT')
    store.close()
    assert [setter.wait() for setter in setters] == [OK] * len(setters)
    assert policy(shop, 'mail') == {**OTHERS, 'shards': '16'}


KEYS = ('mode, shards, payload-max, waiting-max, attempts, backoff, base, cap, lane-attempts, '
        'lane-backoff, lane-base, lane-cap, on-retry, on-dead, dedupe, keep, key-limit, '
        'hold-on-retry, on-conflict, key-waiting-max, key-fair, key-rate, key-ttl, key-scope, '
        'key-class')


@pytest.mark.parametrize('assignment, line', [
    ('shards=0', "shards is '0': 1 to 4096 are allowed"),
    ('shards=4097', "shards is '4097': 1 to 4096 are allowed"),
    ('payload-max=0', "payload-max is '0': 1 to 67108864 are allowed"),
    ('payload-max=67108865', "payload-max is '67108865': 1 to 67108864 are allowed"),
    ('waiting-max=1000000000001', "waiting-max is '1000000000001': 0 to 1000000000000 are allowed"),
    ('waiting-max=99999999999999999999999',
     "waiting-max is '99999999999999999999999': 0 to 1000000000000 are allowed"),
    ('waiting-max=', "waiting-max is '': 0 to 1000000000000 are allowed"),
    ('attempts=0', "attempts is '0': 1 to 1000000 are allowed"),
    ('lane-attempts=1000001', "lane-attempts is '1000001': 1 to 1000000 are allowed"),
    ('backoff=linear', "backoff is 'linear': exponential, fixed, none are allowed"),
    ('mode=push', "mode is 'push': open, pull, lane, runner are allowed"),
    ('on-retry=', "on-retry is '': block, pass are allowed"),
    ('on-dead=x', "on-dead is 'x': continue, hold are allowed"),
    ('base=0', 'base is 0: 1ms to 1d are allowed'),
    ('lane-base=2d', 'lane-base is 2d: 1ms to 1d are allowed'),
    ('cap=1d 1s', 'cap is 1d 1s: 1ms to 1d are allowed'),
    ('dedupe=0', 'dedupe is 0: 1ms to 365d are allowed'),
    ('keep=366d', 'keep is 366d: 0 to 365d are allowed'),
    ('atempts=3', f"unknown key 'atempts'; did you mean 'attempts'? The keys are {KEYS}"),
    ('colour=3', f"unknown key 'colour'; the keys are {KEYS}"),
    ('attempts', "'attempts' is no KEY=VALUE"),
    ('x' * 99 + '=1', f"'{'x' * 76}...' is no KEY=VALUE"),
])
def test_a_bad_value_is_explained_and_makes_nothing(shop, assignment, line):
    assert shop.refused(USAGE, 'queue', 'set', 'mail', 'keep=1h', assignment) == line
    assert not os.path.exists(shop.path)


def test_values_that_do_not_fit_together_change_nothing(shop):
    shop.ok('queue', 'set', 'mail', 'cap=2s')
    assert shop.refused(DATA, 'queue', 'set', 'mail', 'base=5s', 'keep=1h') == (
        'cap is 2s: 5s to 1d are allowed')
    assert policy(shop, 'mail') == {**DEFAULTS, 'cap': '2s'}


def test_the_shards_are_fixed(shop):
    shop.ok('queue', 'set', 'mail', 'shards=4')
    assert '4' in shop.refused(DATA, 'queue', 'set', 'mail', 'shards=8')


def test_the_mode_does_not_change_while_something_is_claimed(shop):
    shop.put('mail', 'x')
    claim = shop.claim('mail')
    assert 'mail' in shop.refused(TEMPORARY, 'queue', 'set', 'mail', 'mode=lane')
    shop.ok('abandon', env=claim['env'])
    shop.ok('queue', 'set', 'mail', 'mode=lane')


def test_a_paused_queue_gives_nothing(shop):
    shop.put('mail', 'x')
    shop.ok('queue', 'pause', 'mail')
    assert shop.run('claim', 'mail').returncode == TEMPORARY
    shop.ok('queue', 'resume', 'mail')
    shop.claim('mail')


@pytest.mark.parametrize('verb', ['show', 'pause', 'resume'])
def test_a_queue_that_is_not_there_is_no(shop, verb):
    shop.put('mail', 'x')
    assert shop.refused(NO, 'queue', verb, 'male') == (
        "there is no queue 'male'; 'baton queue list' has those there are")


@pytest.mark.parametrize('arguments, line', [
    (['lst'], "'queue' cannot 'lst'; did you mean 'list'?"),
    (['resum'], "'queue' cannot 'resum'; did you mean 'resume'?"),
    (['x'], "'queue' cannot 'x': list, show, set, pause and resume are known"),
    (['list', 'x'], "'queue list' got 'x' too"),
    (['show'], "'queue show' needs the name of a queue"),
    (['show', 'a', 'b'], "'queue show' got 'b' too"),
    (['set', 'a'], "'queue set' needs the name of a queue, and KEY=VALUE"),
    (['pause', 'a/b'], "the queue's name is 'a/b': it may not have a '/'"),
    (['pause', 'q' * 256], "the queue's name has 256 bytes: 1 to 255 are allowed"),
])
def test_a_wrong_call_gets_one_clear_line(shop, arguments, line):
    assert shop.refused(USAGE, 'queue', *arguments) == line
