"""baton claim, renew, complete, fail, abandon and snooze."""
import os
import re
import select
import shutil
import subprocess

import pytest

OK, NO, USAGE, DATA, UNAVAILABLE, IO_ERROR, TEMPORARY = 0, 1, 64, 65, 69, 74, 75
ENDS = [['renew'], ['complete'], ['fail', '--error', 'e'], ['abandon'], ['snooze', '1']]
PATIENCE = 60       # seconds that something may take that is certain to happen
LINE = re.compile(r'(\d+-\d+)\t([0-9a-f]{32})\t(.*)\n')


def lines_until(stream, wanted):
    """The lines of a process up to the first one with `wanted` in it, which is certain to come."""
    read = b''
    while not read.endswith(b'\n') or wanted not in read.decode().splitlines()[-1]:
        assert select.select([stream], [], [], PATIENCE)[0], f'silence after {read}'
        got = os.read(stream.fileno(), 1)
        assert got, f'ended after {read}'
        read += got
    return read.decode().splitlines()


def test_a_line_has_claim_token_and_payload(shop):
    shop.put('mail', 'hello\tworld')
    claim, token, payload = LINE.fullmatch(shop.ok('claim', 'mail')).groups()
    assert payload == 'hello\\x09world'
    assert shop.ok('complete', claim, token) == ''
    assert shop.states() == {}
    assert shop.ok('complete', claim, token) == ''      # the answer may have been lost


def test_there_is_nothing_to_claim(shop):
    shop.put('mail', 'x')
    shop.claim('mail')
    result = shop.run('claim', 'mail')
    assert (result.returncode, result.stdout, result.stderr) == (TEMPORARY, b'', b'')
    assert shop.run('claim', 'mail', '-v').stderr.endswith(b'baton: there is nothing to claim\n')


def test_a_queue_that_is_not_there_is_no(shop):
    shop.put('mail', 'x')
    assert shop.refused(NO, 'claim', 'male') == (
        "there is no queue 'male': the first put makes it")


def test_a_claim_makes_no_store(shop):
    assert shop.refused(UNAVAILABLE, 'claim', 'mail') == (
        f"there is no store '{shop.store}'; 'baton put' makes one")
    assert not os.path.exists(shop.path)


def test_an_object_has_everything(shop):
    shop.put('mail', '--lane', 'l', '--priority', '3', 'x')
    claim = shop.claim('mail', '--ttl', '1h', '--owner', 'ada')
    job, = claim['jobs']
    assert (claim['queue'], claim['lane'], job['payload'], job['attempt'], job['priority']) == (
        'mail', 'l', 'x', 1, 3)
    assert claim['fence'] > 0
    assert shop.object('show', '1')['claim'] == {
        'id': claim['claim'], 'fence': claim['fence'], 'owner': 'ada', 'claimed': claim['claimed'],
        'expires': claim['expires'], 'cancel': False}


def test_bytes_that_are_no_text_are_base64(shop):
    shop.put('mail', '-', input=b'\0\xff')
    assert shop.claim('mail')['jobs'][0]['payload_base64'] == 'AP8='


def test_a_lane_is_claimed_from_its_head_by_one_at_a_time(shop):
    for payload in 'abc':
        shop.put('mail', '--lane', 'l', payload)
    shop.put('mail', '--priority', '1', 'd')
    claims = shop.objects('claim', 'mail', '-n', '10')
    assert [c['jobs'][0]['payload'] for c in claims] == ['d', 'a']
    assert shop.run('claim', 'mail').returncode == TEMPORARY
    shop.ok('complete', claims[1]['claim'], claims[1]['token'])
    assert shop.claim('mail')['jobs'][0]['payload'] == 'b'


def test_jobs_that_join_are_claimed_together(shop):
    for payload in 'abc':
        shop.put('mail', '--lane', 'l', '--join', payload)
    claim = shop.claim('mail', '--max', '2')
    assert [job['payload'] for job in claim['jobs']] == ['a', 'b']
    shop.ok('abandon', env=claim['env'])
    line = shop.ok('claim', 'mail', '--max', '9')
    assert line.endswith('\ta\tb\tc\n')


