"""baton put: one job, and files of jobs."""
import base64
import json
import os
import resource
import signal

import pytest

OK, NO, USAGE, DATA, NO_INPUT, UNAVAILABLE, IO_ERROR = 0, 1, 64, 65, 66, 69, 74
MIB = 1 << 20


def lines(*objects):
    return ''.join(json.dumps(o) + '\n' for o in objects).encode()


def payloads(shop, queue):
    """The payloads of a queue, in order."""
    found = [shop.object('show', job['id']) for job in shop.objects('ls', queue, '--limit', '999')]
    return [base64.b64decode(job['payload_base64']) if 'payload_base64' in job
            else job['payload'].encode() for job in found]


def test_a_job_is_put_and_its_id_printed(shop):
    assert shop.ok('put', 'mail', 'hello') == '1\n'
    assert shop.object('put', 'mail', 'again') == {'id': '2', 'state': 'ready', 'existing': False}
    assert payloads(shop, 'mail') == [b'hello', b'again']


def test_what_is_said_about_it_is_kept(shop):
    shop.ok('put', '--lane', 'a/b', 'mail', '--priority', '7', '--join=group', '--after-commit',
            '--', '-x')
    job = shop.object('show', '1')
    assert {k: job[k] for k in ('lane', 'priority', 'join', 'group', 'after_commit', 'command',
                                'payload')} == {
        'lane': 'a/b', 'priority': 7, 'join': True, 'group': 'group', 'after_commit': True,
        'command': False, 'payload': '-x'}
    shop.ok('put', 'mail', '--join', '--attempts', '1', 'x')
    assert [shop.object('show', '2')[k] for k in ('join', 'group')] == [True, None]
    shop.ok('put', 'mail', '--command', 'x')
    assert shop.object('show', '3')['command'] is True


@pytest.mark.parametrize('payload', [b'', b'\0\xff\n', b'x' * MIB], ids=['none', 'any', 'most'])
def test_any_bytes_come_from_standard_input(shop, payload):
    shop.ok('put', 'mail', '-', input=payload)
    assert shop.run('show', '1', '--payload').stdout == payload


def test_attempts_are_those_of_the_job(shop):
    shop.ok('put', 'mail', 'x', '--attempts', '1')
    claim = shop.claim('mail')
    assert shop.ok('fail', '--error', 'no', env=claim['env']) == 'dead\n'


@pytest.mark.parametrize('given, due', [
    (['--at', '2099-02-28T10:05:00.250+01:00'], '2099-02-28T09:05:00.250Z'),
    (['--at', '2096-02-29 23:59:60z'], '2096-03-01T00:00:00.000Z'),
    (['--at', '2099-01-01T00:00:00-00:30'], '2099-01-01T00:30:00.000Z'),
    (['--at', '2099-01-01t00:00:00.0001Z'], '2099-01-01T00:00:00.001Z'),
    (['--at', '@4070908800.25'], '2099-01-01T00:00:00.250Z'),
    (['--at', '@0'], None),
    (['--at', '1999-12-31T23:59:59Z'], None),
    (['--delay', '0'], None),
])
def test_a_job_can_be_for_later(shop, given, due):
    state = shop.object('put', 'mail', 'x', *given)['state']
    assert state == ('delayed' if due else 'ready')
    assert shop.object('show', '1')['due'] == due


def test_a_delay_keeps_a_job_back(shop):
    assert shop.object('put', 'mail', 'x', '--delay', '365d')['state'] == 'delayed'
    assert shop.run('claim', 'mail').returncode == 75


def test_a_key_makes_a_put_safe_to_repeat(shop):
    first = shop.object('put', 'mail', 'x', '--idempotency-key', 'k')
    again = shop.object('put', 'mail', 'x', '--idempotency-key', 'k')
    assert (first['existing'], again) == (False, {**first, 'existing': True})
    assert 'k' in shop.refused(DATA, 'put', 'mail', 'other', '--idempotency-key', 'k')
    assert shop.object('put', 'mail', 'x', '--lane', 'l', '--idempotency-key', 'k')['id'] == '2'
    assert payloads(shop, 'mail') == [b'x', b'x']


