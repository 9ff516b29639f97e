"""baton serve --services: services that the broker starts on demand, and commands that have one
connection each."""
import os
import signal
import socket
import subprocess
import sys
import time

import pytest

import frames
from brokers import BATON, KEEPER, await_fds, fds, place_fixture
from frames import BOUND

place = place_fixture
USAGE, TEMPFAIL = 64, 75
PATIENT = 'start-timeout = 10min'


def row(place, name='echo'):
    found, = [row for row in place.services() if row['service'] == name]
    return found


def await_state(place, state, name='echo'):
    end = time.monotonic() + BOUND
    while row(place, name)['state'] != state:
        assert time.monotonic() < end, place.log()


def await_end(pid):
    """Until there is no such process, or only what is left of it."""
    end = time.monotonic() + BOUND
    while True:
        try:
            with open(f'/proc/{pid}/stat', encoding='ascii') as file:
                if file.read().rsplit(')', 1)[1].split()[0] == 'Z':
                    return
        except (FileNotFoundError, ProcessLookupError):
            return
        assert time.monotonic() < end


# Started on demand.

def test_a_service_is_started_by_the_first_who_wants_it(place):
    place.define('echo', '# An echo', '', f'command = {KEEPER} echo', PATIENT)
    place.serve_defined()
    assert (row(place)['state'], row(place)['starts'], row(place)['way']) == ('down', 0, 'handoff')
    assert place.way() == 'handoff'
    assert place.way() == 'handoff'
    up = row(place)
    assert (up['state'], up['starts'], up['current'], up['granted']) == ('up', 1, True, 2)
    assert place.connect('echo').stdout.splitlines()[0] == str(up['pid'])
    shown = subprocess.run([BATON, 'services'], env=place.env, check=True, stdout=subprocess.PIPE,
                           text=True).stdout.splitlines()
    assert 'STATE' in shown[0] and ' up ' in shown[1]


def test_it_is_started_once_however_many_ask(place):
    place.define('echo', f'command = {KEEPER} echo', PATIENT)
    place.serve_defined()
    clients = [place.client(frames.hello('echo')) for _ in range(50)]
    replies = [frames.read_reply(client) for client in clients]
    assert {kind for kind, _ in replies} == {'negotiated'}
    pid = row(place)['pid']
    for client in clients:
        expected = b'%d\n' % pid
        assert frames.read_exactly(client, len(expected)) == expected
    assert (place.count('starts'), row(place)['starts']) == (1, 1)


def test_one_that_died_is_started_again(place):
    place.define('echo', f'command = {KEEPER} echo', PATIENT)
    place.serve_defined()
    first = int(place.connect('echo').stdout.split()[0])
    os.kill(first, signal.SIGKILL)
    second = int(place.connect('echo').stdout.split()[0])
    assert second != first
    assert row(place)['starts'] == 2


def test_one_that_forks_is_the_service_too(place):
    place.define('echo', f'command = sh -c "{KEEPER} echo & wait"', PATIENT)
    place.serve_defined()
    pid = int(place.connect('echo').stdout.split()[0])
    assert row(place)['pid'] == pid
    assert place.way() == 'handoff'
    assert place.count('starts') == 1


def test_another_backend_of_its_service_does_not_register_for_it(place):
    place.define('echo', 'command = sleep 1000', PATIENT)
    place.serve_defined('--park', '10min')
    client = place.client(frames.hello('echo'))
    place.await_log('msg="service started"')
    keeper = place.keeper()
    assert frames.read_reply(client)[0] == 'negotiated'
    keeper.kill()
    keeper.wait()
    place.await_log('msg="backend gone"')
    # The process is still to register, so no other is started for the next.
    place.client(frames.hello('echo'))
    place.await_count('waiting_clients', 2)
    assert place.count('starts') == 1


def test_one_that_ends_at_once_is_started_three_times(place):
    place.define('echo', 'command = sh -c "exit 3"')
    place.serve_defined()
    client = place.client(frames.hello('echo'))
    kind, reply = frames.read_reply(client)
    assert (kind, reply[4]) == ('refused', 3)
    assert 0 < reply[6] <= 30000
    assert reply[1] == b'the service was started 3 times in 30 s, and did not stay'
    given_up = row(place)
    assert (given_up['state'], given_up['starts']) == ('given up', 3)
    assert 0 < given_up['retry_after_ms'] <= 30000
    log = place.log()
    assert log.count('how="exit status 3"') == 3
    assert log.count('msg="service given up for now"') == 1
    # Who comes now is told at once.
    kind, reply = frames.read_reply(place.client(frames.hello('echo')))
    assert (kind, reply[4]) == ('refused', 3)
    assert (place.count('starts'), place.count('failed_starts')) == (3, 3)
    result = place.connect('echo', '--wait', '1s')
    assert result.returncode == TEMPFAIL
    assert 'started 3 times in 30 s' in result.stderr