def test_a_claim_is_renewed(shop):
    shop.put('mail', 'x')
    claim = shop.claim('mail', '--ttl', '1min')
    later = shop.object('renew', '--ttl', '1h', env=claim['env'])
    assert later['expires'] > claim['expires'] and later['cancel'] is False
    assert shop.ok('renew', env=claim['env']) == later['expires'] + '\n'     # never shorter
    assert shop.ok('cancel', '1') == '1 told\n'
    assert shop.ok('renew', env=claim['env']) == later['expires'] + ' cancel\n'
    assert shop.object('renew', env=claim['env'])['cancel'] is True
    assert shop.object('abandon', env=claim['env'])['state'] == 'gone'
    assert shop.states() == {}


def test_a_failure_is_tried_again(shop):
    shop.put('mail', 'x', '--attempts', '2')
    claim = shop.claim('mail')
    told = shop.ok('fail', '--error', 'no route', '--retry-in', '1d', env=claim['env'])
    state, due = told.split()
    job = shop.object('show', '1')
    assert (state, due, job['state'], job['error'], job['attempt']) == (
        'retry', job['due'], 'retry', 'no route', 1)
    assert shop.ok('retry', '1') == '1 ready\n'
    claim = shop.claim('mail')
    assert claim['jobs'][0]['attempt'] == 2
    assert shop.object('fail', '--error', 'still', env=claim['env']) == {
        'state': 'dead', 'due': None}
    assert shop.object('show', '1')['state'] == 'dead'


def test_a_hopeless_failure_is_dead_at_once(shop):
    shop.put('mail', 'x')
    claim = shop.claim('mail')
    assert shop.ok('fail', '--dead', '--error', 'bad', env=claim['env']) == 'dead\n'
    assert shop.object('show', '1')['error'] == 'bad'


def test_a_long_error_is_cut_between_characters(shop):
    shop.put('mail', 'x')
    shop.ok('fail', '--error', 'x' + '\u20ac' * 2000, env=shop.claim('mail')['env'])
    assert shop.object('show', '1')['error'] == 'x' + '\u20ac' * 1365


def test_what_is_abandoned_comes_back_uncounted(shop):
    shop.put('mail', 'x')
    assert shop.ok('abandon', env=shop.claim('mail')['env']) == ''
    assert shop.claim('mail')['jobs'][0]['attempt'] == 1


def test_what_is_snoozed_comes_back_later(shop):
    shop.put('mail', 'x')
    state, due = shop.ok('snooze', '1h', env=shop.claim('mail')['env']).split()
    job = shop.object('show', '1')
    assert (state, due, job['attempt']) == ('delayed', job['due'], 0)
    shop.ok('retry', '1')
    again = shop.object('snooze', '0', env=shop.claim('mail')['env'])
    assert again['state'] in ('delayed', 'ready')


def test_a_result_is_kept_if_the_queue_keeps_them(shop):
    shop.ok('queue', 'set', 'mail', 'keep=1h')
    shop.put('mail', 'x')
    shop.put('mail', 'y')
    assert shop.object('complete', '--result', 'sent', env=shop.claim('mail')['env']) == {
        'state': 'done', 'due': None}
    assert shop.object('show', '1')['result'] == 'sent'
    shop.ok('complete', '--result', '-', env=shop.claim('mail')['env'], input=b'r' * (1 << 20))
    assert shop.object('show', '2')['result'] == 'r' * (1 << 20)
    shop.put('mail', 'z')
    assert shop.refused(DATA, 'complete', '--result', '-', env=shop.claim('mail')['env'],
                        input=b'r' * ((1 << 20) + 1)) == (
        'the result on standard input has more than 1048576 bytes, which is the most that is '
        'allowed')
    assert shop.object('show', '3')['state'] == 'claimed'