LONG = 'n' * 256
SHOWN = ('a moment such as 2026-02-28T09:05:00Z, 2026-02-28T10:05:00+01:00 or @1772269500 from '
         '1970 on')


@pytest.mark.parametrize('arguments, line', [
    ([], "'put' needs the name of a queue"),
    (['mail'], "'put' needs a payload: a text, '-' for standard input, or --file FILE"),
    (['mail', 'x', 'y'], "'put' takes 2 arguments, but got 'y' too"),
    (['', 'x'], "the queue's name is empty: 1 to 255 bytes are allowed"),
    ([LONG, 'x'], "the queue's name has 256 bytes: 1 to 255 are allowed"),
    (['a/b', 'x'], "the queue's name is 'a/b': it may not have a '/'"),
    ([b'a\xff', 'x'], "the queue's name is not valid UTF-8 at byte 1"),
    (['a\tb', 'x'], "the queue's name has the control character U+0009 at byte 1"),
    (['q', 'x', '--lane', ''], "the lane's name is empty: 1 to 255 bytes are allowed"),
    (['q', 'x', '--lane', LONG], "the lane's name has 256 bytes: 1 to 255 are allowed"),
    (['q', 'x', '--lane', b'\xc3'], "the lane's name is not valid UTF-8 at byte 0"),
    (['q', 'x', '--join=' + LONG], "the group's name has 256 bytes: 1 to 255 are allowed"),
    (['q', 'x', '--idempotency-key', LONG],
     'the idempotency key has 256 bytes: 1 to 255 are allowed'),
    (['q', 'x', '--priority', '10'], "'--priority' takes a number from 0 to 9, not '10'"),
    (['q', 'x', '--priority', '-1'], "'--priority' takes a number from 0 to 9, not '-1'"),
    (['q', 'x', '--priority', ''], "'--priority' takes a number from 0 to 9, not ''"),
    (['q', 'x', '--attempts', '0'], "'--attempts' takes a number from 1 to 1000000, not '0'"),
    (['q', 'x', '--attempts', '1000001'],
     "'--attempts' takes a number from 1 to 1000000, not '1000001'"),
    (['q', 'x', '--delay', '365d 1ms'], '--delay is 365d 1ms: 0 to 365d are allowed'),
    (['q', 'x', '--delay', 'infinity'], '--delay is infinity: 0 to 365d are allowed'),
    (['q', 'x', '--at', 'tomorrow'], f"'--at' takes {SHOWN}, not 'tomorrow'"),
    (['q', 'x', '--at', '2026-02-28T09:05:00'], f"'--at' takes {SHOWN}, not '2026-02-28T09:05:00'"),
    (['q', 'x', '--at', '2026-02-29T09:05:00Z'],
     f"'--at' takes {SHOWN}, not '2026-02-29T09:05:00Z'"),
    (['q', 'x', '--at', '1969-12-31T23:59:59Z'],
     f"'--at' takes {SHOWN}, not '1969-12-31T23:59:59Z'"),
    (['q', 'x', '--at', '@99999999999999999999'],
     f"'--at' takes {SHOWN}, not '@99999999999999999999'"),
    (['q', 'x', '--at', '@'], f"'--at' takes {SHOWN}, not '@'"),
    (['q', 'x', '--at', '@1.'], f"'--at' takes {SHOWN}, not '@1.'"),
    (['q', 'x', '--delay', '1', '--at', '@1'], '--delay and --at cannot be together'),
    (['q', 'x', '--join', '--command'],
     '--join and --command cannot be together: a command is claimed alone'),
    (['q', 'x', '--file', 'f'], 'a payload and --file cannot be together'),
    (['q', '--idempotency-key', 'k', '--file', 'f'],
     '--idempotency-key is for one job: in a file each line has its own'),
    (['q', 'x', '--atomic'],
     '--atomic is for --file: one job is always stored wholly or not at all'),
    (['q', 'x', '--check-first'],
     '--check-first is for --file: one job is always checked first'),
    (['q', '--file', '-', '--atomic', '--check-first'],
     '--check-first and --atomic cannot be together: what is stored in one transaction is checked '
     'with it'),
    (['q', 'x', '--prority', '1'], "unknown option '--prority'; did you mean '--priority'?"),
])
def test_a_wrong_call_gets_one_clear_line_and_makes_no_store(shop, arguments, line):
    assert shop.refused(USAGE, 'put', *arguments) == line
    assert not os.path.exists(shop.path)