def test_one_that_never_registers_is_ended_with_all_it_has_started(place):
    place.define('echo', 'command = sh -c "sleep 1000 & echo here $! >&2; wait"',
                 'start-timeout = 100ms')
    broker = place.serve_defined()
    before = fds(broker)
    kind, reply = frames.read_reply(place.client(frames.hello('echo')))
    assert (kind, reply[4]) == ('refused', 3)
    assert place.log().count('msg="service did not register in time"') == 3
    await_fds(broker, before)
    for line in place.log().splitlines():
        if line.startswith('here '):
            await_end(int(line.split()[1]))


def test_one_that_is_killed_before_it_registers_is_started_again(place):
    mark = f'{place.top}/mark'
    place.define('echo', f"command = sh -c 'test -e {mark} && exec {KEEPER} echo;"
                 f" touch {mark}; echo waits $$ >&2; exec sleep 1000'", PATIENT)
    place.serve_defined()
    client = place.client(frames.hello('echo') + b'still here\n')
    place.await_log('waits ')
    line, = [line for line in place.log().splitlines() if line.startswith('waits ')]
    assert row(place)['state'] == 'starting'
    os.kill(int(line.split()[1]), signal.SIGKILL)
    assert frames.read_reply(client)[0] == 'negotiated'
    expected = b'%d\nstill here\n' % row(place)['pid']
    assert frames.read_exactly(client, len(expected)) == expected
    assert (place.count('starts'), place.count('failed_starts')) == (2, 1)
    assert 'how="signal 9"' in place.log()


def test_a_program_that_is_not_there_is_told_to_the_client(place):
    place.define('none', 'command = no-such-program')
    place.define('folder', f'command = {place.top}', 'takes = stdio')
    place.serve_defined()
    for name, why in (('none', b"there is no program 'no-such-program' in PATH"),
                      ('folder', f"'{place.top}' cannot be run".encode())):
        kind, reply = frames.read_reply(place.client(frames.hello(name)))
        assert (kind, reply[4], reply[1]) == ('refused', 3, why)


def test_one_that_is_idle_is_stopped_and_started_again(place):
    place.define('echo', f'command = {KEEPER} echo', 'idle = 50ms', PATIENT)
    place.serve_defined()
    place.client(frames.hello('echo'))
    place.await_log('msg="service idle"')
    first, = place.logged_pids('service started')
    await_end(first)
    await_state(place, 'down')
    place.client(frames.hello('echo'))
    place.await_log('msg="service idle"', 2)
    assert len(set(place.logged_pids('service started'))) == 2


STUBBORN = f'''command = sh -c "trap '' TERM; {KEEPER} echo & wait; wait"'''


def test_one_that_does_not_end_is_killed(place):
    place.define('echo', STUBBORN, 'idle = 50ms', 'stop-timeout = 50ms', PATIENT)
    place.serve_defined()
    place.client(frames.hello('echo'))
    place.await_log('msg="service did not end in time"')
    for pid in place.logged_pids('service started') + place.logged_pids('backend registered'):
        await_end(pid)


def test_while_one_ends_the_next_is_started(place):
    place.define('echo', STUBBORN, 'idle = 50ms', 'stop-timeout = 10min', PATIENT)
    place.serve_defined()
    place.client(frames.hello('echo'))
    place.await_log('msg="service idle"')
    # Who comes now gets another one, though the first is there and registered.
    place.client(frames.hello('echo'))
    place.await_log('msg="backend registered"', 2)
    first, second = place.logged_pids('backend registered')
    assert first != second
    os.kill(first, 0)


# Services that hang.

# A backend that takes offers, and answers none. It knows nothing of probes.
SILENT = """import os, sys
sys.path.insert(0, sys.argv[1])
import frames
backend = frames.Backend(os.environ['BATON_BROKER'], 'echo', generation=os.getpid())
backend.channel.settimeout(None)
while backend.receive()[0]:
    pass
"""


def define_silent(place, *lines):
    path = f'{place.top}/silent.py'
    with open(path, 'w', encoding='utf-8') as file:
        file.write(SILENT)
    here = os.path.dirname(os.path.abspath(__file__))
    place.define('echo', f"command = {sys.executable} {path} '{here}'", 'stop-timeout = 10min',
                 PATIENT, *lines)


