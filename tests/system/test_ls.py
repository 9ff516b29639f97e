"""baton ls, show, why, cancel and retry."""
import re

import pytest

OK, NO, USAGE, DATA = 0, 1, 64, 65


def test_jobs_are_listed_in_order(shop):
    shop.put('mail', '--lane', 'ada', 'a')
    shop.put('mail', 'b', '--at', '2099-01-01T00:00:00Z')
    shop.put('print', 'c')
    shop.ok('fail', '--error', 'no\troute', '--retry-in', '1h', env=shop.claim('print')['env'])
    titles, *rows = [re.split(r'\s{2,}', line.strip()) for line in shop.ok('ls').splitlines()]
    assert titles == ['ID', 'QUEUE', 'LANE', 'STATE', 'ATTEMPT', 'PUT', 'DUE', 'NOTE']
    assert [row[:5] for row in rows] == [
        ['1', 'mail', 'ada', 'ready', '0'], ['2', 'mail', '-', 'delayed', '0'],
        ['3', 'print', '-', 'retry', '1']]
    assert rows[1][6] == '2099-01-01 00:00:00'
    assert rows[2][7] == 'no\\x09route'


def test_a_claimed_job_shows_who_has_it(shop):
    shop.put('mail', 'a')
    shop.claim('mail', '--owner', 'ada\u200b')
    assert shop.ok('ls').splitlines()[1].endswith('  ada\\xe2\\x80\\x8b')


def test_a_long_error_is_cut_in_the_list(shop):
    shop.put('mail', 'a')
    shop.ok('fail', '--dead', '--error', 'x' * 59 + '\u20ac' * 900, env=shop.claim('mail')['env'])
    assert shop.ok('ls').splitlines()[1].endswith(' ' + 'x' * 59 + '...')
    assert len(shop.object('ls')['error'].encode()) <= 200
    assert len(shop.object('show', '1')['error']) == 59 + 900


def test_an_empty_list_is_empty(shop):
    shop.ok('queue', 'set', 'mail', 'mode=pull')
    assert shop.ok('ls') == ''
    assert shop.objects('ls') == []
    assert shop.ok('ls', 'mail') == ''


def test_a_list_of_a_queue_that_is_not_there_is_no(shop):
    shop.ok('queue', 'set', 'mail', 'mode=pull')
    for more in ((), ('--json',), ('lane',), ('--by-error',)):
        result = shop.run('ls', 'mial', *more)
        assert (result.returncode, result.stdout) == (1, b'')
        assert result.stderr == (b"baton: there is no queue 'mial'; "
                                 b"'baton queue list' has those there are\n")


def test_only_what_is_asked_for_is_listed(shop):
    for queue, lane in (('a', 'x'), ('a', 'y'), ('b', 'x')):
        shop.put(queue, '--lane', lane, 'p')
    shop.put('a', 'p', '--delay', '1h')
    assert list(shop.states('a')) == ['1', '2', '4']
    assert list(shop.states('a', 'x')) == ['1']
    assert list(shop.states('--state', 'delayed')) == ['4']
    assert list(shop.states('a', '--state', 'ready', '--limit', '1')) == ['1']
    assert shop.states('a', '--state', 'dead') == {}


def test_a_list_goes_on_where_it_ended(shop):
    shop.ok('put', 'mail', '--file', '-', input=b'{"payload": 1}\n' * 2500)
    result = shop.run('ls', '--limit', '3')
    assert result.stdout.count(b'\n') == 4
    assert result.stderr == b'baton: there may be more: go on with --after 3\n'
    assert list(shop.states('--after', '3', '--limit', '2')) == ['4', '5']
    assert list(shop.states('--after', '2498')) == ['2499', '2500']
    assert len(shop.objects('ls')) == 100
    assert [job['seq'] for job in shop.objects('ls', '--limit', '2200')] == list(range(1, 2201))
    everything = shop.ok('ls', '--limit', '9999').splitlines()
    assert len(everything) == 2501
    assert sum(line.lstrip().startswith('ID ') for line in everything) == 1


