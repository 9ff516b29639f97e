"""baton work --stream: persistent workers that get one claim after the other."""
import json
import os
import pathlib
import select
import shutil
import signal
import sys
import time

import pytest

OK, USAGE = 0, 64
PATIENCE = 120
EXAMPLES = pathlib.Path(__file__).parents[2] / 'examples/stream'

# What a worker of a test begins with: take() gives the next line, None at the end.
PRELUDE = '''
import json, os, signal, socket, sys
channel = socket.socket(fileno=3)
lines = channel.makefile('rb')

def take():
    line = lines.readline()
    return json.loads(line) if line else None

def say(what):
    channel.sendall(what if isinstance(what, bytes) else json.dumps(what).encode() + b'\\n')

def done(claim, **fields):
    say({'claim': claim['claim'], 'ok': True, **fields})

def tell(what):
    with open(TOLD, 'a') as file:
        file.write(f'{what}\\n')

def claims():
    while (claim := take()) is not None:
        yield claim

'''

# What fails is not tried again while a test runs.
LATER = ['backoff=fixed', 'base=1h', 'cap=1h', 'lane-backoff=fixed', 'lane-base=1h', 'lane-cap=1h']


class Pipe:
    """Where workers say that they have come somewhere, a line each."""

    def __init__(self, path):
        self.path = str(path)
        os.mkfifo(self.path)
        # For writing as well, so that it never ends.
        self.file = os.fdopen(os.open(self.path, os.O_RDWR), 'r+b', buffering=0)
        self.rest = b''

    def line(self):
        while b'\n' not in self.rest:
            ready, _, _ = select.select([self.file], [], [], PATIENCE)
            assert ready, f'nobody said anything for {PATIENCE} s'
            self.rest += os.read(self.file.fileno(), 4096)
        line, self.rest = self.rest.split(b'\n', 1)
        return line.decode()


@pytest.fixture
def shop(shop):
    """What fails in the queue mail is tried again when the test is long over."""
    shop.ok('queue', 'set', 'mail', *(f'{lane}{setting}' for lane in ('', 'lane-')
                                      for setting in ('backoff=fixed', 'base=10min', 'cap=10min')))
    return shop


@pytest.fixture
def pipe(tmp_path):
    return Pipe(tmp_path / 'pipe')


@pytest.fixture
def told(tmp_path):
    """What workers have told in a file, by line."""
    def read():
        return (tmp_path / 'told').read_text().splitlines()
    return read


@pytest.fixture
def worker(tmp_path):
    """The command of a worker that does what a piece of Python says."""
    def make(body):
        path = tmp_path / 'worker.py'
        told = str(tmp_path / 'told')
        path.write_text(f'TOLD = {told!r}\n{PRELUDE}{body}')
        return [sys.executable, str(path)]
    return make


def stream(shop, queue, command, *options, **given):
    """Until nothing is ready any more."""
    shop.ok('queue', 'set', queue, *LATER)
    return shop.run('work', queue, '--stream', '--until-empty', *options, '--', *command, **given)


def is_gone(pid):
    """Whether the process has ended: what nobody has waited for yet counts as ended."""
    try:
        with open(f'/proc/{pid}/stat', encoding='ascii') as file:
            return file.read().rsplit(')', 1)[1].split()[0] in 'ZX'
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_a_claim_says_what_a_job_is(shop, worker, told):
    shop.put('mail', '--lane', 'a/b', 'x "quoted"')
    shop.ok('put', 'mail', '-', input=b'\xff\0')
    result = stream(shop, 'mail', worker('''
for claim in claims():
    tell(json.dumps(claim))
    done(claim)
'''), '-j', '1')
    assert result.returncode == OK, result
    first, second = sorted((json.loads(line) for line in told()), key=lambda c: c['jobs'][0]['seq'])
    assert first.pop('fence') > 0 and first.pop('claim') != ''
    assert first == {'queue': 'mail', 'lane': 'a/b', 'concurrency_key': None, 'attempt': 1,
                     'jobs': [{'id': '1', 'seq': 1, 'payload': 'x "quoted"'}]}
    assert second['lane'] is None
    assert second['jobs'] == [{'id': '2', 'seq': 2, 'payload_base64': '/wA='}]
    assert shop.objects('ls', 'mail') == []