def test_one_that_is_stopped_is_replaced(place):
    place.define('echo', f'command = {KEEPER} echo', 'probe = 500ms', 'stop-timeout = 50ms',
                 PATIENT)
    place.serve_defined()
    pid = int(place.connect('echo').stdout.split()[0])
    os.kill(pid, signal.SIGSTOP)
    end = time.monotonic() + BOUND
    while pid not in place.logged_pids('service hangs'):
        assert time.monotonic() < end, place.log()
    # It cannot hear SIGTERM, and is killed.
    await_end(pid)
    assert int(place.connect('echo').stdout.split()[0]) != pid
    assert place.count('hung') >= 1


# One that answers probes, and notes each.
LIVELY = """import os, sys
sys.path.insert(0, sys.argv[1])
import frames
backend = frames.Backend(os.environ['BATON_BROKER'], 'echo', generation=os.getpid(),
                         capabilities=65)
backend.channel.settimeout(None)
while data := backend.channel.recv(1 << 17):
    told = frames.fields(data)
    if told.get(3) == frames.PROBE:
        with open(sys.argv[2], 'a') as file:
            file.write(f'{os.getpid()}\\n')
        backend.channel.send(frames.envelope(frames.RESPONSE, frames.PROBE, b'', told[5]))
"""


def test_one_that_answers_probes_stays(place):
    path, notes = f'{place.top}/lively.py', f'{place.top}/probes'
    with open(path, 'w', encoding='utf-8') as file:
        file.write(LIVELY)
    here = os.path.dirname(os.path.abspath(__file__))
    place.define('echo', f"command = {sys.executable} {path} '{here}' {notes}", 'probe = 200ms',
                 PATIENT)
    place.serve_defined()
    end = time.monotonic() + BOUND
    pids = ['']
    # One that did not answer would get no third probe. On a machine that is too busy for one to
    # answer in time the next one has its turn.
    while max(map(pids.count, pids)) < 4:
        assert time.monotonic() < end, place.log()
        if row(place)['state'] not in ('up', 'starting'):
            place.client(frames.hello('echo'))
        if os.path.exists(notes):
            with open(notes, encoding='ascii') as file:
                pids = file.read().splitlines() or ['']


def unanswered(place, number):
    """So many clients at once whose offers nobody answers."""
    before = place.count('ack_timeout')
    clients = [place.client(frames.hello('echo')) for _ in range(number)]
    kinds = [frames.read_reply(client)[0] for client in clients]
    place.await_count('ack_timeout', before + kinds.count('negotiated'))
    assert all(frames.is_ended(client) for client in clients)
    return kinds


def test_one_that_leaves_three_offers_unanswered_is_replaced_three_times(place):
    define_silent(place, 'probe = 10min')
    place.serve_defined('--ack-timeout', '100ms')
    for round_ in range(1, 4):
        assert unanswered(place, 3) == ['negotiated'] * 3    # at once, and so like one
        for _ in range(2):
            assert place.count('hung') == round_ - 1
            assert unanswered(place, 1) == ['negotiated']
        place.await_count('hung', round_)
        assert place.count('starts') == round_
    pids = place.logged_pids('service hangs')
    for pid in pids:
        await_end(pid)
    assert len(set(pids)) == 3
    assert unanswered(place, 1) == ['refused']


def test_one_that_is_not_probed_may_be_slow(place):
    define_silent(place)
    place.serve_defined('--ack-timeout', '100ms')
    assert unanswered(place, 4) == ['negotiated'] * 4
    assert (place.count('hung'), place.count('starts'), row(place)['state']) == (0, 1, 'up')