def test_a_reader_who_leaves_ends_the_list(shop):
    shop.ok('put', 'mail', '--file', '-', input=b'{"payload": 1}\n' * 2500)
    with open('/dev/full', 'wb') as full:
        for form in ([], ['--json']):
            assert shop.run('ls', '--limit', '9999', *form, stdout=full).returncode == 74


@pytest.mark.parametrize('arguments, line', [
    (['ls', '--state', 'reddy'], "unknown state 'reddy'; did you mean 'ready'?"),
    (['ls', '--state', 'x'],
     "unknown state 'x': ready, delayed, retry, claimed, dead, done and skipped are known"),
    (['ls', '--state', 'gone'], "unknown state 'gone'; did you mean 'done'?"),
    (['ls', '--limit', '0'], "'--limit' takes a number from 1 to 100000000, not '0'"),
    (['ls', '--limit', '100000001'],
     "'--limit' takes a number from 1 to 100000000, not '100000001'"),
    (['ls', '--after', 'x'], "'--after' takes the seq of a job, not 'x'"),
    (['ls', '--after', str(2 ** 53)], f"'--after' takes the seq of a job, not '{2 ** 53}'"),
    (['ls', 'a/b'], "the queue's name is 'a/b': it may not have a '/'"),
    (['ls', 'a', 'l' * 256], "the lane's name has 256 bytes: 1 to 255 are allowed"),
    (['ls', 'a', 'b', 'c'], "'ls' takes 2 arguments, but got 'c' too"),
    (['show'], "'show' needs the id of a job"),
    (['show', '1', '2'], "'show' takes one argument, but got '2' too"),
    (['show', '0'], "'0' is no id of a job: it is a number, as 'baton put' prints it"),
    (['show', '1x'], "'1x' is no id of a job: it is a number, as 'baton put' prints it"),
    (['show', str(2 ** 53)],
     f"'{2 ** 53}' is no id of a job: it is a number, as 'baton put' prints it"),
    (['show', '1', '--payload', '--json'], '--payload and --json cannot be together'),
    (['why'], "'why' needs the id of a job, or --queue"),
    (['why', '-1'], "unknown option '-1'; 'baton why --help' says more"),
    (['cancel'], "'cancel' needs the id of a job"),
    (['cancel', '1', 'x'], "'x' is no id of a job: it is a number, as 'baton put' prints it"),
    (['retry'], "'retry' needs the id of a job"),
    (['retry'] + ['1'] * 10001, "'retry' takes 10000 arguments, but got '1' too"),
], ids=range(22))
def test_a_wrong_call_gets_one_clear_line(shop, arguments, line):
    assert shop.refused(USAGE, *arguments) == line


def test_everything_about_a_job_is_shown(shop):
    shop.put('mail', '--lane', 'l', '--join=g', '--after-commit', 'a\033[1m\n')
    shown = dict(line.split(None, 1) for line in shop.ok('show', '1').splitlines())
    assert {k: shown[k] for k in shown if k != 'put'} == {
        'id': '1', 'queue': 'mail', 'lane': 'l', 'state': 'ready', 'attempt': '0', 'priority': '0',
        'why': "job 1 is ready, but nobody works on its queue: 'baton work mail -- COMMAND' does",
        'delivery': 'after commit',
        'join': 'g', 'payload': 'a\\x1b[1m\\x0a'}
    claim = shop.claim('mail', '--owner', 'ada')
    shown = dict(line.split(None, 1) for line in shop.ok('show', '1').splitlines())
    assert (shown['claim'], shown['owner'], shown['fence']) == (
        claim['claim'], 'ada', str(claim['fence']))


def test_a_job_that_is_not_there_is_no(shop):
    shop.put('mail', 'a')
    for command in ('show', 'why'):
        assert shop.refused(NO, command, '2') == (
            'there is no job 2: it was never put, is done, or was cancelled')


def sentence(shop, job):
    return shop.ok('why', job).strip()