@pytest.mark.parametrize('end', ENDS, ids=[e[0] for e in ENDS])
def test_whoever_does_not_hold_a_claim_changes_nothing(shop, end):
    shop.put('mail', 'x')
    claim = shop.claim('mail')
    before = shop.object('show', '1')
    wrong = {'BATON_CLAIM': claim['claim'], 'BATON_TOKEN': '0' * 32}
    lost = (f'claim {claim["claim"]} is not held: it has ended, or has expired and another took '
            'its work, or its token is another one')
    assert shop.refused(NO, *end, env=wrong) == lost
    assert shop.object('show', '1') == before
    shop.ok('abandon', env=claim['env'])
    assert shop.refused(NO, *end, env=claim['env']) == lost
    assert shop.refused(NO, *end, '9-9', '0' * 32).startswith('claim 9-9 is not held')


def test_an_expired_claim_goes_to_the_next_and_is_lost_to_the_first(shop):
    shop.put('mail', 'x')
    first = shop.claim('mail', '--ttl', '1ms')
    second = shop.claim('mail', '--wait', '1min')
    assert second['jobs'][0]['attempt'] == 2
    assert second['fence'] > first['fence']
    assert shop.run('complete', env=first['env']).returncode == NO
    shop.ok('complete', env=second['env'])


@pytest.mark.parametrize('end', ENDS, ids=[e[0] for e in ENDS])
def test_a_claim_has_to_be_named(shop, end):
    assert shop.refused(USAGE, *end) == (
        "no claim: set BATON_CLAIM and BATON_TOKEN, as 'baton claim --shell' prints them, or give "
        'CLAIM and TOKEN')
    assert shop.refused(USAGE, *end, '1-2') == (
        'no token: set BATON_TOKEN, or give it after the claim')
    for bad in ('1', '1-', '-', '1-2-3', 'x-2', '1' * 30 + '-' + '1' * 30):
        assert shop.refused(USAGE, *end, '--', bad, '0' * 32) == (
            f"'{bad}' is no id of a claim: it is two numbers with a dash, as 'baton claim' prints "
            'it')
    line = shop.refused(USAGE, *end, '1-2', 'secret')
    assert line == ("the token has 6 characters that are no token: it is 32 hexadecimal digits, as "
                    "'baton claim' prints it")


@pytest.mark.parametrize('arguments, line', [
    (['claim'], "'claim' needs the name of a queue"),
    (['claim', 'a/b'], "the queue's name is 'a/b': it may not have a '/'"),
    (['claim', 'n' * 256], "the queue's name has 256 bytes: 1 to 255 are allowed"),
    (['claim', 'q', '-n', '0'], "'--claims' takes a number from 1 to 1000, not '0'"),
    (['claim', 'q', '-n', '1001'], "'--claims' takes a number from 1 to 1000, not '1001'"),
    (['claim', 'q', '--max', '0'], "'--max' takes a number from 1 to 10000, not '0'"),
    (['claim', 'q', '--max', '10001'], "'--max' takes a number from 1 to 10000, not '10001'"),
    (['claim', 'q', '--ttl', '0'], '--ttl is 0: 1ms to 1d are allowed'),
    (['claim', 'q', '--ttl', '999us'], '--ttl is 999us: 1ms to 1d are allowed'),
    (['claim', 'q', '--ttl', '1d 1ms'], '--ttl is 1d 1ms: 1ms to 1d are allowed'),
    (['claim', 'q', '--owner', ''], "the owner's name is empty: 1 to 255 bytes are allowed"),
    (['claim', 'q', '--owner', 'n' * 256], "the owner's name has 256 bytes: 1 to 255 are allowed"),
    (['claim', 'q', '--owner', b'\xff'], "the owner's name is not valid UTF-8 at byte 0"),
    (['claim', 'q', '--shell', '--json'], '--shell and --json cannot be together'),
    (['renew', '--ttl', '2d'], '--ttl is 2d: 1ms to 1d are allowed'),
    (['fail'], "'fail' needs --error with the reason: whoever looks at the job sees it"),
    (['fail', '--error', ''],
     "'fail' needs --error with the reason: whoever looks at the job sees it"),
    (['fail', '--error', b'\xff'], 'the error is no UTF-8'),
    (['fail', '--error', 'e', '--dead', '--retry-in', '1'],
     '--retry-in and --dead cannot be together'),
    (['fail', '--error', 'e', '--retry-in', '366d'], '--retry-in is 366d: 1ms to 365d are allowed'),
    (['fail', '--error', 'e', '--retry-in', '0'], '--retry-in is 0: 1ms to 365d are allowed'),
    (['snooze'], "'snooze' needs how long, such as 10min"),
    (['snooze', '366d'], 'the time to snooze is 366d: 0 to 365d are allowed'),
    (['snooze', '1', '1-2', '0' * 32, 'x'], "'snooze' takes 3 arguments, but got 'x' too"),
])
def test_a_wrong_call_gets_one_clear_line(shop, arguments, line):
    result = shop.run(*arguments)
    assert (result.returncode, result.stderr.decode()) == (USAGE, f'baton: {line}\n')