def test_a_backend_answers_probes(place):
    """To a broker of the test's own."""
    os.makedirs(place.folder, 0o700, exist_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
        door.bind(f'{place.folder}/backends')
        os.chmod(f'{place.folder}/backends', 0o600)
        door.listen()
        keeper = place.start(KEEPER, 'echo', stdout=subprocess.PIPE)
        door.settimeout(BOUND)
        channel, _ = door.accept()
        with channel:
            channel.settimeout(BOUND)
            registration = frames.fields(frames.fields(frames.fields(channel.recv(1 << 17))[4])[4])
            assert registration[5] & 64
            answer = frames.field(1, 1) + frames.field(3, 1)
            channel.send(frames.envelope(frames.RESPONSE, frames.HANDOFF, frames.field(5, answer)))
            for number in (7, 8):
                channel.send(frames.envelope(frames.REQUEST, frames.PROBE, b'', number))
                told = frames.fields(channel.recv(1 << 17))
                assert (told[2], told[3], told.get(4, b''), told[5]) == (
                    frames.RESPONSE, frames.PROBE, b'', number)
            # A probe with something in it is none.
            channel.send(frames.envelope(frames.REQUEST, frames.PROBE, b'x', 9))
            assert channel.recv(1 << 17) == b''
        assert keeper.poll() is None


def test_a_backend_that_answers_what_it_was_not_asked_stays_and_one_that_asks_does_not(place):
    place.serve()
    raw = place.backend()
    raw.channel.send(frames.envelope(frames.RESPONSE, frames.PROBE, b'', 7))
    assert [row['service'] for row in place.services()] == ['raw']
    raw.channel.send(frames.envelope(frames.REQUEST, frames.PROBE, b'', 7))
    assert raw.receive() == (None, None)
    assert place.count('broken_backends') == 1


def test_services_end_with_the_broker_in_order(place):
    place.define('echo', f'command = {KEEPER} echo', PATIENT)
    broker = place.serve_defined()
    pid = int(place.connect('echo').stdout.split()[0])
    broker.send_signal(signal.SIGTERM)
    assert broker.wait(BOUND) == 0
    await_end(pid)


def test_a_service_outlives_a_broker_that_is_killed_and_comes_to_the_next(place):
    place.define('echo', f'command = {KEEPER} echo', PATIENT)
    broker = place.serve_defined()
    pid = int(place.connect('echo').stdout.split()[0])
    broker.kill()
    broker.wait()
    place.serve_defined()
    end = time.monotonic() + BOUND
    while row(place)['state'] != 'up':
        assert time.monotonic() < end
    assert place.connect('echo').stdout == f'{pid}\nhi\n'
    assert place.count('starts') == 0


def test_a_command_of_baton_is_a_service_too(place):
    place.define('upper', f'command = {BATON} backend upper -- tr a-z A-Z')
    place.serve_defined()
    for _ in range(2):
        assert place.connect('upper', text='one\n').stdout == 'ONE\n'
    assert place.count('starts') == 1


# A command for each connection.

def test_a_command_has_the_connection_as_its_input_and_output(place):
    place.define('upper', 'command = tr a-z A-Z', 'takes = stdio')
    broker = place.serve_defined()
    before = fds(broker)
    for text in ('one\n', 'two\n' * 50000):
        result = place.connect('upper', '-v', text=text)
        assert (result.returncode, result.stdout) == (0, text.upper())
        assert 'connected by handoff' in result.stderr
    await_fds(broker, before)
    assert (place.count('commands'), row(place, 'upper')['way']) == (2, 'stdio')


def test_a_command_has_the_trace_of_its_client(place):
    place.define('trace', "command = sh -c 'echo $TRACEPARENT; echo $TRACESTATE'", 'takes = stdio')
    place.serve_defined(env={**place.env, 'TRACEPARENT': 'of the broker'})
    result = subprocess.run([BATON, 'connect', 'trace'], check=True, timeout=BOUND,
                            env={**place.env, 'TRACESTATE': 'a=1'}, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, text=True)
    assert result.stdout == '\na=1\n'


def test_a_command_has_all_variables_there_are(place):
    # More than there are in the environment of the broker, none of which is left out.
    place.define('all', "command = sh -c 'env >&3'", 'takes = fd3')
    folder = place.env.pop('BATON_BROKER')
    place.serve_defined('--broker', folder, env={'PATH': os.environ['PATH'], 'LAST': 'one'})
    place.env['BATON_BROKER'] = folder
    result = subprocess.run([BATON, 'connect', 'all'], check=True, timeout=BOUND, text=True,
                            env={**place.env, 'TRACEPARENT': 'p' * 512, 'TRACESTATE': 's' * 512},
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    found = dict(line.split('=', 1) for line in result.stdout.splitlines())
    assert {name: found.get(name) for name in (
        'BATON_BROKER', 'BATON_SERVICE', 'BATON_CLIENT_UID', 'LISTEN_FDS', 'LAST', 'TRACEPARENT',
        'TRACESTATE')} == {
            'BATON_BROKER': folder, 'BATON_SERVICE': 'all', 'BATON_CLIENT_UID': str(os.getuid()),
            'LISTEN_FDS': '1', 'LAST': 'one', 'TRACEPARENT': 'p' * 512, 'TRACESTATE': 's' * 512}
    assert {'BATON_CONNECTION', 'BATON_CLIENT_PID', 'LISTEN_PID', 'PATH'} <= set(found)


def test_a_command_may_have_it_as_descriptor_3_and_nothing_else(place):
    place.define('three', "command = sh -c 'echo $LISTEN_FDS $((LISTEN_PID == $$)) $BATON_SERVICE"
                 " $BATON_CLIENT_UID $COLOUR $PWD >&3; for i in $(seq 4 60); do"
                 " test -e /proc/$$/fd/$i && echo $i >&3; done'",
                 'takes = fd3', 'environment = COLOUR=dark blue', 'folder = /',
                 'no-new-privileges = yes', 'open-files = 64')
    place.serve_defined()
    assert place.connect('three').stdout == f'1 1 three {os.getuid()} dark blue /\n'
    assert row(place, 'three')['way'] == 'fd3'


def test_limits_are_set_for_commands(place):
    place.define('limits', "command = sh -c 'ulimit -n; ulimit -v; grep NoNewPrivs"
                 " /proc/self/status'", 'takes = stdio', 'open-files = 33', 'memory-mib = 64',
                 'no-new-privileges = yes')
    place.serve_defined()
    assert place.connect('limits').stdout.split() == ['33', '65536', 'NoNewPrivs:', '1']


def test_others_wait_while_there_are_too_many_commands(place):
    place.define('cat', 'command = cat', 'takes = stdio', 'max = 2')
    place.serve_defined()
    clients = [place.client(frames.hello('cat') + b'%d\n' % i) for i in range(2)]
    for number, client in enumerate(clients):
        assert frames.read_reply(client)[0] == 'negotiated'
        assert frames.read_exactly(client, 2) == b'%d\n' % number
    late = [place.client(frames.hello('cat') + b'%d\n' % i) for i in range(3)]
    place.await_count('waiting_clients', 4)      # and who asks
    assert row(place, 'cat')['commands'] == 2
    for number, client in enumerate(late):
        (clients + late)[number].close()
        assert frames.read_reply(client)[0] == 'negotiated'
        assert frames.read_exactly(client, 2) == b'%d\n' % number
    assert place.count('commands') == 5


def test_who_waits_for_too_long_is_told(place):
    place.define('cat', 'command = cat', 'takes = stdio', 'max = 1')
    place.serve_defined('--park', '50ms')
    first = place.client(frames.hello('cat'))
    assert frames.read_reply(first)[0] == 'negotiated'
    kind, _ = frames.read_reply(place.client(frames.hello('cat')))
    assert kind == 'refused'


def test_commands_outlive_the_broker(place):
    place.define('cat', 'command = cat', 'takes = stdio')
    broker = place.serve_defined()
    client = place.client(frames.hello('cat'))
    assert frames.read_reply(client)[0] == 'negotiated'
    broker.send_signal(signal.SIGTERM)
    assert broker.wait(BOUND) == 0
    client.sendall(b'still\n')
    assert frames.read_exactly(client, 6) == b'still\n'


def test_who_cannot_be_handed_over_gets_no_command(place):
    place.define('cat', 'command = cat', 'takes = stdio')
    place.serve_defined()
    kind, _ = frames.read_reply(place.client(frames.hello('cat', capabilities=0)))
    assert kind == 'refused'
    assert (place.count('client_unsupported'), place.count('commands')) == (1, 0)


# Who may, and what is wrong.

def test_another_version_is_not_served(place):
    place.define('cat', 'command = cat', 'takes = stdio', 'version = 2.1')
    place.serve_defined()

    def ask(version):
        body = (frames.field(1, 1) + frames.field(2, 1) + frames.field(3, 'cat')
                + frames.field(4, version) + frames.field(6, 1))
        return frames.read_reply(place.client(frames.frame(frames.envelope(0, 0, body))))
    kind, reply = ask('2.0')
    assert (kind, reply[4]) == ('refused', 8)
    assert ask('2.1')[0] == ask('')[0] == 'negotiated'
    result = place.connect('cat', '--want', '2.0')
    assert (result.returncode, result.stderr) == (
        USAGE, 'baton: the broker says: the service has another version than the one that is '
        'wanted\n')
    assert place.connect('cat', '--want', '2.1').stdout == 'hi\n'
    assert place.connect('cat', '--want', '').returncode == USAGE


def test_a_service_may_be_wanted_only_so_often(place):
    place.define('cat', 'command = cat', 'takes = stdio', 'rate = 2/1h')
    place.define('other', 'command = cat', 'takes = stdio')
    place.serve_defined()
    for _ in range(2):
        assert frames.read_reply(place.client(frames.hello('cat')))[0] == 'negotiated'
    kind, reply = frames.read_reply(place.client(frames.hello('cat')))
    assert (kind, reply[4]) == ('refused', 4) and 1700 * 1000 < reply[6] <= 1800 * 1000
    assert frames.read_reply(place.client(frames.hello('other')))[0] == 'negotiated'
    assert place.count('rate_limited') == 1


def test_another_user_is_served_where_a_definition_says_so(place, as_other):
    if not as_other:
        pytest.skip('needs root, to be two users')
    os.chmod(place.top, 0o711)
    os.mkdir(place.folder, 0o700)
    os.chown(place.folder, as_other['user'], as_other['group'])
    place.define('open', 'command = cat', 'takes = stdio', 'allow = root 12345')
    place.define('other', 'command = cat', 'takes = stdio', 'allow = 12345')
    place.define('own', 'command = cat', 'takes = stdio')
    place.serve_defined(**as_other)
    client = place.client(frames.hello('open'))
    assert frames.read_reply(client)[0] == 'negotiated'
    client.sendall(b'hi\n')
    assert frames.read_exactly(client, 3) == b'hi\n'
    for name in ('other', 'own', 'none'):
        kind, reply = frames.read_reply(place.client(frames.hello(name)))
        assert (kind, reply[4]) == ('refused', 6)
    kind, reply = frames.read_reply(
        place.client(frames.frame(frames.envelope(0, frames.PROBE, b''))))
    assert (kind, reply[4]) == ('refused', 6)


def refusal(place):
    result = subprocess.run([BATON, 'serve', '--services', f'{place.top}/services'],
                            env=place.env, check=False, text=True, timeout=BOUND,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert result.returncode == USAGE, result
    return result.stderr


def test_every_wrong_line_gets_a_sentence(place):
    path = place.define('bad', 'command = "cat', 'comand = cat', 'takes = tcp', 'max = 0',
                        'idle = soon', 'idle = 1s', 'nothing', 'version =', 'allow = nobody-here')
    other = place.define('worse', 'takes = stdio')
    text = refusal(place)
    for expected in (
            f'{path}:1: a quotation mark is not closed', f'{path}:2: "comand" is no key of a servi',
            f'{path}:3: "tcp" is not one of handoff, stdio and fd3',
            f'{path}:4: "0" is no number from 1 to 65536', f'{path}:5: ',
            f"{path}:6: 'idle' is there twice", f'{path}:7: "nothing" is not of the form KEY',
            f"{path}:8: 'version' has no value", f"{path}:9: there is no user 'nobody-here'",
            f"{other}:1: there is no line with 'command'"):
        assert expected.replace('"', '\\\\\\"') in text or expected in text.replace('\\"', '"'), (
            expected, text)
    assert text.splitlines()[-1] == f'baton: {path}:1: a quotation mark is not closed'
    assert text.count('msg="wrong definition of a service"') == 10


def test_a_folder_that_others_can_write_is_refused(place):
    path = place.define('cat', 'command = cat')
    os.chmod(path, 0o666)
    assert 'has mode 666; others must not be able to write it' in refusal(place)
    os.chmod(path, 0o600)
    os.chmod(f'{place.top}/services', 0o777)
    assert 'has mode 777; others must not be able to write it' in refusal(place)
    os.rename(f'{place.top}/services', f'{place.top}/elsewhere')
    assert f"there is no folder '{place.top}/services' with services" in refusal(place)


def test_strange_names_are_told(place):
    place.define('Bad Name', 'command = cat')
    assert '"Bad Name" is no name of a service' in refusal(place).replace('\\"', '"')


def test_files_of_other_names_are_no_services_and_that_is_told(place):
    path = place.define('cat', 'command = cat')
    os.rename(path, path.replace('.conf', ''))
    place.serve_defined()
    place.await_log('msg="no services" why="no file is named NAME.conf"')


def test_a_client_that_goes_while_it_waits_leaves_nothing(place):
    place.define('echo', 'command = sleep 1000', PATIENT)
    broker = place.serve_defined()
    client = place.client(frames.hello('echo'))
    place.await_log('msg="service started"')
    before = fds(broker)
    client.shutdown(socket.SHUT_RDWR)
    client.close()
    await_fds(broker, before - 1)
    assert place.services()[0]['state'] == 'starting'