def test_why_says_what_keeps_a_job(shop):
    shop.ok('queue', 'set', 'mail', 'on-dead=hold', 'lane-attempts=1')
    for payload in 'ab':
        shop.put('mail', '--lane', 'l', payload)
    assert sentence(shop, '1') == (
        "job 1 is ready, but nobody works on its queue: 'baton work mail -- COMMAND' does")
    assert sentence(shop, '2') == 'job 2 is ready, but job 1 comes first in its lane'
    assert shop.object('why', '2') == {
        'id': '2', 'why': 'behind', 'due': None, 'ahead': '1', 'ahead_queue': 'mail',
        'concurrency_key': None, 'key': None, 'holder': None, 'stall': None, 'runner': None,
        'shard': None}
    shop.ok('queue', 'pause', 'mail')
    assert sentence(shop, '1') == (
        "job 1 is ready, but its queue is paused: 'baton queue resume mail' goes on")
    shop.ok('queue', 'resume', 'mail')
    claim = shop.claim('mail', '--owner', 'ada', '--ttl', '1d')
    assert sentence(shop, '1').startswith('job 1 is claimed, attempt 1, by ada until 20')
    assert shop.object('why', '1')['why'] == 'claimed'
    shop.ok('fail', '--error', 'no\033', env=claim['env'])
    assert re.fullmatch(r'job 1 has failed for good at \S+ \S+: no\\x1b', sentence(shop, '1'))
    assert sentence(shop, '2') == (
        'job 2 is ready, but job 1, which is dead, holds its lane: retry or cancel that one')


def test_why_says_until_when_a_job_waits(shop):
    shop.ok('queue', 'set', 'mail', 'keep=1h')
    shop.put('mail', 'a', '--at', '2099-01-01T00:00:00Z')
    assert sentence(shop, '1').startswith('job 1 is delayed until 2099-01-01 00:00:00 (in ')
    assert shop.object('why', '1')['due'] == '2099-01-01T00:00:00.000Z'
    shop.put('mail', 'b')
    shop.ok('fail', '--error', 'e', '--retry-in', '1h', env=shop.claim('mail')['env'])
    assert re.fullmatch(r'job 2 has failed and waits for its next attempt until .* \(in .*\): e',
                        sentence(shop, '2'))
    shop.put('mail', 'c')
    shop.ok('complete', env=shop.claim('mail')['env'])
    assert sentence(shop, '3').startswith('job 3 was completed at ')


def test_a_claim_whose_time_is_over_is_told_as_such(shop):
    shop.put('mail', 'a')
    shop.claim('mail', '--owner', 'ada', '--ttl', '1ms')
    assert sentence(shop, '1') == (
        'job 1 was claimed, attempt 1, by ada whose time is over: the next who asks gets it')


def test_jobs_are_cancelled(shop):
    for i in range(3):
        shop.put('mail', str(i))
    shop.claim('mail')
    result = shop.run('cancel', '1', '2', '9')
    assert (result.returncode, result.stdout) == (NO, b'1 told\n2 removed\n9 missing\n')
    assert shop.states() == {'1': 'claimed', '3': 'ready'}
    assert sentence(shop, '1').endswith('; it is to be cancelled')
    assert shop.objects('cancel', '3') == [{'id': '3', 'answer': 'removed'}]


def test_dead_jobs_come_back_at_the_end_of_their_lane(shop):
    for payload in 'ab':
        shop.put('mail', '--lane', 'l', payload)
    shop.ok('fail', '--dead', '--error', 'e', env=shop.claim('mail')['env'])
    result = shop.run('retry', '1', '2', '9')
    assert (result.returncode, result.stdout) == (NO, b'1 ready\n2 unchanged\n9 missing\n')
    assert [job['id'] for job in shop.objects('ls', 'mail')] == ['2', '1']
    assert shop.object('show', '1')['attempt'] == 0
    assert shop.objects('cancel', '1', '2') == [{'id': '1', 'answer': 'removed'},
                                               {'id': '2', 'answer': 'removed'}]


def fail_all(shop, queue, errors):
    """Dead jobs, each with its error."""
    shop.ok('queue', 'set', queue, 'attempts=1', 'lane-attempts=1')
    jobs = []
    for error in errors:
        jobs.append(shop.put(queue, error))
        shop.ok('fail', '--error', error, env=shop.claim(queue)['env'])
    return jobs