def test_a_bad_span_is_explained(shop):
    assert shop.refused(USAGE, 'put', 'q', 'x', '--delay', 'soon').startswith('--delay: ')
    assert shop.refused(USAGE, 'put', 'q', 'x', '--delay', '-1').startswith('--delay: ')


def test_a_payload_has_the_limit_of_its_queue(shop):
    line = shop.refused(DATA, 'put', 'mail', '-', input=b'x' * (MIB + 1))
    assert line == "the payload has 1048577 bytes: queue \"mail\" allows 1048576"
    shop.ok('queue', 'set', 'mail', 'payload-max=3')
    assert shop.refused(DATA, 'put', 'mail', 'four') == (
        "the payload has 4 bytes: queue \"mail\" allows 3")
    shop.ok('put', 'mail', 'two')


def test_no_payload_has_more_than_a_queue_can_allow(shop):
    limit = 64 * MIB
    shop.ok('queue', 'set', 'mail', f'payload-max={limit}')
    assert shop.refused(DATA, 'put', 'mail', '-', input=b'x' * (limit + 1)) == (
        f'the payload on standard input has more than {limit} bytes, which is the most that is '
        'allowed')
    shop.ok('put', 'mail', '-', input=b'x' * limit)
    assert len(shop.run('show', '1', '--payload').stdout) == limit


def test_a_full_queue_takes_no_more(shop):
    shop.ok('queue', 'set', 'mail', 'waiting-max=1')
    shop.ok('put', 'mail', 'one')
    line = shop.refused(UNAVAILABLE, 'put', 'mail', 'two')
    assert 'mail' in line and '1' in line
    assert payloads(shop, 'mail') == [b'one']


def test_an_output_that_cannot_be_written_is_no_success(shop):
    with open('/dev/full', 'wb') as full:
        result = shop.run('put', 'mail', 'x', stdout=full)
    assert result.returncode == IO_ERROR
    assert result.stderr == (b'baton: job 1 is stored, though that cannot be told\n'
                             b'baton: cannot write to standard output: No space left on device\n')
    assert payloads(shop, 'mail') == [b'x']


def test_with_a_closed_output_nothing_is_put(shop):
    result = shop.run('put', 'mail', 'x', stdout=None, preexec_fn=lambda: os.close(1))
    assert (result.returncode, os.path.exists(shop.path)) == (IO_ERROR, False)


def test_a_file_has_a_job_in_each_line(shop):
    given = lines({'payload': 'text'}, {'payload': 'a\u00e9\0', 'lane': 'l', 'priority': 3},
                  {'payload_base64': 'AP8='}, {'payload_base64': ''}) + b'\n \t\r\n' + lines(
        {'payload': {'b': [1, 2.50, None, True, 'x"\\\n'], 'a': {}}}, {'payload': None},
        {'payload': 17}, {'payload': False}, {'payload': []},
        {'payload': 'last', 'lane': None, 'delay': None})
    assert shop.ok('put', 'mail', '--file', '-', input=given[:-1]) == '10 jobs put\n'
    assert payloads(shop, 'mail') == [
        b'text', 'a\u00e9\0'.encode(), b'\0\xff', b'',
        b'{"b":[1,2.5,null,true,"x\\"\\\\\\n"],"a":{}}',
        b'null', b'17', b'false', b'[]', b'last']
    assert [shop.object('show', '2')[k] for k in ('lane', 'priority')] == ['l', 3]