def test_what_nobody_was_told_of_is_given_back(shop):
    shop.put('mail', 'x')
    shop.put('mail', '--lane', 'l', 'y')
    with open('/dev/full', 'wb') as full:
        result = shop.run('claim', 'mail', '-n', '2', stdout=full)
    assert result.returncode == IO_ERROR
    assert shop.states() == {'1': 'ready', '2': 'ready'}
    assert [c['jobs'][0]['attempt'] for c in shop.objects('claim', 'mail', '-n', '2')] == [1, 1]


def test_with_a_closed_output_nothing_is_claimed(shop):
    shop.put('mail', 'x')
    result = shop.run('claim', 'mail', stdout=None, preexec_fn=lambda: os.close(1))
    assert result.returncode == IO_ERROR
    assert shop.states() == {'1': 'ready'}
    assert shop.object('queue', 'show', 'mail')['policy']['mode'] == 'open'


SHELLS = [shell for shell in ('sh', 'bash') if shutil.which(shell)]


@pytest.mark.parametrize('shell', SHELLS)
def test_a_shell_can_evaluate_it(shop, shell):
    payload = 'it\'s "$HOME" `id` $(id) \\ *\n\u20ac\t!\n\n'
    shop.put('mail', '--lane', 'l\'l', payload)
    script = '''
        eval "$("$BATON_BIN" claim mail --shell)" || exit 9
        printf '%s|' "$BATON_PAYLOAD" "$BATON_QUEUE" "$BATON_LANE" "$BATON_JOB" "$BATON_ATTEMPT" \
            "$BATON_PAYLOADS"
        "$BATON_BIN" complete || exit 8
        eval "$("$BATON_BIN" claim mail --shell)"
        echo "$?${BATON_CLAIM-unset}${BATON_TOKEN-unset}${BATON_PAYLOAD-unset}"
        '''
    result = subprocess.run([shell, '-c', script], env=shop.env, capture_output=True, check=True,
                            timeout=60)
    assert result.stderr == b''
    assert result.stdout.decode() == f"{payload}|mail|l'l|1|1|1|75unsetunsetunset\n"


@pytest.mark.parametrize('arguments, status', [
    (['mail'], 75), (['male'], 1), (['mail', '--tll', '1'], 64), ([], 64),
    (['mail', '-n', '2'], 64),
    (['mail', '--store', 'x'], 64), (['male', '--she'], 1),
])
def test_a_shell_never_goes_on_with_an_earlier_claim(shop, arguments, status):
    shop.ok('queue', 'set', 'mail', 'mode=pull')
    result = shop.run('claim', *arguments, '--shell')
    assert result.returncode == status
    script = 'BATON_CLAIM=old BATON_TOKEN=old\n' + result.stdout.decode() + (
        'echo "$?${BATON_CLAIM-unset}${BATON_TOKEN-unset}"')
    told = subprocess.run(['sh', '-c', script], capture_output=True, check=True, timeout=60)
    assert told.stdout.decode() == f'{status}unsetunset\n'