def test_all_dead_jobs_of_a_queue_are_brought_back_or_those_with_an_error(shop):
    a, b, c = fail_all(shop, 'q', ['timeout of a', 'timeout of b', 'no such user'])
    other, = fail_all(shop, 'other', ['timeout'])
    ready = shop.put('q', 'x')
    assert shop.ok('retry', '--queue', 'q', '--error', 'timeout*').splitlines() == [
        f'{a} ready', f'{b} ready']
    assert shop.states('q') == {a: 'ready', b: 'ready', c: 'dead', ready: 'ready'}
    assert shop.ok('retry', '--queue', 'q', '--error', 'nothing') == ''
    assert shop.ok('retry', '--queue', 'q') == f'{c} ready\n'
    assert shop.ok('retry', '--queue', 'q') == ''
    assert shop.states('other') == {other: 'dead'}


def test_all_jobs_of_a_queue_are_cancelled_or_those_that_are_as_it_is_said(shop):
    dead, = fail_all(shop, 'q', ['broken'])
    lane = shop.put('q', '--lane', 'l', 'x')
    late = shop.put('q', '--delay', '1h', 'x')
    plain = shop.put('q', 'x')
    assert shop.ok('cancel', '--queue', 'q', '--state', 'delayed') == f'{late} removed\n'
    assert shop.ok('cancel', '--queue', 'q', '--lane', 'l') == f'{lane} removed\n'
    assert shop.ok('cancel', '--queue', 'q', '--error', 'br?ken') == f'{dead} removed\n'
    assert shop.ok('cancel', '--queue', 'q') == f'{plain} removed\n'
    assert shop.states('q') == {}


def test_which_jobs_are_meant_has_to_be_clear(shop):
    assert shop.refused(64, 'cancel', '--lane', 'l') == '--lane, --state and --error need --queue'
    assert shop.refused(64, 'retry', '--queue', 'q', '17') == "--queue takes no id, and got '17'"


@pytest.mark.parametrize('command', ['cancel', 'retry'])
def test_jobs_of_a_queue_that_is_not_there_are_no(shop, command):
    shop.put('mail', 'x')
    assert shop.refused(NO, command, '--queue', 'mial') == (
        "there is no queue 'mial'; 'baton queue list' has those there are")
    assert shop.states() == {'1': 'ready'}


def kill_one(shop, queue, error):
    """Puts a job that dies of that error, and gives its id."""
    job = shop.put(queue, 'x')
    claim = shop.claim(queue)
    shop.ok('fail', '--dead', '--error', error, env=claim['env'])
    return job


def test_dead_jobs_are_counted_by_their_error(shop):
    shop.ok('queue', 'set', 'mail', 'keep=1h')
    assert shop.ok('ls', '--by-error') == ''
    for error in ('no route', 'bad\033', 'no route', 'x' * 300, 'no route', 'bad\033'):
        last = kill_one(shop, 'mail', error)
    other = kill_one(shop, 'video', 'no route')
    shop.put('mail', 'alive')
    rows = shop.objects('ls', '--by-error')
    assert [(row['queue'], row['error'], row['count']) for row in rows[:2]] == [
        ('mail', 'no route', 3), ('mail', 'bad\033', 2)]
    assert rows[1]['example'] == last and rows[1]['last']
    assert {(row['queue'], row['error'], row['count']) for row in rows[2:]} == {
        ('mail', 'x' * 200, 1), ('video', 'no route', 1)}
    assert [row['example'] for row in shop.objects('ls', '--by-error', 'video')] == [other]
    title, first, *_ = shop.ok('ls', '--by-error', 'mail').splitlines()
    assert title.split() == ['COUNT', 'QUEUE', 'LAST', 'EXAMPLE', 'ERROR']
    assert first.split()[:2] == ['3', 'mail'] and first.endswith('no route')
    assert 'bad\\x1b' in shop.ok('ls', '--by-error', 'mail')
    assert shop.ok('retry', '--queue', 'mail', '--error', 'no *') != ''
    assert [row['count'] for row in shop.objects('ls', '--by-error', 'mail')] == [2, 1]
    assert shop.refused(USAGE, 'ls', '--by-error', '--state', 'dead') == (
        '--by-error counts all dead jobs, without --state and --after')