def test_the_jobs_of_a_lane_come_in_order_to_one_worker_after_the_other(shop, worker, told):
    for i in range(40):
        shop.put('mail', '--lane', str(i % 4), str(i))
    result = stream(shop, 'mail', worker('''
for claim in claims():
    tell(claim['lane'] + ' ' + claim['jobs'][0]['payload'])
    done(claim)
'''), '-j', '2', '--in-flight', '3')
    assert result.returncode == OK, result
    lanes = {}
    for line in told():
        lane, number = line.split()
        lanes.setdefault(lane, []).append(int(number))
    assert lanes == {str(lane): list(range(lane, 40, 4)) for lane in range(4)}


def test_one_worker_has_as_many_claims_as_may_be_in_flight(shop, worker, told):
    for i in range(4):
        shop.put('mail', str(i))
    result = stream(shop, 'mail', worker('''
while (first := take()) is not None:
    second = take()
    tell(os.getpid())
    done(second)
    done(first)
'''), '-j', '1', '--in-flight', '2')
    assert result.returncode == OK, result
    assert len(told()) == 2 and len(set(told())) == 1
    assert shop.objects('ls', 'mail') == []


def test_joined_jobs_are_one_claim(shop, worker, told):
    for i in range(3):
        shop.put('mail', '--lane', 'a', '--join', str(i))
    assert stream(shop, 'mail', worker('''
for claim in claims():
    tell(' '.join(job['payload'] for job in claim['jobs']))
    done(claim)
'''), '--join', '10').returncode == OK
    assert told() == ['0 1 2']


@pytest.mark.parametrize('value, kept', [
    ("'text \\u00e9'", 'text \u00e9'), ("{'a': [1, None]}", '{"a":[1,null]}'), ('7', '7'),
])
def test_the_result_is_kept_as_text_or_as_json(shop, worker, value, kept):
    shop.ok('queue', 'set', 'mail', 'keep=1h')
    shop.put('mail', 'x')
    assert stream(shop, 'mail', worker(f'''
for claim in claims():
    done(claim, result={value})
''')).returncode == OK
    job = shop.object('show', '1')
    assert (job['state'], job['result']) == ('done', kept)


@pytest.mark.parametrize('fields, state', [
    ({'error': 'no'}, 'retry'),
    ({'error': 'no', 'retry': True, 'delay_ms': 3600000}, 'retry'),
    ({'error': 'no', 'retry': False}, 'dead'),
])
def test_what_is_not_ok_fails_or_is_dead(shop, worker, fields, state):
    shop.put('mail', 'x')
    assert stream(shop, 'mail', worker(f'''
for claim in claims():
    say({{'claim': claim['claim'], 'ok': False, **{fields!r}}})
''')).returncode == OK
    job = shop.object('show', '1')
    assert (job['state'], job['error']) == (state, 'no')


def test_follow_up_work_is_there_exactly_once(shop, worker):
    for i in range(30):
        shop.put('mail', str(i))
    result = stream(shop, 'mail', worker('''
import base64
for claim in claims():
    payload = claim['jobs'][0]['payload']
    done(claim, emit=[
        {'queue': 'next', 'lane': 'l', 'payload': {'n': int(payload)}, 'priority': 3},
        {'queue': 'raw', 'payload_base64': base64.b64encode(b'\\xff').decode(), 'delay': '1h'}])
'''), '-j', '2', '--in-flight', '4')
    assert result.returncode == OK, result
    jobs = shop.objects('ls', 'next')
    assert sorted(shop.object('show', job['id'])['payload'] for job in jobs) == \
        sorted('{"n":%d}' % i for i in range(30))
    assert {(job['lane'], job['priority']) for job in jobs} == {('l', 3)}
    raw = shop.objects('ls', 'raw')
    assert len(raw) == 30 and {job['state'] for job in raw} == {'delayed'}
    assert shop.object('show', raw[0]['id'])['payload_base64'] == '/w=='


def test_what_is_beyond_a_limit_fails_its_claim_and_the_worker_goes_on(shop, worker, told):
    shop.put('mail', '--lane', 'a', 'big')
    shop.put('mail', '--lane', 'b', 'name')
    result = stream(shop, 'mail', worker('''
for claim in claims():
    tell(os.getpid())
    if claim['lane'] == 'a':
        done(claim, result='x' * (1 << 20) + 'x')
    else:
        done(claim, emit=[{'queue': 'a/b', 'payload': 1}])
'''), '-j', '1')
    assert result.returncode == OK, result
    assert len(told()) == 2 and len(set(told())) == 1
    assert 'result' in shop.object('show', '1')['error']
    assert 'a/b' in shop.object('show', '2')['error']
    assert {job['state'] for job in shop.objects('ls', 'mail')} == {'retry'}