def test_a_number_keeps_its_digits(shop):
    given = b' {"payload": [1.50, 1e400, 123456789012345678901]}'
    shop.ok('put', 'mail', '--file', '-', input=given)
    assert payloads(shop, 'mail') == [b'[1.50,1e400,123456789012345678901]']


def test_a_line_says_what_the_options_do_not(shop):
    shop.ok('put', 'mail', '--lane', 'l', '--priority', '2', '--delay', '1h', '--join=g', '--file',
            '-', input=lines({'payload': 'a'},
                             {'payload': 'b', 'lane': 'm', 'at': 1, 'join': False, 'priority': 0},
                             {'payload': 'c', 'at': '2099-01-01T00:00:00Z', 'join': 'h'},
                             {'payload': 'd', 'delay': '365d', 'join': True, 'after_commit': True},
                             {'payload': 'e', 'delay': 0, 'join': False, 'command': True},
                             {'payload': 'f', 'delay': 0, 'idempotency_key': 'k', 'attempts': 2}))
    jobs = [shop.object('show', str(i)) for i in range(1, 7)]
    assert [(j['lane'], j['priority'], j['state'], j['join'], j['group']) for j in jobs] == [
        ('l', 2, 'delayed', True, 'g'), ('m', 0, 'ready', False, None),
        ('l', 2, 'delayed', True, 'h'), ('l', 2, 'delayed', True, None),
        ('l', 2, 'ready', False, None), ('l', 2, 'ready', True, 'g')]
    assert [j['after_commit'] for j in jobs] == [False, False, False, True, False, False]
    assert [j['command'] for j in jobs] == [False, False, False, False, True, False]
    assert shop.object('put', 'mail', '--lane', 'l', '--priority', '2', '--join=g', '--attempts',
                       '2', '--idempotency-key', 'k', 'f')['existing'] is True


def test_each_job_of_a_file_is_acknowledged(shop):
    given = lines({'payload': 'a', 'idempotency_key': 'k'}) + b'\n' + lines(
        {'payload': 'a', 'idempotency_key': 'k'}, {'payload': 'b', 'delay': 60})
    assert shop.objects('put', 'mail', '--file', '-', input=given) == [
        {'line': 1, 'id': '1', 'state': 'ready', 'existing': False},
        {'line': 3, 'id': '1', 'state': 'ready', 'existing': True},
        {'line': 4, 'id': '2', 'state': 'delayed', 'existing': False}]
    assert shop.ok('put', 'mail', '--file', '-', input=given.splitlines()[0]) == (
        '0 jobs put, 1 was there already\n')