def test_a_payload_with_a_nul_is_no_variable(shop):
    shop.put('mail', '-', input=b'a\0b')
    assert 'unset BATON_PAYLOAD\n' in shop.ok('claim', 'mail', '--shell')


def test_a_queue_that_others_hand_out_is_busy(shop):
    shop.ok('queue', 'set', 'mail', 'mode=lane')
    shop.put('mail', '--lane', 'l', 'x')
    assert 'mail' in shop.refused(TEMPORARY, 'claim', 'mail')


def test_a_wait_ends_with_its_time(shop):
    shop.ok('queue', 'set', 'mail', 'mode=pull')
    assert shop.run('claim', 'mail', '--wait', '1ms').returncode == TEMPORARY


def test_a_wait_is_ended_by_a_put_of_another_process(shop):
    waiting = shop.start('claim', 'mail', '-v', '--wait', '1h')
    lines_until(waiting.stderr, 'listening for wake-ups')
    shop.put('mail', 'x')
    out, _ = waiting.communicate(timeout=60)
    assert waiting.returncode == OK and out.endswith(b'\tx\n')


def test_a_put_wakes_those_who_wait_for_its_queue_and_no_others(shop):
    # A paused queue gives nothing, so that what is heard does not depend on who is faster.
    for queue in ('mail', 'other'):
        shop.ok('queue', 'set', queue, 'mode=pull')
        shop.ok('queue', 'pause', queue)
    mail = shop.start('claim', 'mail', '-v', '--wait', '1h')
    other = shop.start('claim', 'other', '-v', '--wait', '1h')
    for waiting in (mail, other):
        lines_until(waiting.stderr, 'listening for wake-ups')
    shop.put('other', 'y')
    assert len(lines_until(other.stderr, 'woken by another process')) == 1
    shop.put('mail', 'x')
    assert len(lines_until(mail.stderr, 'woken by another process')) == 1
    for queue, waiting in (('mail', mail), ('other', other)):
        shop.ok('queue', 'resume', queue)
        out, _ = waiting.communicate(timeout=60)
        assert waiting.returncode == OK
        assert LINE.fullmatch(out.decode())


def test_whoever_ends_a_claim_wakes_the_next_of_the_lane(shop):
    shop.put('mail', '--lane', 'l', 'a')
    shop.put('mail', '--lane', 'l', 'b')
    claim = shop.claim('mail')
    shop.ok('queue', 'pause', 'mail')
    waiting = shop.start('claim', 'mail', '-v', '--wait', '1h')
    lines_until(waiting.stderr, 'listening for wake-ups')
    shop.ok('complete', env=claim['env'])
    lines_until(waiting.stderr, 'woken by another process')


@pytest.mark.parametrize('fleet', ['unusable', 'removed'])
def test_without_wake_ups_work_is_found_all_the_same(shop, fleet):
    env = {'BATON_FLEET': '/dev/null/fleet'} if fleet == 'unusable' else {}
    waiting = shop.start('claim', 'mail', '-v', '--wait', '1h', env=env)
    if fleet == 'unusable':
        lines_until(waiting.stderr, 'no wake-ups between processes: ')
    else:
        lines_until(waiting.stderr, 'listening for wake-ups')
        os.unlink(shop.env['BATON_FLEET'])
    assert shop.run('put', 'mail', 'x', env=env).returncode == OK
    out, told = waiting.communicate(timeout=60)
    assert waiting.returncode == OK and out.endswith(b'\tx\n')
    assert b'woken' not in told


def test_a_put_where_nobody_listens_makes_no_fleet(shop):
    shop.put('mail', 'x')
    assert not os.path.exists(shop.env['BATON_FLEET'])


def test_delayed_work_is_waited_for(shop):
    shop.put('mail', 'x', '--delay', '100ms')
    assert shop.claim('mail', '--wait', '1h')['jobs'][0]['payload'] == 'x'