def test_what_it_prints_and_its_progress_go_to_the_log(shop, worker):
    shop.put('mail', 'x')
    result = stream(shop, 'mail', worker('''
for claim in claims():
    print('to the one side', flush=True)
    print('to the other', file=sys.stderr, flush=True)
    say({'claim': claim['claim'], 'progress': {'percent': 50}})
    say({'claim': claim['claim'], 'progress': 'nearly'})
    done(claim)
'''))
    assert (result.returncode, result.stdout) == (OK, b'')
    log = result.stderr.decode()
    assert 'line="to the one side"' in log and 'line="to the other"' in log
    assert 'msg=progress' in log and 'percent' in log and 'progress=nearly' in log


def progress_of(shop, job, wanted):
    """What is shown of how far a job is, once it is that text."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        shown = shop.object('show', job)['progress']
        if shown and shown['text'] == wanted:
            return shown
    raise AssertionError(f'nobody told {wanted} for {PATIENCE} s')


def test_how_far_a_job_is_can_be_seen_while_it_runs(shop, worker, tmp_path):
    go = str(tmp_path / 'go')
    os.mkfifo(go)
    shop.put('mail', 'x')
    assert shop.object('show', '1')['progress'] is None
    runner = shop.start('work', 'mail', '--stream', '-j', '1', '--once', '--beat', '100ms', '--',
                        *worker(f'''
claim = take()
id = claim['claim']
say({{'claim': id, 'progress': {{'percent': 5, 'text': 'old'}}}})
say({{'claim': id, 'progress': {{'percent': 50, 'text': 'a\\nb'}}}})
open({go!r}).read()
for i in range(100):
    say({{'claim': id, 'progress': i / 10}})
say({{'claim': id, 'progress': 'nearly'}})
open({go!r}).read()
done(claim)
take()
'''))
    shown = progress_of(shop, '1', 'a b')
    assert shown['percent'] == 50 and shown['told']
    assert 'progress  50 %, a b (told at ' in shop.run('show', '1').stdout.decode()
    pathlib.Path(go).write_text('', encoding='ascii')
    assert progress_of(shop, '1', 'nearly')['percent'] is None
    pathlib.Path(go).write_text('', encoding='ascii')
    _, log = runner.communicate(timeout=PATIENCE)
    assert runner.returncode == OK
    assert log.count(b'msg=progress') == 103
    assert shop.run('show', '1').returncode == 1     # it is done, and nothing is kept of it


# What a worker of a test asks for, and gets.
CHECKPOINT = '''
def more(claim, jobs=True):
    say({'claim': claim['claim'], 'checkpoint': jobs})
    answer = take()
    assert answer['claim'] == claim['claim']
    assert answer['more'] == [] or answer['fence'] > claim['fence']
    return [job['id'] for job in answer['more']]

'''


def test_at_a_checkpoint_a_run_gets_what_came_meanwhile_and_ends_with_all_of_it(shop, worker, told,
                                                                               pipe, tmp_path):
    go = str(tmp_path / 'go')
    os.mkfifo(go)
    shop.ok('queue', 'set', 'mail', 'keep=1h')
    shop.put('mail', '--lane', 'a', '--join', '1')
    runner = shop.start('work', 'mail', '--stream', '--once', '--', *worker(CHECKPOINT + f'''
claim = take()
assert more(claim) == []
os.write(os.open({pipe.path!r}, os.O_WRONLY), b'begun\\n')
open({go!r}).read()
tell(more(claim, 1))
tell(more(claim))
tell(more(claim))
done(claim, result='all')
take()
'''))
    pipe.line()
    for options in (['--join'], ['--join'], ['--join'], [], ['--join']):
        shop.put('mail', '--lane', 'a', *options, 'x')
    shop.put('mail', '--lane', 'b', '--join', 'x')
    assert {job['id']: job['state'] for job in shop.objects('ls', 'mail')}['2'] == 'ready'
    pathlib.Path(go).write_text('', encoding='ascii')
    assert runner.wait(PATIENCE) == OK, runner.stderr.read()
    assert told() == ["['2']", "['3', '4']", '[]']
    jobs = {job['id']: job for job in shop.objects('ls', 'mail')}
    assert [jobs[str(i)]['state'] for i in range(1, 8)] == ['done'] * 4 + ['ready'] * 3
    assert {shop.object('show', str(i))['result'] for i in range(1, 5)} == {'all'}
    assert shop.run('check').returncode == OK


def test_a_runner_that_is_killed_after_a_checkpoint_loses_nothing_of_it(shop, worker, told, pipe):
    for i in range(3):
        shop.put('mail', '--lane', 'a', '--join', str(i))
    body = CHECKPOINT + f'''
claim = take()
tell([claim['attempt'], [job['id'] for job in claim['jobs']], more(claim, 1)])
os.write(os.open({pipe.path!r}, os.O_WRONLY), b'taken\\n')
if claim['attempt'] == 1:
    signal.pause()
done(claim)
for claim in claims():
    tell([claim['attempt'], [job['id'] for job in claim['jobs']]])
    done(claim)
'''
    runner = shop.start('work', 'mail', '--stream', '-j', '1', '--', *worker(body))
    pipe.line()
    assert {job['state'] for job in shop.objects('ls', 'mail')} == {'claimed', 'ready'}
    runner.kill()
    runner.wait(PATIENCE)
    second = stream(shop, 'mail', worker(body), '-j', '1')
    assert second.returncode == OK, second
    assert told() == ["[1, ['1'], ['2']]", "[2, ['1'], ['2']]", "[1, ['3']]"]
    assert shop.objects('ls', 'mail') == []
    assert shop.run('check').returncode == OK


def test_who_took_a_job_that_is_cancelled_is_told(shop, worker, told, pipe):
    for i in range(2):
        shop.put('mail', '--lane', 'a', '--join', str(i))
    runner = shop.start('work', 'mail', '--stream', '-j', '1', '--until-empty', '--beat', '50ms',
                        '--', *worker(CHECKPOINT + f'''
claim = take()
assert more(claim) == ['2']
os.write(os.open({pipe.path!r}, os.O_WRONLY), b'taken\\n')
assert take() == {{'cancel': claim['claim']}}
say({{'claim': claim['claim'], 'ok': False}})
for claim in claims():
    tell([claim['attempt'], [job['id'] for job in claim['jobs']]])
    done(claim)
'''))
    pipe.line()
    shop.run('cancel', '2')
    assert runner.wait(PATIENCE) == OK, runner.stderr.read()
    assert told() == ["[1, ['1']]"]
    assert shop.objects('ls', 'mail') == []


def test_a_worker_that_dies_after_a_checkpoint_fails_all_that_it_took(shop, worker):
    for i in range(2):
        shop.put('mail', '--lane', 'a', '--join', str(i))
    assert stream(shop, 'mail', worker(CHECKPOINT + '''
claim = take()
assert more(claim) == ['2']
os.kill(os.getpid(), signal.SIGKILL)
''')).returncode == OK
    jobs = shop.objects('ls', 'mail')
    assert [(job['state'], job['attempt']) for job in jobs] == [('retry', 1)] * 2


@pytest.mark.parametrize('second', ["'checkpoint': True", "'ok': True"])
def test_who_does_not_wait_for_the_answer_to_a_checkpoint_is_ended(shop, worker, second):
    for i in range(2):
        shop.put('mail', '--lane', 'a', '--join', str(i))
    result = stream(shop, 'mail', worker(f'''
claim = take()
id = claim['claim']
lines = [{{'claim': id, 'checkpoint': True}}, {{'claim': id, {second}}}]
say(b''.join(json.dumps(line).encode() + b'\\n' for line in lines))
take()
signal.pause()
'''))
    assert result.returncode == OK, result
    first, rest = shop.objects('ls', 'mail')
    assert first['state'] == 'retry'
    assert first['error'].endswith('has a checkpoint that was not answered yet')
    # It was taken by then, and has failed with the claim; or it was not.
    assert (rest['state'], rest['attempt']) in (('retry', 1), ('ready', 0))


NONSENSE = [
    ("b'nothing\\n'", 'it is no JSON'),
    ("b'\\xff\\n'", 'it is no JSON'),
    ("[]", 'it is no object'),
    ("{'claim': id}", "it has to have either 'ok', 'progress' or 'checkpoint'"),
    ("{'ok': True}", "it has no 'claim'"),
    ("{'claim': 'other', 'ok': True}", "claim 'other' is not one that it has"),
    ("{'claim': id, 'ok': True, 'extra': 1}", "unknown field 'extra'"),
    ("{'claim': id, 'ok': 'yes'}", "'ok' takes true or false"),
    ("{'claim': id, 'ok': False, 'result': 1}", "only what is ok has a 'result'"),
    ("{'claim': id, 'ok': True, 'emit': [{'queue': 'q'}]}", "an emitted job has no 'payload'"),
]


@pytest.mark.parametrize('line, why', NONSENSE)
def test_who_writes_nonsense_is_ended_and_its_claims_fail(shop, worker, line, why):
    shop.put('mail', 'x')
    result = stream(shop, 'mail', worker(f'''
for claim in claims():
    id = claim['claim']
    say({line})
'''))
    assert result.returncode == OK, result
    job = shop.object('show', '1')
    assert job['state'] == 'retry'
    assert job['error'].startswith(f'the worker wrote nonsense: {why}')
    assert result.stderr.decode().count('a worker wrote nonsense, and is ended') == 1
    assert len(result.stderr.splitlines()) == 1


def test_an_answer_that_is_given_twice_is_nonsense(shop, worker):
    shop.put('mail', 'first')
    shop.put('mail', 'second')
    result = stream(shop, 'mail', worker('''
first, second = take(), take()
done(first)
done(first)
take()
'''), '-j', '1', '--in-flight', '2')
    assert result.returncode == OK, result
    job, = shop.objects('ls', 'mail')
    assert job['state'] == 'retry'
    assert 'is not one that it has, or has still' in shop.object('show', job['id'])['error']


def test_a_line_without_bound_is_nonsense(shop, worker):
    shop.put('mail', 'x')
    result = stream(shop, 'mail', worker('''
take()
while True:
    say(b' ' * (1 << 20))
'''))
    assert result.returncode == OK, result
    assert shop.object('show', '1')['error'] == \
        'the worker wrote nonsense: a line of more than 64 MiB'


def test_half_a_line_at_the_end_is_nonsense(shop, worker):
    shop.put('mail', 'x')
    result = stream(shop, 'mail', worker('''
claim = take()
say(b'{"claim":"' + claim['claim'].encode())
'''))
    assert result.returncode == OK, result
    assert shop.object('show', '1')['error'] == 'the worker wrote nonsense: half a line at its end'


def test_who_dies_fails_what_it_had_and_is_started_again(shop, worker, told):
    shop.put('mail', '--lane', 'a', 'good')
    shop.put('mail', '--lane', 'a', 'bad')
    shop.put('mail', '--lane', 'b', 'good')
    shop.put('mail', '--lane', 'c', 'killed')
    result = stream(shop, 'mail', worker('''
for claim in claims():
    payload = claim['jobs'][0]['payload']
    tell(payload)
    if payload == 'bad':
        sys.exit(3)
    if payload == 'killed':
        os.kill(os.getpid(), signal.SIGKILL)
    done(claim)
'''), '-j', '1')
    assert result.returncode == OK, result
    assert sorted(told()) == ['bad', 'good', 'good', 'killed']
    assert {(job['state'], job['error']) for job in shop.objects('ls', 'mail')} == {
        ('retry', 'it ended with status 3'), ('retry', 'it was ended by signal 9 (Killed)')}
    assert result.stderr.decode().count('msg="a worker has ended"') == 2


def test_what_was_answered_before_the_end_counts(shop, worker):
    shop.put('mail', 'x')
    result = stream(shop, 'mail', worker('''
done(take())
os.kill(os.getpid(), signal.SIGKILL)
'''))
    assert result.returncode == OK, result
    assert shop.objects('ls', 'mail') == []


def test_a_command_that_cannot_be_executed_fails_the_job(shop):
    shop.put('mail', 'x')
    assert stream(shop, 'mail', ['/nowhere/x']).returncode == OK
    assert "'/nowhere/x' cannot be executed" in shop.object('show', '1')['error']


def test_what_takes_too_long_ends_its_worker(shop, worker):
    shop.put('mail', 'slow')
    result = stream(shop, 'mail', worker('''
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for claim in claims():
    signal.pause()
'''), '--timeout', '300ms')
    assert result.returncode == OK, result
    job = shop.object('show', '1')
    assert (job['state'], job['error']) == ('retry', 'it took longer than 300ms')


def test_what_a_worker_had_beside_what_took_too_long_is_given_back(shop, worker, pipe):
    shop.put('mail', 'slow')
    shop.start('work', 'mail', '--stream', '-j', '1', '--in-flight', '2', '--timeout', '2s', '--',
               *worker(f'''
hangs = False
for claim in claims():
    payload, attempt = claim['jobs'][0]['payload'], claim['attempt']
    hangs = hangs or (payload == 'slow' and attempt == 1)
    open({pipe.path!r}, 'w').write(f'{{payload}} {{attempt}} {{hangs}}\\n')
    if not hangs:
        done(claim)
'''))
    assert pipe.line() == 'slow 1 True'
    shop.put('mail', 'quick')
    lines = [pipe.line()]
    while not (lines[-1].startswith('quick') and lines[-1].endswith('False')):
        lines.append(pipe.line())
    assert lines[-1] == 'quick 1 False'


def test_who_closes_its_socket_and_lives_on_is_ended(shop, worker):
    shop.put('mail', 'x')
    result = stream(shop, 'mail', worker('''
take()
lines.close()
channel.close()
signal.pause()
'''), '--grace', '100ms')
    assert result.returncode == OK, result
    assert shop.object('show', '1')['error'] == 'the worker closed its descriptor 3'


def test_who_does_not_read_is_not_written_to_without_bound(shop, worker):
    shop.ok('queue', 'set', 'mail', 'payload-max=8388608')
    payload = b'x' * (8 << 20)
    shop.ok('put', 'mail', '-', input=payload)
    result = stream(shop, 'mail', worker('signal.pause()\n'), '-j', '1', '--in-flight', '4',
                    '--timeout', '500ms')
    assert result.returncode == OK, result
    assert shop.object('show', '1')['error'] == 'it took longer than 500ms'


def test_a_large_payload_comes_whole(shop, worker, told):
    shop.ok('queue', 'set', 'mail', 'payload-max=8388608')
    shop.ok('put', 'mail', '-', input=b'x' * (8 << 20))
    result = stream(shop, 'mail', worker('''
for claim in claims():
    tell(len(claim['jobs'][0]['payload']))
    done(claim)
'''))
    assert result.returncode == OK, result
    assert told() == [str(8 << 20)]


def test_asked_to_end_it_lets_claims_end_and_hangs_up(shop, worker, pipe):
    gate = Pipe(shop.folder / 'gate')
    shop.put('mail', 'x')
    shop.put('mail', 'y')
    runner = shop.start('work', 'mail', '--stream', '-j', '1', '--', *worker(f'''
for claim in claims():
    open({pipe.path!r}, 'w').write('begun\\n')
    open({gate.path!r}).readline()
    done(claim)
open({pipe.path!r}, 'w').write('bye\\n')
'''))
    assert pipe.line() == 'begun'
    runner.send_signal(signal.SIGTERM)
    gate.file.write(b'go\n')
    assert pipe.line() == 'bye'
    assert runner.wait(PATIENCE) == OK
    assert [job['state'] for job in shop.objects('ls', 'mail')] == ['ready']
    assert runner.stderr.read() == b''


def test_asked_twice_it_cancels_claims_and_gives_them_back(shop, worker, pipe):
    shop.put('mail', 'x')
    runner = shop.start('work', 'mail', '--stream', '--', *worker(f'''
claim = take()
open({pipe.path!r}, 'w').write('begun\\n')
assert take() == {{'cancel': claim['claim']}}
open({pipe.path!r}, 'w').write('cancelled\\n')
say({{'claim': claim['claim'], 'ok': False, 'error': 'cancelled'}})
'''))
    assert pipe.line() == 'begun'
    runner.send_signal(signal.SIGTERM)
    runner.send_signal(signal.SIGINT)
    assert pipe.line() == 'cancelled'
    assert runner.wait(PATIENCE) == OK
    job = shop.object('show', '1')
    assert (job['state'], job['attempt']) == ('ready', 0)


def test_who_does_not_heed_a_cancel_is_ended(shop, worker, pipe):
    shop.put('mail', 'x')
    runner = shop.start('work', 'mail', '--stream', '--grace', '100ms', '--', *worker(f'''
take()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open({pipe.path!r}, 'w').write(f'{{os.getpid()}}\\n')
signal.pause()
'''))
    pid = pipe.line()
    runner.send_signal(signal.SIGTERM)
    runner.send_signal(signal.SIGINT)
    assert runner.wait(PATIENCE) == OK
    assert is_gone(pid)
    job = shop.object('show', '1')
    assert (job['state'], job['attempt']) == ('ready', 0)


def test_killed_its_workers_end_and_another_runner_goes_on(shop, worker, pipe):
    shop.put('post', '--lane', 'a', 'x')
    command = worker(f'''
for claim in claims():
    open({pipe.path!r}, 'w').write(f'{{os.getpid()}} {{claim["attempt"]}}\\n')
    if claim['attempt'] == 1:
        signal.pause()
    done(claim)
''')
    first = shop.start('work', 'post', '--stream', '--', *command)
    pid, attempt = pipe.line().split()
    assert attempt == '1'
    second = shop.start('work', 'post', '--stream', '--', *command)
    first.kill()
    first.wait(PATIENCE)
    _, attempt = pipe.line().split()
    assert attempt == '2'
    assert is_gone(pid)
    second.kill()


def interpreter(name):
    path = shutil.which(name)
    if not path:
        pytest.skip(f'{name} is not installed')
    return path


@pytest.mark.parametrize('name, file', [
    ('python3', 'baton_worker.py'), ('node', 'baton-worker.mjs'), ('php', 'baton_worker.php'),
])
def test_the_examples_count_words(shop, name, file):
    shop.ok('queue', 'set', 'words', 'keep=1h')
    shop.put('words', '--lane', 'a', 'one two\nthree \u00fc')
    shop.ok('put', 'words', '--lane', 'b', '-', input=b'\xff \xfe')
    shop.put('words', '')
    result = stream(shop, 'words', [interpreter(name), str(EXAMPLES / file)], '-j', '1',
                    '--in-flight', '2')
    assert result.returncode == OK, result
    found = {job['lane']: (job['state'], shop.object('show', job['id'])['result'])
             for job in shop.objects('ls', 'words')}
    assert found == {'a': ('done', '{"words":4}'), 'b': ('done', '{"words":2}'),
                     None: ('done', '{"words":0}')}
    emitted = {job['lane']: shop.object('show', job['id'])['payload']
               for job in shop.objects('ls', 'counts')}
    assert emitted == {'a': '{"words":4}', 'b': '{"words":2}', None: '{"words":0}'}
    assert 'line="4 words in words"' in result.stderr.decode()


HELPERS = {
    'python3': ('py', '''
import sys
sys.path.insert(0, {folder!r})
import baton_worker

def handle(claim):
    text, = claim.payloads()
    if text == 'reject':
        raise baton_worker.Reject('never')
    if text == 'retry':
        raise baton_worker.Retry('later', delay_ms=3600000)
    if text == 'wait':
        claim.progress('waits')
        assert claim.cancelled.wait({patience})
    raise RuntimeError('broken')

baton_worker.serve(handle)
'''),
    'node': ('mjs', '''
import {{ Reject, Retry, serve }} from '{folder}/baton-worker.mjs';

serve(async (claim) => {{
  const [text] = claim.payloads();
  if (text === 'reject') throw new Reject('never');
  if (text === 'retry') throw new Retry('later', 3600000);
  if (text === 'wait') {{
    claim.progress('waits');
    await new Promise((resolve) => claim.signal.addEventListener('abort', resolve));
  }}
  throw new Error('broken');
}});
'''),
    'php': ('php', '''<?php
require '{folder}/baton_worker.php';

baton_serve(function (BatonClaim $claim) {{
    [$text] = iterator_to_array($claim->payloads());
    if ($text === 'reject') {{
        throw new BatonReject('never');
    }}
    if ($text === 'retry') {{
        throw new BatonRetry('later', 3600000);
    }}
    if ($text === 'wait') {{
        $claim->progress('waits');
        while (!$claim->isCancelled()) {{
        }}
    }}
    throw new RuntimeException('broken');
}});
'''),
}


MORE = {
    'python3': ('py', '''
import sys
sys.path.insert(0, {folder!r})
import baton_worker

def handle(claim):
    before = claim.fence
    got = claim.more(1) + claim.more() + claim.more()
    assert claim.fence > before
    return ' '.join(got) + ' of ' + ' '.join(claim.payloads())

baton_worker.serve(handle)
'''),
    'node': ('mjs', '''
import {{ serve }} from '{folder}/baton-worker.mjs';

serve(async (claim) => {{
  const before = claim.fence;
  const got = [...await claim.more(1), ...await claim.more(), ...await claim.more()];
  if (claim.fence <= before) throw new Error('an old fence');
  return `${{got.join(' ')}} of ${{[...claim.payloads()].join(' ')}}`;
}});
'''),
    'php': ('php', '''<?php
require '{folder}/baton_worker.php';

baton_serve(function (BatonClaim $claim) {{
    $before = $claim->fence;
    $got = array_merge($claim->more(1), $claim->more(), $claim->more());
    if ($claim->fence <= $before) {{
        throw new Exception('an old fence');
    }}
    $all = iterator_to_array($claim->payloads(), false);
    return implode(' ', $got) . ' of ' . implode(' ', $all);
}});
'''),
}


@pytest.mark.parametrize('name', MORE)
def test_a_helper_takes_more_at_a_checkpoint(shop, tmp_path, name):
    ending, text = MORE[name]
    path = tmp_path / f'handler.{ending}'
    path.write_text(text.format(folder=str(EXAMPLES)))
    shop.ok('queue', 'set', 'mail', 'keep=1h')
    for word in ('a', 'b', 'c', 'd'):
        shop.put('mail', '--lane', 'l', '--join', word)
    result = stream(shop, 'mail', [interpreter(name), str(path)], '-j', '1')
    assert result.returncode == OK, result
    assert {shop.object('show', str(i))['result'] for i in range(1, 5)} == {'b c d of a b c d'}


@pytest.fixture
def helper(tmp_path):
    """The command of a worker that uses one of the single files."""
    def make(name):
        ending, text = HELPERS[name]
        path = tmp_path / f'handler.{ending}'
        path.write_text(text.format(folder=str(EXAMPLES), patience=PATIENCE))
        return [interpreter(name), str(path)]
    return make


@pytest.mark.parametrize('name', HELPERS)
def test_a_helper_says_how_a_claim_failed(shop, helper, name):
    for text in ('reject', 'retry', 'fail'):
        shop.put('mail', '--lane', text, text)
    result = stream(shop, 'mail', helper(name), '-j', '1')
    assert result.returncode == OK, result
    jobs = {job['lane']: job for job in shop.objects('ls', 'mail')}
    assert (jobs['reject']['state'], jobs['reject']['error']) == ('dead', 'never')
    assert (jobs['retry']['state'], jobs['retry']['error']) == ('retry', 'later')
    assert jobs['retry']['due'] > jobs['fail']['due']
    assert jobs['fail']['state'] == 'retry' and 'broken' in jobs['fail']['error']
    assert result.stderr == b''


@pytest.mark.parametrize('name', HELPERS)
def test_a_helper_tells_that_a_claim_is_cancelled(shop, helper, name):
    shop.put('mail', 'wait')
    runner = shop.start('work', 'mail', '--stream', '--grace', '1h', '--', *helper(name))
    assert b'progress=waits' in runner.stderr.readline()
    runner.send_signal(signal.SIGTERM)
    runner.send_signal(signal.SIGINT)
    assert runner.wait(PATIENCE) == OK
    job = shop.object('show', '1')
    assert (job['state'], job['attempt']) == ('ready', 0)


@pytest.mark.parametrize('arguments, line', [
    (['mail', '--stream', '--lines', '--', 'true'],
     '--stream and --lines cannot be together: a worker gets lines of JSON anyway'),
    (['mail', '--stream', '--json', '--', 'true'],
     '--stream and --json cannot be together: a worker gets lines of JSON anyway'),
    (['mail', '--in-flight', '2', '--', 'true'], '--in-flight needs --stream'),
    (['mail', '--stream', '--in-flight', '0', '--', 'true'], None),
])
def test_what_is_wrong_with_a_call_is_said(shop, arguments, line):
    said = shop.refused(USAGE, 'work', *arguments)
    assert line is None or said == line


def test_more_claims_than_there_may_be_are_refused(shop):
    result = shop.run('work', 'mail', '--stream', '-j', '1000', '--in-flight', '5', '--', 'true')
    assert result.returncode != OK
    assert b'1000 workers with 5 claims each: at most 4096 claims are allowed' in result.stderr