BAD_LINES = [
    (b'{"payload": 1, "pripority": 2}', "unknown field 'pripority' (did you mean 'priority'?)"),
    (b'{"payload": 1, "x\\u001b": 2}', "unknown field 'x?'"),
    (b'{"payload": 1, "' + b'x' * 100 + b'": 2}', 'unknown field of 100 bytes'),
    (b'{"lane": "l"}', "it has no 'payload' and no 'payload_base64'"),
    (b'{}', "it has no 'payload' and no 'payload_base64'"),
    (b'{"payload": 1, "payload": 2}', "'payload' is there twice"),
    (b'{"payload": 1, "payload_base64": ""}', 'it has two payloads'),
    (b'{"payload_base64": "AP8"}', "'payload_base64' takes a string of base64 with its padding"),
    (b'{"payload_base64": "AP9="}', "'payload_base64' takes a string of base64 with its padding"),
    (b'{"payload_base64": "A P8"}', "'payload_base64' takes a string of base64 with its padding"),
    (b'{"payload_base64": "A==="}', "'payload_base64' takes a string of base64 with its padding"),
    (b'{"payload_base64": 7}',
     "'payload_base64' takes a string of base64 with its padding, not 7"),
    (b'{"payload": 1, "lane": 7}', "'lane' takes a string, not 7"),
    (b'{"payload": 1, "lane": ["l"]}', "'lane' takes a string, not a list"),
    (b'{"payload": 1, "lane": {}}', "'lane' takes a string, not an object"),
    (b'{"payload": 1, "priority": 10}', "'priority' takes a number from 0 to 9, not 10"),
    (b'{"payload": 1, "priority": -1}', "'priority' takes a number from 0 to 9, not -1"),
    (b'{"payload": 1, "priority": 1.5}', "'priority' takes a number from 0 to 9, not 1.5"),
    (b'{"payload": 1, "priority": "1"}', "'priority' takes a number from 0 to 9, not \"1\""),
    (b'{"payload": 1, "attempts": 0}', "'attempts' takes a number from 1 to 1000000, not 0"),
    (b'{"payload": 1, "delay": "so\\u001bn"}',
     '\'delay\' takes seconds, or a string such as "5min", not "so?n"'),
    (b'{"payload": 1, "delay": -1}',
     '\'delay\' takes seconds, or a string such as "5min", not -1'),
    (b'{"payload": 1, "delay": true}',
     '\'delay\' takes seconds, or a string such as "5min", not true'),
    (b'{"payload": 1, "at": "noon"}',
     '\'at\' takes a string such as "2026-02-28T09:05:00Z", or seconds since 1970, not "noon"'),
    (b'{"payload": 1, "join": 1}', "'join' takes true, false, or a string, not 1"),
    (b'{"payload": 1, "command": "yes"}', "'command' takes true or false, not \"yes\""),
    (b'{"payload": 1, "after_commit": 1}', "'after_commit' takes true or false, not 1"),
    (b'"text"', 'it is no object such as {"payload": "text"}'),
    (b'[1]', 'it is no object such as {"payload": "text"}'),
    (b'null', 'it is no object such as {"payload": "text"}'),
    (b'{"payload": ' + b'[' * 200 + b']' * 200 + b'}',
     'its payload is nested deeper than 128 levels'),
    (b'{"payload": "\\ud800"}', 'it has an escape that is half a character'),
    (b'{"payload": "\\udc00\\ud800"}', 'it has an escape that is half a character'),
    (b'{"payload": "\\ud83d\\u0041"}', 'it has an escape that is half a character'),
    # What only the store can tell.
    (b'{"payload": 1, "lane": "' + b'l' * 256 + b'"}',
     "the lane's name has 256 bytes: 1 to 255 are allowed"),
    (b'{"payload": 1, "lane": "a\\u0000"}',
     "the lane's name has the control character U+0000 at byte 1"),
    (b'{"payload": 1, "join": "g", "command": true}',
     'a command joins no others: it is claimed alone'),
    (b'{"payload": 1, "delay": "366d"}', 'delay is 366d: 0 to 365d are allowed'),
    (b'{"payload": "' + b'x' * (MIB + 1) + b'"}',
     "the payload has 1048577 bytes: queue \"mail\" allows 1048576"),
]


@pytest.mark.parametrize('bad, why', BAD_LINES, ids=range(len(BAD_LINES)))
def test_a_bad_line_is_named_and_those_before_it_are_stored(shop, bad, why):
    given = lines({'payload': 1}, {'payload': 2}) + b'\n' + bad + b'\n' + lines({'payload': 5})
    assert shop.refused(DATA, 'put', 'mail', '--file', '-', input=given) == (
        f'line 4 of standard input: {why}; the 2 jobs before it are stored')
    assert payloads(shop, 'mail') == [b'1', b'2']
    assert shop.refused(DATA, 'put', 'mail', '--atomic', '--file', '-', input=given) == (
        f'line 4 of standard input: {why}; nothing is stored')
    assert shop.refused(DATA, 'put', 'mail', '--check-first', '--file', '-', input=given) == (
        f'line 4 of standard input: {why}; nothing is stored')
    assert payloads(shop, 'mail') == [b'1', b'2']


@pytest.mark.parametrize('bad', [b'{"payload": 1', b'{"payload": 1} x', b'{"payload": 1}{}', b'{x}',
                                 b'{"payload": "\xff"}', b'{"payload": "a\tb"}',
                                 b'{"payload": 01}'])
def test_what_is_no_json_is_named(shop, bad):
    path = shop.folder / 'jobs.jsonl'
    path.write_bytes(lines({'payload': 1}) + bad)
    line = shop.refused(DATA, 'put', 'mail', '--file', str(path))
    assert line.startswith(f"line 2 of '{path}': it is no JSON: "), line
    assert line.endswith('; the job before it is stored') and '.;' not in line


def test_a_character_of_two_escapes_is_whole(shop):
    shop.ok('put', 'mail', '--file', '-', input=b'{"payload": "\\ud83d\\ude00\\\\ud800"}')
    assert payloads(shop, 'mail') == ['\U0001f600\\ud800'.encode()]


@pytest.mark.parametrize('bad', [0, 1, 499, 500, 998, 999])
def test_a_bad_line_anywhere_in_a_transaction_is_found(shop, bad):
    given = [{'payload': i} for i in range(1000)]
    given[bad]['lane'] = 'l' * 256
    line = shop.refused(DATA, 'put', 'mail', '--file', '-', input=lines(*given))
    assert line.startswith(f'line {bad + 1} of standard input: ')
    before = {0: 'nothing', 1: 'the job before it'}.get(bad, f'the {bad} jobs before it')
    assert line.endswith(f'; {before} is stored' if bad < 2 else f'; {before} are stored')
    assert len(shop.states('mail', '--limit', '9999')) == bad


def test_a_key_with_other_content_stops_a_file(shop):
    given = lines({'payload': 'a', 'idempotency_key': 'k'}, {'payload': 'x'},
                  {'payload': 'b', 'idempotency_key': 'k'}, {'payload': 'y'})
    line = shop.refused(DATA, 'put', 'mail', '--file', '-', input=given)
    assert line.startswith('line 3 of standard input: ')
    assert line.endswith('; the 2 jobs before it are stored')
    assert payloads(shop, 'mail') == [b'a', b'x']


def test_a_queue_is_filled_to_its_bound_and_no_further(shop):
    shop.ok('queue', 'set', 'mail', 'waiting-max=700')
    given = lines(*({'payload': i} for i in range(1500)))
    line = shop.refused(UNAVAILABLE, 'put', 'mail', '--file', '-', input=given)
    assert line.startswith('line 701 of standard input: ')
    assert shop.object('queue', 'show', 'mail')['ready'] == 700


def test_all_or_nothing_is_bounded(shop):
    given = lines(*({'payload': i} for i in range(10001)))
    assert shop.refused(DATA, 'put', 'mail', '--atomic', '--file', '-', input=given) == (
        'standard input has more than 10000 jobs, and --atomic can store no more in one '
        'transaction; nothing is stored; --check-first has no such bound')
    assert shop.states() == {}
    most = given[:given.rindex(b'{')]
    assert shop.ok('put', 'mail', '--atomic', '--file', '-', input=most) == '10000 jobs put\n'


def test_a_file_of_any_length_is_checked_first(shop):
    path = shop.folder / 'jobs.jsonl'
    good = lines(*({'payload': i} for i in range(12345)))
    path.write_bytes(good + lines({'payload': 1, 'lane': 'l' * 256}))
    for given, name in ((str(path), f"'{path}'"), ('-', 'standard input')):
        result = shop.run('put', 'mail', '--check-first', '--file', given,
                          input=path.read_bytes())
        line = result.stderr.decode().splitlines()[-1]
        assert (result.returncode, result.stdout) == (DATA, b'')
        assert line.startswith(f'baton: line 12346 of {name}: '), line
        assert line.endswith('; nothing is stored'), line
    assert shop.states() == {}
    assert shop.ok('put', 'mail', '--check-first', '--file', '-', input=good) == '12345 jobs put\n'
    path.write_bytes(good)
    result = shop.run('put', 'mail', '--check-first', '--file', str(path))
    assert (result.returncode, result.stdout) == (OK, b'12345 jobs put\n')
    assert shop.object('queue', 'show', 'mail')['ready'] == 2 * 12345
    assert shop.ok('put', 'mail', '--check-first', '--file', '-', input=b'') == '0 jobs put\n'


def test_what_is_checked_first_is_what_the_queue_has(shop):
    shop.ok('queue', 'set', 'mail', 'payload-max=3', 'waiting-max=2')
    given = lines({'payload': 'abc'}, {'payload': 'abcd'})
    line = shop.refused(DATA, 'put', 'mail', '--check-first', '--file', '-', input=given)
    assert line == ('line 2 of standard input: the payload has 4 bytes: queue "mail" allows 3; '
                    'nothing is stored')
    # That there is no room is seen when it is their turn.
    given = lines({'payload': 1}, {'payload': 2}, {'payload': 3})
    line = shop.refused(UNAVAILABLE, 'put', 'mail', '--check-first', '--file', '-', input=given)
    assert line.startswith('line 3 of standard input: ')
    assert line.endswith('; the 2 jobs before it are stored'), line


def test_what_is_no_file_is_kept_where_there_is_room(shop):
    line = shop.refused(IO_ERROR, 'put', 'mail', '--check-first', '--file', '-',
                        input=lines({'payload': 1}), env={'TMPDIR': '/nowhere'})
    assert line == ('cannot keep standard input in /nowhere to read it twice: No such file or '
                    'directory; TMPDIR says where there is room')
    assert shop.states() == {}


def test_a_line_has_a_bound(shop):
    limit = ((64 * MIB) // 3 + 1) * 4 + MIB    # the largest payload fits
    given = lines({'payload': 'a'}) + b' ' * (limit + 1)
    assert shop.refused(DATA, 'put', 'mail', '--file', '-', input=given) == (
        f'line 2 of standard input has more than {limit} bytes, which is the most that is allowed; '
        'the job before it is stored')
    assert payloads(shop, 'mail') == [b'a']


def test_every_digit_of_base64_is_read(shop):
    given = bytes(range(256)) * 3
    for size in (765, 766, 767, 768):
        line = b'{"payload_base64": "' + base64.b64encode(given[:size]) + b'"}'
        shop.ok('put', 'mail', '--file', '-', input=line)
    assert payloads(shop, 'mail') == [given[:size] for size in (765, 766, 767, 768)]


def test_a_file_that_cannot_be_read_is_named(shop):
    assert shop.refused(NO_INPUT, 'put', 'mail', '--file', '/nonexistent/jobs') == (
        "cannot read '/nonexistent/jobs': No such file or directory")
    assert shop.refused(NO_INPUT, 'put', 'mail', '--file', str(shop.folder)) == (
        f"cannot read '{shop.folder}': Is a directory")
    assert not os.path.exists(shop.path)


def test_progress_is_lines_where_there_is_no_terminal(shop):
    path = shop.folder / 'jobs.jsonl'
    given = lines(*({'payload': i} for i in range(100000)))
    path.write_bytes(given)
    known = shop.run('put', 'mail', '--file', str(path))
    assert known.stdout == b'100000 jobs put\n'
    told = known.stderr.decode().splitlines()
    assert len(told) == 9
    assert all(f' lines, {tenth}0 %' in line for tenth, line in enumerate(told, 1))
    piped = shop.run('put', 'mail', '--file', '-', input=given)
    assert piped.stderr == b'baton: 100000 lines\n'


def told_on_a_terminal(shop, given, columns=80, term='xterm'):
    """What putting those lines writes to a terminal, and its status."""
    path = shop.folder / 'jobs.jsonl'
    path.write_bytes(given)
    result, told = shop.at_terminal('put', 'mail', '--file', str(path), columns=columns, term=term)
    return told, result.returncode


TWO_THOUSAND = lines(*({'payload': i} for i in range(2000)))


def test_progress_is_a_bar_on_a_terminal(shop):
    told, status = told_on_a_terminal(shop, TWO_THOUSAND)
    assert b'[' + b'#' * 40 + b'] 100 %  2000 lines' in told
    assert told.endswith(b'\r\x1b[K') and status == 0


@pytest.mark.parametrize('columns', [1, 18, 19, 25, 26, 64])
def test_the_bar_is_no_wider_than_the_terminal(shop, columns):
    told, _ = told_on_a_terminal(shop, TWO_THOUSAND, columns)
    drawn = told.split(b'\r\x1b[K')
    assert len(drawn) > 3
    assert all(len(line) < columns for line in drawn)
    assert columns < 19 or b'100 %  2000 lines' in told
    assert (b'#' in told) == (columns >= 26)


def test_a_dumb_terminal_gets_lines(shop):
    told, _ = told_on_a_terminal(shop, TWO_THOUSAND, term='dumb')
    assert told == b'baton: 1000 lines, 48 %\r\n'


def test_what_went_wrong_stands_where_the_bar_was(shop):
    told, status = told_on_a_terminal(shop, TWO_THOUSAND + b'bad\n')
    *_, bar, error, rest = told.split(b'\r\x1b[K')
    assert b'2001 lines' in bar and rest == b'' and status == DATA
    assert error.startswith(b'baton: line 2001 of ')
    assert error.endswith(b'; the 2000 jobs before it are stored\r\n')


def test_a_reader_who_leaves_stops_a_file(shop):
    with open('/dev/full', 'wb') as full:
        result = shop.run('put', 'mail', '--json', '--file', '-', stdout=full,
                          input=lines(*({'payload': i} for i in range(5000))))
    assert result.returncode == IO_ERROR
    assert result.stderr == (b'baton: standard input is stored up to line 1000 (jobs: 1000)\n'
                             b'baton: cannot write to standard output: No space left on device\n')
    assert shop.object('queue', 'show', 'mail')['ready'] == 1000


def test_a_store_that_fails_stops_a_file_which_says_how_far_it_came(shop):
    shop.ok('put', 'mail', 'first')
    given = lines(*({'payload': 'x' * 1000} for _ in range(5000)))
    bound = 2 * MIB
    result = shop.run('put', 'mail', '--file', '-', input=given, preexec_fn=lambda:
                      resource.setrlimit(resource.RLIMIT_FSIZE, (bound, bound)))
    assert (result.returncode, result.stdout) == (IO_ERROR, b'')
    why, rest = result.stderr.decode().splitlines()
    assert shop.path in why
    stored = shop.object('queue', 'show', 'mail')['ready'] - 1
    assert 0 < stored < 5000
    assert rest == f'baton: standard input is stored up to line {stored} (jobs: {stored})'


@pytest.mark.parametrize('acknowledged', [1, 1000, 1001, 2000])
def test_what_is_acknowledged_survives_a_kill(shop, acknowledged):
    loader = shop.start('put', 'mail', '--json', '--file', '-', stdin=-1)
    loader.stdin.write(lines(*({'payload': i} for i in range(2500))))
    loader.stdin.flush()        # no end: the last 500 are not stored yet
    told = [json.loads(loader.stdout.readline()) for _ in range(acknowledged)]
    loader.send_signal(signal.SIGKILL)
    loader.wait()
    there = shop.states('mail', '--limit', '9999')
    assert len(there) in (1000, 2000)
    assert {job['id'] for job in told} <= set(there)
    assert [job['line'] for job in told] == list(range(1, acknowledged + 1))
    assert shop.ok('check') == 'no faults\n'
