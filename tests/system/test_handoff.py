"""baton serve, connect, services and handoff: connections that change hands, with real processes,
and with clients and backends that do what they should not."""
import contextlib
import json
import os
import re
import resource
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time

import pytest

import frames
from brokers import BATON, KEEPER, await_fds, fds, place_fixture
from frames import BOUND

place = place_fixture
SOAK = os.environ.get('BATON_SOAK') == '1'
USAGE, UNAVAILABLE, TEMPFAIL = 64, 69, 75


# What it is for.

def test_a_connection_reaches_the_backend_and_leaves_the_broker(place):
    broker = place.serve()
    keeper = place.keeper()
    before = fds(broker)
    clients = []
    for number in range(50):
        # The request is behind the Hello, and stays in the kernel until the backend reads it.
        client = place.client(frames.hello('echo') + b'request %d\n' % number)
        kind, reply = frames.read_reply(client)
        assert kind == 'negotiated' and len(reply[7]) == 16
        assert reply[3].decode() == keeper.endpoint
        expected = b'%d\nrequest %d\n' % (keeper.pid, number)
        assert frames.read_exactly(client, len(expected)) == expected
        clients.append(client)
    await_fds(broker, before)
    assert place.count('granted') == 50
    # They live without the broker.
    broker.kill()
    broker.wait()
    for client in clients:
        client.sendall(b'again\n')
        assert frames.read_exactly(client, 6) == b'again\n'


def test_connect_is_a_pipe_to_the_owner(place):
    place.serve()
    keeper = place.keeper()
    text = ''.join(f'line {i}\n' for i in range(20000))
    result = place.connect('echo', text=text)
    assert (result.returncode, result.stderr) == (0, '')
    assert result.stdout == f'{keeper.pid}\n{text}'


def test_without_a_broker_or_a_service_it_says_so(place):
    result = place.connect('echo')
    assert result.returncode == UNAVAILABLE
    assert result.stderr == (f"baton: no broker runs here, as there is no folder '{place.folder}'; "
                             "'baton serve' is one\n")
    place.serve()
    result = place.connect('echo')
    assert result.returncode == UNAVAILABLE
    assert result.stderr == ("baton: the broker says: there is no such service; 'baton services' "
                             'has those there are\n')
    assert place.connect('No').returncode == USAGE


def test_services_shows_backends(place):
    place.serve()
    keeper = place.keeper('echo', 'generation=7')
    place.keeper('other', 'reconnect')
    place.keeper('third', 'repeatable')
    rows = place.services()
    assert [(row['service'], row['way'], row['current']) for row in rows] == [
        ('echo', 'handoff', True), ('other', 'reconnect', True), ('third', 'repeatable', True)]
    assert (rows[0]['pid'], rows[0]['generation'], rows[0]['endpoint']) == (
        keeper.pid, 7, keeper.endpoint)
    shown = subprocess.run([BATON, 'services'], env=place.env, check=True, stdout=subprocess.PIPE,
                           text=True).stdout.splitlines()
    assert shown[0].split()[:3] == ['SERVICE', 'CURRENT', 'PID']
    assert shown[1].split()[:4] == ['echo', 'yes', str(keeper.pid), '7']


def test_handoff_shows_counts_and_latencies(place):
    for command in ('handoff', 'services'):
        asked = subprocess.run([BATON, command], env=place.env, check=False, timeout=BOUND,
                               stderr=subprocess.PIPE, text=True)
        assert asked.returncode == UNAVAILABLE
        assert asked.stderr.startswith('baton: no broker runs here')
    place.serve()
    place.keeper()
    raw = place.backend()
    assert place.way() == 'handoff'
    assert place.way('echo', '--no-handoff') == 'reconnecting'
    assert frames.read_reply(place.client(frames.hello('raw')))[0] == 'negotiated'
    assert raw.offer()[3] == b'raw'
    shown = subprocess.run([BATON, 'handoff'], env=place.env, check=True, stdout=subprocess.PIPE,
                           text=True).stdout.splitlines()
    values = {name: int(value) for name, value in (line.rsplit(None, 1) for line in shown)}
    reasons = ['client unsupported', 'service policy disabled', 'fd pressure', 'adopted backend',
               'failed attempts limited', 'permission denied', 'integrity mismatch', 'ack timeout']
    assert [values[reason] for reason in reasons] == [1, 0, 0, 0, 0, 0, 0, 0]
    assert (values['pending'], values['offered'], values['granted']) == (1, 2, 1)
    assert 0 < values['latency p50, us'] <= values['latency p99, us']


# Commands that know nothing of it.

def command(place, *arguments):
    """baton backend, registered."""
    backend = place.start(BATON, 'backend', *arguments, stderr=subprocess.PIPE)
    assert 'msg=backend' in backend.stderr.readline()
    return backend


def test_a_command_has_the_connection_as_its_input_and_output(place):
    place.serve()
    backend = command(place, 'upper', '--', 'tr', 'a-z', 'A-Z')
    for text in ('one\n', 'two\n' * 50000):
        result = place.connect('upper', '-v', text=text)
        assert (result.returncode, result.stdout) == (0, text.upper())
        assert 'connected by handoff' in result.stderr
    backend.send_signal(signal.SIGTERM)
    assert backend.wait(BOUND) == 0


def test_a_command_is_told_whose_the_connection_is(place):
    place.serve()
    command(place, 'who', '--', 'sh', '-c',
            'echo $BATON_SERVICE $BATON_CONNECTION $BATON_CLIENT_UID')
    assert place.connect('who').stdout == f'who 1 {os.getuid()}\n'


def test_a_command_may_have_it_as_descriptor_3(place):
    place.serve()
    command(place, 'three', '--fd3', '--', 'sh', '-c', 'echo $LISTEN_FDS $((LISTEN_PID == $$)) >&3')
    assert place.connect('three').stdout == '1 1\n'


def test_others_wait_while_there_are_too_many_commands(place):
    place.serve('--ack-timeout', '50ms')
    backend = command(place, 'cat', '--max', '1', '--', 'cat')
    first = place.start(BATON, 'connect', 'cat', stdin=subprocess.PIPE)
    first.stdin.write('first\n')
    first.stdin.flush()
    assert first.stdout.readline() == 'first\n'
    second = place.start(BATON, 'connect', 'cat', stdin=subprocess.PIPE)
    second.stdin.write('second\n')
    second.stdin.flush()
    place.await_count('ack_timeout', 1)
    first.stdin.close()
    assert second.stdout.readline() == 'second\n'
    # What runs is waited for.
    backend.send_signal(signal.SIGTERM)
    second.stdin.write('third\n')
    second.stdin.close()
    assert second.stdout.readline() == 'third\n'
    assert backend.wait(BOUND) == 0


def test_a_server_that_is_there_already_is_spoken_for(place):
    place.serve()
    with socket.create_server(('127.0.0.1', 0)) as server:
        server.settimeout(BOUND)
        command(place, 'web', '--endpoint', f'tcp:127.0.0.1:{server.getsockname()[1]}')
        client = place.start(BATON, 'connect', 'web')
        connection, _ = server.accept()
        connection.sendall(b'hello\n')
        assert client.stdout.readline() == 'hello\n'
        connection.close()
    row, = place.services()
    assert row['way'] == 'adopted'


def test_a_backend_is_a_command_or_an_endpoint(place):
    for arguments in (['x'], ['x', '--endpoint', '/e', '--', 'cat'],
                      ['x', '--endpoint', 'nowhere']):
        result = subprocess.run([BATON, 'backend', *arguments], env=place.env, check=False,
                                stdin=subprocess.DEVNULL, capture_output=True, timeout=BOUND)
        assert result.returncode == USAGE


# The eight reasons for which a client reconnects, and does not notice.

def test_a_client_that_cannot_be_handed_over_reconnects(place):
    place.serve()
    place.keeper()
    assert place.way('echo', '--no-handoff') == 'reconnecting'
    assert place.count('client_unsupported') == 1


def test_a_service_without_handoffs_is_reconnected_to(place):
    place.serve()
    place.keeper('echo', 'reconnect')
    assert place.way() == 'reconnecting'
    assert place.count('service_policy_disabled') == 1


def test_when_too_many_are_on_their_way_the_others_reconnect(place):
    place.serve('--pending', '1')
    keeper = place.keeper('echo', f'offer={signal.SIGSTOP}')
    stuck = place.client(frames.hello('echo'))
    assert frames.read_reply(stuck)[0] == 'negotiated'
    other = place.client(frames.hello('echo'))
    kind, reply = frames.read_reply(other)
    assert (kind, reply.get(7), reply[3].decode()) == ('negotiated', None, keeper.endpoint)
    assert frames.is_ended(other)
    assert place.count('fd_pressure') == 1


def test_while_another_one_is_on_its_way_the_library_reconnects(place):
    place.serve('--pending', '1')
    keeper = place.keeper()
    raw = place.backend('echo', generation=1 << 62, endpoint=keeper.endpoint)
    assert frames.read_reply(place.client(frames.hello('echo')))[0] == 'negotiated'
    assert raw.offer()[3] == b'echo'
    assert place.way() == 'reconnecting'
    assert place.count('fd_pressure') == 1


def arrived(place):
    """How many connections to the broker there are, with those that it has not accepted yet."""
    with open('/proc/net/unix', encoding='utf-8', errors='replace') as sockets:
        return sum(line.endswith(f' {place.folder}/broker\n') for line in sockets)


def start_and_arrive(place, broker, *command):
    """Starts a client, and returns when it will be accepted before whoever comes next."""
    os.kill(broker.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, broker.pid, os.WSTOPPED)
    before, end = arrived(place), time.monotonic() + BOUND
    client = place.start(*command)
    while arrived(place) == before:
        assert client.poll() is None and time.monotonic() < end
    os.kill(broker.pid, signal.SIGCONT)
    return client


def test_when_too_many_wait_for_an_answer_the_others_come_again(place):
    broker = place.serve('--clients', '2')
    keeper = place.keeper()
    silent = [place.client(), place.client()]
    kind, reply = frames.read_reply(place.client())
    assert (kind, reply[4]) == ('refused', 4) and reply[6] > 0
    # Whoever asks for counts is a client too.
    for command in ('handoff', 'services'):
        asked = subprocess.run([BATON, command], env=place.env, check=False, timeout=BOUND,
                               stderr=subprocess.PIPE, text=True)
        assert (asked.returncode, asked.stderr) == (
            TEMPFAIL, 'baton: the broker says: too many clients wait for an answer\n')
    client = start_and_arrive(place, broker, BATON, 'connect', 'echo')
    # They are answered one after the other: when this one is refused the client has been.
    assert frames.read_reply(place.client())[0] == 'refused'
    for connection in silent:
        connection.close()
    assert client.stdout.readline() == f'{keeper.pid}\n'
    assert place.count('refused') >= 5


# How often clients may come.

def test_who_comes_too_often_is_told_when_to_come_again(place):
    place.serve('--rate', '2/1h')
    place.keeper()
    for _ in range(2):
        assert frames.read_reply(place.client(frames.hello('echo')))[0] == 'negotiated'
    kind, reply = frames.read_reply(place.client(frames.hello('echo')))
    assert (kind, reply[4]) == ('refused', 4)
    # Half an hour after the first there is room for one more.
    assert re.fullmatch(rb'at most 2 clients of a user may come in 1h: '
                        rb'the next in (30min|29min [0-9ms ]+)', reply[1])
    assert 1700 * 1000 < reply[6] <= 1800 * 1000
    # Who asks about the broker is no such client.
    counts = place.counts()
    assert (counts['rate_limited'], counts['refused'], counts['offered']) == (1, 1, 2)


def test_the_library_waits_until_it_may_come(place):
    place.serve('--rate', '1/4s')
    keeper = place.keeper()
    assert frames.read_reply(place.client(frames.hello('echo')))[0] == 'negotiated'
    assert place.called('echo', 'request\n', 'wait=60000') == (
        'handed 2', f'{keeper.pid}\nrequest\n')
    assert place.count('rate_limited') == 1


def test_who_waits_for_a_backend_counts_once(place):
    place.serve('--rate', '1/1h', '--park', '60s')
    keeper = place.keeper()
    keeper.kill()
    keeper.wait()
    client = place.client(frames.hello('echo'))
    # The broker answers this one after that.
    assert frames.read_reply(place.client(frames.hello('echo')))[1][4] == 4
    place.keeper()
    assert frames.read_reply(client)[0] == 'negotiated'


def test_who_came_first_is_answered_first(place):
    broker = place.serve('--rate', '1/1h')
    keeper = place.keeper()
    before, end = fds(broker), time.monotonic() + BOUND
    first = place.client()
    while fds(broker) == before:
        assert time.monotonic() < end
    # It is awaited, and has said something when the next one comes.
    os.kill(broker.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, broker.pid, os.WSTOPPED)
    first.sendall(frames.hello('echo') + b'hi\n')
    second = place.client(frames.hello('echo'))
    os.kill(broker.pid, signal.SIGCONT)
    assert frames.read_reply(second)[1][4] == 4
    assert frames.read_reply(first)[0] == 'negotiated'
    expected = b'%d\nhi\n' % keeper.pid
    assert frames.read_exactly(first, len(expected)) == expected


@pytest.mark.parametrize('text, said', [
    ('5', "--rate is NUMBER/DURATION, such as 100/1s, not '5'"),
    ('0/1s', 'rate'), ('1000001/1s', 'rate'), ('1/2d', '--rate'), ('x/1s', 'rate'),
])
def test_what_is_no_rate_is_told(place, text, said):
    result = subprocess.run([BATON, 'serve', '--rate', text], env=place.env, check=False, text=True,
                            timeout=BOUND, stderr=subprocess.PIPE)
    assert result.returncode == USAGE and said in result.stderr, result


def test_the_client_knows_where_to_reconnect_before_a_backend_is_asked(place):
    place.serve()
    raw = place.backend(endpoint='/nowhere')
    client = place.client(frames.hello('raw'))
    raw.offer()
    client.setblocking(False)
    kind, reply = frames.read_reply(client)
    assert (kind, reply[3]) == ('negotiated', b'/nowhere')


def test_an_adopted_backend_is_reconnected_to_as_it_is(place):
    place.serve()
    server = socket.socket(socket.AF_UNIX)
    place.sockets.append(server)
    server.bind(f'{place.top}/plain')
    server.listen()
    server.settimeout(BOUND)
    place.keeper('plain', f'endpoint={place.top}/plain')
    client = place.start(BATON, 'connect', 'plain', stdin=subprocess.PIPE)
    connection, _ = server.accept()
    client.stdin.write('hi\n')
    client.stdin.flush()
    # Not a byte of Baton's.
    assert frames.read_exactly(connection, 3) == b'hi\n'
    connection.sendall(b'ho\n')
    assert client.stdout.readline() == 'ho\n'
    connection.close()
    assert client.wait() == 0
    assert place.count('adopted_backend') == 1


def test_after_eight_failures_nothing_is_offered_for_a_while(place):
    place.serve()
    place.keeper('echo', 'choosy')
    for _ in range(8):
        assert place.way() == 'reconnecting'
    assert place.count('permission_denied') == 8
    assert place.count('offered') == 8
    assert place.way() == 'reconnecting'
    counts = place.counts()
    assert (counts['offered'], counts['failed_attempts_limited']) == (8, 1)
    row, = place.services()
    assert 0 < row['retry_after_ms'] <= 30000 and row['failed'] == 8


def test_a_backend_that_speaks_nonsense_is_cut_off_and_its_clients_reconnect(place):
    place.serve()
    keeper = place.keeper()
    raw = place.backend('echo', generation=1 << 62, endpoint=keeper.endpoint)
    client = place.start(BATON, 'connect', 'echo', '-v', stderr=subprocess.PIPE)
    offer = raw.offer()
    raw.channel.send(b'nonsense')
    assert client.wait(BOUND) == 0
    assert 'reconnecting' in client.stderr.read()
    assert raw.receive() == (None, None)
    offer['connection'].close()
    counts = place.counts()
    assert (counts['integrity_mismatch'], counts['broken_backends']) == (1, 1)


def test_a_backend_that_does_not_answer_loses_the_connection(place):
    place.serve('--ack-timeout', '100ms')
    keeper = place.keeper()
    raw = place.backend('echo', generation=1 << 62, endpoint=keeper.endpoint)
    assert place.way() == 'reconnecting'
    assert raw.offer()[3] == b'echo'
    assert place.count('ack_timeout') == 1


# A request that is sent with the question.

@pytest.mark.parametrize('arguments, way', [
    ([], 'handed 1'), (['answered'], 'handed 1'),
    (['reconnect'], 'reconnected 1'), (['reconnect', 'answered'], 'reconnected 1'),
], ids=['welcome', 'answered', 'reconnect', 'reconnect-answered'])
def test_a_request_with_the_question_is_answered(place, arguments, way):
    place.serve()
    keeper = place.keeper()
    assert place.called('echo', 'request\n', *arguments) == (way, f'{keeper.pid}\nrequest\n')


def granted_to(raw):
    """The connection that a backend has been granted, and its Hello."""
    offer = raw.offer()
    raw.ack(offer)
    assert raw.granted(offer)
    return offer['connection'], frames.fields(offer[11])


def test_an_answer_takes_the_place_of_the_welcome(place):
    place.serve()
    raw = place.backend()
    caller = place.call('raw', 'request', 'answered')
    connection, hello = granted_to(raw)
    assert not hello[6] & frames.WANTS_WELCOME
    assert frames.read_exactly(connection, 7) == b'request'
    connection.sendall(b'an answer')
    connection.close()
    assert caller.communicate(timeout=BOUND)[0] == 'handed 1\nan answer'


def test_who_ends_without_an_answer_is_asked_again_elsewhere(place):
    place.serve()
    keeper = place.keeper()
    raw = place.backend('echo', generation=1 << 62, endpoint=keeper.endpoint)
    caller = place.call('echo', 'request\n', 'answered')
    connection, _ = granted_to(raw)
    assert frames.read_exactly(connection, 8) == b'request\n'
    connection.close()
    assert caller.communicate(timeout=BOUND)[0] == f'reconnected 1\n{keeper.pid}\nrequest\n'


def test_a_request_that_was_welcomed_is_not_sent_again(place):
    place.serve()
    keeper = place.keeper()
    raw = place.backend('echo', generation=1 << 62, endpoint=keeper.endpoint)
    caller = place.call('echo', 'request\n')
    connection, hello = granted_to(raw)
    assert hello[6] & frames.WANTS_WELCOME
    connection.sendall(frames.frame(frames.envelope(frames.EVENT, frames.HANDOFF,
                                                    frames.field(6, frames.field(1, 1)))))
    assert frames.read_exactly(connection, 8) == b'request\n'
    connection.close()
    assert caller.communicate(timeout=BOUND)[0] == 'handed 1\n'
    # The other backend has never heard of it.
    assert place.way('echo', '--no-handoff') == 'reconnecting'
    assert keeper.stdout.readline().split()[0] == 'reconnected'


# What goes along with a question.

PARENT = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'


def test_a_trace_and_a_deadline_go_along_to_the_backend(place):
    place.serve()
    raw = place.backend()
    before = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    caller = place.call('raw', 'request', 'answered', f'parent={PARENT}', 'state=a=1,b=2',
                        'wait=50000')
    offer = raw.offer()
    assert (raw.around[8], raw.around[9]) == (PARENT.encode(), b'a=1,b=2')
    assert 0 < raw.around[7] - before - 50 * 10**9 < BOUND * 10**9
    raw.ack(offer)
    assert raw.granted(offer)
    offer['connection'].sendall(b'x')
    offer['connection'].close()
    assert caller.communicate(timeout=BOUND)[0] == 'handed 1\nx'


@pytest.mark.parametrize('way', [[], ['--no-handoff']], ids=['handoff', 'reconnecting'])
def test_a_command_of_a_backend_has_the_trace(place, way):
    place.serve()
    # Those of the backend itself are nobody's.
    backend = place.start(BATON, 'backend', 'trace', '--', 'sh', '-c',
                          'echo $TRACEPARENT; echo $TRACESTATE; echo .',
                          env={**place.env, 'TRACESTATE': 'of the backend'})
    env = {**place.env, 'TRACEPARENT': PARENT, 'TRACESTATE': ''}
    end = time.monotonic() + BOUND
    while not place.services():
        assert backend.poll() is None and time.monotonic() < end
    result = subprocess.run([BATON, 'connect', 'trace', *way], env=env, check=True, timeout=BOUND,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    assert result.stdout == f'{PARENT}\n\n.\n'


def test_who_has_no_time_left_is_refused(place):
    place.serve()
    raw = place.backend()
    now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    kind, reply = frames.read_reply(place.client(frames.hello('raw', deadline=now)))
    assert (kind, reply[1]) == ('refused', b'the time for an answer is over')
    assert place.count('too_late') == 1
    later = frames.hello('raw', deadline=now + BOUND * 10**9)
    assert frames.read_reply(place.client(later))[0] == 'negotiated'
    assert raw.offer()[3] == b'raw'


def test_nobody_waits_for_a_backend_beyond_his_time(place):
    place.serve('--park', '60s')
    raw = place.backend()
    raw.close()
    patient = place.client(frames.hello('raw'))
    now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    # It came later, and has to go first.
    hasty = place.client(frames.hello('raw', deadline=now + 10**8))
    kind, reply = frames.read_reply(hasty)
    assert (kind, reply[4]) in [('refused', 2), ('refused', 7)]
    raw = place.backend()
    assert frames.read_reply(patient)[0] == 'negotiated'
    assert time.clock_gettime_ns(time.CLOCK_BOOTTIME) >= now + 10**8


def test_who_reconnects_without_time_left_is_not_served(place):
    place.serve()
    keeper = place.keeper()
    for deadline, ended in ((1, True), (0, False)):
        client = socket.socket(socket.AF_UNIX)
        place.sockets.append(client)
        client.settimeout(BOUND)
        client.connect(keeper.endpoint)
        client.sendall(frames.hello('echo', deadline=deadline))
        assert frames.is_ended(client) == ended


def test_what_is_no_trace_ends_the_connection(place):
    place.serve()
    raw = place.backend()
    assert frames.is_ended(place.client(frames.hello('raw', parent='a\nb')))
    assert frames.is_ended(place.client(frames.hello('raw', state='x' * 513)))
    assert place.count('nonsense') == 2
    assert frames.read_reply(place.client(frames.hello('raw', state='x' * 512)))[0] == 'negotiated'
    assert raw.offer()[3] == b'raw' and raw.around[9] == b'x' * 512


# A backend that dies, is stopped, or wakes too late, at each step.

def test_a_backend_that_wakes_after_the_revocation_has_read_nothing(place):
    place.serve('--ack-timeout', '100ms')
    keeper = place.keeper('echo', f'offer={signal.SIGSTOP}')
    client = place.start(BATON, 'connect', 'echo', '-v', stdin=subprocess.PIPE,
                         stderr=subprocess.PIPE)
    client.stdin.write('only once\n')
    client.stdin.close()
    place.await_count('ack_timeout', 1)
    os.kill(keeper.pid, signal.SIGCONT)
    assert client.wait(BOUND) == 0
    assert 'reconnecting' in client.stderr.read()
    assert client.stdout.read() == f'{keeper.pid}\nonly once\n'
    # One connection is all that it had.
    assert keeper.stdout.readline().split()[0] == 'reconnected'
    counts = place.counts()
    assert (counts['granted'], counts['ack_timeout']) == (0, 1)


def test_a_request_behind_the_hello_is_not_served_by_who_wakes_late(place):
    broker = place.serve('--ack-timeout', '100ms')
    keeper = place.keeper('echo', f'offer={signal.SIGSTOP}')
    client = place.client(frames.hello('echo') + b'not for you\n')
    assert frames.read_reply(client)[0] == 'negotiated'
    assert frames.is_ended(client)
    os.kill(keeper.pid, signal.SIGCONT)
    # Whatever it has to say comes before what it says now.
    assert place.way('echo', '--no-handoff') == 'reconnecting'
    assert keeper.stdout.readline().split()[0] == 'reconnected'
    assert place.count('granted') == 0
    assert fds(broker) > 0


def test_a_backend_that_gets_no_grant_has_read_nothing(place):
    broker = place.serve_by_grants('--ack-timeout', '1s')
    keeper = place.keeper('echo', f'offer={signal.SIGSTOP}')
    client = place.client(frames.hello('echo') + b'request\n')
    assert frames.read_reply(client)[0] == 'negotiated'
    # It is stopped with the offer in its hands; now it acknowledges, and nobody hears it.
    os.waitid(os.P_PID, keeper.pid, os.WSTOPPED | os.WNOWAIT)
    os.kill(broker.pid, signal.SIGSTOP)
    os.kill(keeper.pid, signal.SIGCONT)
    # It ends the connection by itself, without a byte.
    assert frames.is_ended(client)
    os.kill(broker.pid, signal.SIGCONT)
    place.await_count('ack_timeout', 1)
    assert place.way('echo', '--no-handoff') == 'reconnecting'
    assert keeper.stdout.readline().split()[0] == 'reconnected'
    assert place.count('granted') == 0


def granted_together(place, option, numbers):
    """A backend and its broker, and clients whose Grants are all there when it goes on."""
    os.mkdir(place.folder, 0o700)
    broker = frames.Broker(place.folder)
    place.sockets.append(broker)
    keeper = place.start(KEEPER, 'echo', option)
    broker.register()
    assert keeper.stdout.readline().split()[0] == 'ready'
    clients = []
    for number in numbers:
        client, passed = socket.socketpair(socket.AF_UNIX)
        place.sockets.append(client)
        client.settimeout(BOUND)
        client.sendall(b'mine\n')
        until = time.clock_gettime_ns(time.CLOCK_BOOTTIME) + 2 * BOUND * 10**9
        broker.offer(number, passed, until)
        passed.close()
        clients.append(client)
    assert {broker.acked() for _ in numbers} == set(numbers)
    os.kill(keeper.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, keeper.pid, os.WSTOPPED)
    for number in numbers:
        broker.grant(number)
    assert broker.unread() > 0
    os.kill(keeper.pid, signal.SIGCONT)
    return broker, keeper, clients


def test_a_grant_behind_another_one_is_read_before_anybody_is_served(place):
    # A backend that stops as soon as it has the first connection.
    broker, keeper, clients = granted_together(place, f'first={signal.SIGSTOP}', (1, 2))
    os.waitid(os.P_PID, keeper.pid, os.WSTOPPED)
    # Now it serves the first one, for as long as it likes: the second cannot be too late any more.
    assert broker.unread() == 0
    os.kill(keeper.pid, signal.SIGCONT)
    for client in clients:
        expected = b'%d\nmine\n' % keeper.pid
        assert frames.read_exactly(client, len(expected)) == expected


def test_who_takes_one_whenever_the_descriptor_can_be_read_takes_all(place):
    _, keeper, clients = granted_together(place, 'single', range(1, 6))
    for client in clients:
        expected = b'%d\nmine\n' % keeper.pid
        assert frames.read_exactly(client, len(expected)) == expected


def stop(process):
    os.kill(process.pid, signal.SIGSTOP)
    await_stop(process)


def await_stop(process):
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)


def go_on(process):
    os.kill(process.pid, signal.SIGCONT)


# What a backend is told to do to itself, and what is done to it, until it is killed at that step
# with a connection in flight. Each gets the broker, the backend, and how many were offered and
# granted before.

def strike_unread(place, _, keeper, offered, __):
    """The offer lies in its channel."""
    place.await_count('offered', offered + 1)
    keeper.kill()


def strike_offer(*_):
    """It has the offer, and has not answered."""


def strike_acked(_, broker, keeper, *__):
    """It has answered, and nobody has read that."""
    await_stop(keeper)
    stop(broker)
    go_on(keeper)
    keeper.wait(BOUND)
    go_on(broker)


def strike_granted(place, broker, keeper, _, granted):
    """The Grant lies in its channel."""
    await_stop(keeper)
    stop(broker)
    go_on(keeper)
    await_stop(keeper)
    go_on(broker)
    place.await_count('granted', granted + 1)
    keeper.kill()


def strike_first(*_):
    """It has the connection, and has not read from it."""


KILL, STOP = int(signal.SIGKILL), int(signal.SIGSTOP)
# The step, what the backend is told, whether the connection is granted, and what it has written.
STEPS = {
    'grants': [
        (strike_unread, [], False, 0),
        (strike_offer, [f'offer={KILL}'], False, 0),
        (strike_acked, [f'offer={STOP}', f'acked={KILL}'], False, 0),
        (strike_granted, [f'offer={STOP}', f'acked={STOP}'], True, 0),
        (strike_first, [f'first={KILL}'], True, 0),
    ],
    # What it says first it has said before it acknowledges.
    'slates': [
        (strike_unread, [], False, 0),
        (strike_offer, [f'offer={KILL}'], False, 0),
        (strike_first, [f'first={KILL}'], True, 0),
        (strike_acked, [f'offer={STOP}', f'acked={KILL}'], True, 1),
    ],
}


def kill_at(place, broker, step, numbers):
    """One backend, killed at that step; its client sees the end of the connection, and no byte but
    those that it was sent."""
    strike, told, _, lines = step
    keeper = place.keeper('echo', *told)
    if strike is strike_unread:
        stop(keeper)
    client = place.client(frames.hello('echo') + b'request\n')
    assert frames.read_reply(client)[0] == 'negotiated'
    strike(place, broker, keeper, *numbers)
    expected = b'%d\n' % keeper.pid * lines
    assert frames.read_exactly(client, len(expected)) == expected, strike.__doc__
    assert frames.is_ended(client), strike.__doc__
    client.close()
    assert keeper.wait(BOUND) == -signal.SIGKILL
    place.started.remove(keeper)
    keeper.stdout.close()
    place.sockets.clear()


@pytest.mark.parametrize('by', STEPS)
def test_a_backend_killed_at_each_step_in_turn_leaves_nothing_behind(place, by):
    broker = place.serve() if by == 'slates' else place.serve_by_grants()
    before = fds(broker)
    granted = 0
    for number in range(10000 if SOAK else 20):
        step = STEPS[by][number % len(STEPS[by])]
        kill_at(place, broker, step, (number, granted))
        granted += step[2]
    await_fds(broker, before)
    counts = place.counts()
    # None was granted that had not been acknowledged, and all others were taken back.
    assert (counts['offered'], counts['granted']) == (number + 1, granted)
    assert (counts['ack_timeout'], counts['pending']) == (number + 1 - granted, 0)
    # The next backend finds no sockets of those before it.
    assert len(os.listdir(place.folder)) <= 3 + 1
    place.keeper()
    assert len(os.listdir(place.folder)) == 3 + 1


def stopped_unread(place, _, keeper):
    """The offer lies in its channel until it is too late."""
    stop(keeper)
    client = place.client(frames.hello('echo') + b'request\n')
    place.await_count('ack_timeout', 1)
    return client


def stopped_offer(place, _, keeper):
    """It has the offer, and answers when it is too late."""
    client = place.client(frames.hello('echo') + b'request\n')
    await_stop(keeper)
    place.await_count('ack_timeout', 1)
    return client


def stopped_granted(place, broker, keeper):
    """The Grant was sent in time, and is read when it is too late."""
    client = place.client(frames.hello('echo') + b'request\n')
    await_stop(keeper)
    end = time.clock_gettime(time.CLOCK_BOOTTIME) + 1
    stop(broker)
    go_on(keeper)
    await_stop(keeper)
    go_on(broker)
    place.await_count('granted', 1)
    while time.clock_gettime(time.CLOCK_BOOTTIME) < end:
        pass
    return client


@pytest.mark.parametrize('strike, told', [
    (stopped_unread, []),
    (stopped_offer, [f'offer={STOP}']),
    (stopped_granted, [f'offer={STOP}', f'acked={STOP}']),
])
def test_a_backend_stopped_at_each_step_has_read_nothing_when_it_wakes(place, strike, told):
    serve = place.serve_by_grants if strike is stopped_granted else place.serve
    broker = serve('--ack-timeout', '1s')
    keeper = place.keeper('echo', *told)
    client = strike(place, broker, keeper)
    assert frames.read_reply(client)[0] == 'negotiated'
    # What is not granted the broker takes back, whether the backend wakes or not.
    if strike is stopped_granted:
        go_on(keeper)
    assert frames.is_ended(client)
    go_on(keeper)
    # Whatever it has to say comes before what it says now.
    assert place.way('echo', '--no-handoff') == 'reconnecting'
    assert keeper.stdout.readline().split()[0] == 'reconnected'


def test_a_backend_that_dies_after_its_ack_has_no_grant(place):
    place.serve()
    raw = place.backend()
    client = place.client(frames.hello('raw') + b'request\n')
    assert frames.read_reply(client)[0] == 'negotiated'
    offer = raw.offer()
    raw.channel.shutdown(socket.SHUT_RD)
    raw.ack(offer)
    raw.close()
    offer['connection'].close()
    assert frames.is_ended(client)
    assert place.count('granted') == 0


def test_a_backend_that_dies_after_the_grant_ends_only_its_own(place):
    broker = place.serve()
    raw = place.backend()
    client = place.client(frames.hello('raw') + b'request\n')
    assert frames.read_reply(client)[0] == 'negotiated'
    offer = raw.offer()
    raw.ack(offer)
    assert raw.granted(offer)
    raw.close()
    # The broker does not touch it any more, whatever becomes of the channel.
    place.await_no_more('pending', 0)
    offer['connection'].sendall(b'served')
    assert frames.read_exactly(client, 6) == b'served'
    assert frames.read_exactly(offer['connection'], 8) == b'request\n'
    offer['connection'].close()
    assert frames.is_ended(client)
    assert broker.poll() is None


def test_the_broker_has_its_copy_until_the_grant(place):
    broker = place.serve()
    raw = place.backend()
    before = fds(broker)
    assert frames.read_reply(place.client(frames.hello('raw')))[0] == 'negotiated'
    offer = raw.offer()
    assert fds(broker) == before + 1
    raw.ack(offer)
    assert raw.granted(offer)
    await_fds(broker, before)


def test_no_token_is_in_the_log(place):
    place.serve('-v', '--ack-timeout', '100ms')
    raw = place.backend()
    tokens = []
    for step in ('granted', 'refused', 'wrong', 'late'):
        client = place.client(frames.hello('raw'))
        assert frames.read_reply(client)[1][7]
        offer = raw.offer()
        tokens.append(offer[2])
        if step != 'late':
            raw.ack(offer, accepted=step != 'refused', token=bytes(16) if step == 'wrong' else None)
        if step == 'granted':
            assert raw.granted(offer)
            continue
        assert frames.is_ended(client)
    raw.channel.send(b'nonsense')
    place.await_log('msg="backend gone"')
    log = place.log()
    assert log.count('msg="connection taken back"') == 3
    for token in tokens:
        assert len(token) == 16
        for part in (token[:8].hex(), repr(token)[2:-1].lower()):
            assert part not in log.lower()


def test_a_stopped_broker_grants_nothing_when_it_is_too_late(place):
    broker = place.serve('--ack-timeout', '100ms')
    raw = place.backend()
    client = place.client(frames.hello('raw'))
    assert frames.read_reply(client)[0] == 'negotiated'
    offer = raw.offer()
    os.kill(broker.pid, signal.SIGSTOP)
    raw.ack(offer)
    # Past the deadline, of which the offer says when it is.
    while time.clock_gettime_ns(time.CLOCK_BOOTTIME) <= offer[13]:
        pass
    os.kill(broker.pid, signal.SIGCONT)
    assert frames.is_ended(client)
    counts = place.counts()
    assert (counts['granted'], counts['ack_timeout']) == (0, 1)


# Acknowledgements that are late, repeated, forged, garbled, or somebody else's.

def test_a_late_ack_changes_nothing(place):
    place.serve('--ack-timeout', '50ms')
    raw = place.backend()
    client = place.client(frames.hello('raw'))
    assert frames.read_reply(client)[0] == 'negotiated'
    offer = raw.offer()
    assert frames.is_ended(client)
    raw.ack(offer)
    place.await_count('stray_acks', 1)
    assert place.count('granted') == 0


def test_an_ack_counts_once(place):
    place.serve()
    raw = place.backend()
    client = place.client(frames.hello('raw'))
    assert frames.read_reply(client)[0] == 'negotiated'
    offer = raw.offer()
    raw.ack(offer)
    raw.ack(offer)
    raw.ack(offer, accepted=0)
    assert raw.granted(offer)
    place.await_count('stray_acks', 2)
    assert place.count('granted') == 1
    offer['connection'].sendall(b'mine')
    assert frames.read_exactly(client, 4) == b'mine'


def test_the_right_token_counts_after_two_wrong_ones(place):
    place.serve()
    raw = place.backend()
    client = place.client(frames.hello('raw'))
    assert frames.read_reply(client)[0] == 'negotiated'
    offer = raw.offer()
    raw.ack(offer, token=bytes(16))
    raw.ack(offer, token=offer[2][:15])
    raw.ack(offer)
    assert raw.granted(offer)
    assert [line.partition(' why=')[2] for line in place.log().splitlines()
            if 'msg="wrong token"' in line] == ['"it is another one"',
                                                '"a token of 15 bytes; it has 16"']
    counts = place.counts()
    assert (counts['wrong_tokens'], counts['granted'], counts['broken_backends']) == (2, 1, 0)
    assert client


def test_three_wrong_tokens_end_the_channel(place):
    place.serve()
    raw = place.backend()
    client = place.client(frames.hello('raw'))
    assert frames.read_reply(client)[0] == 'negotiated'
    offer = raw.offer()
    for token in (bytes(16), b'', offer[2] + b'x'):
        raw.ack(offer, token=token)
    with contextlib.suppress(BrokenPipeError):
        raw.ack(offer)
    assert raw.receive() == (None, None)
    assert frames.is_ended(client)
    counts = place.counts()
    assert (counts['wrong_tokens'], counts['granted'], counts['integrity_mismatch']) == (3, 0, 1)


def test_nobody_acknowledges_for_another(place):
    place.serve()
    raw, other = place.backend('raw'), place.backend('other')
    client = place.client(frames.hello('raw'))
    assert frames.read_reply(client)[0] == 'negotiated'
    offer = raw.offer()
    other.ack(offer)
    place.await_count('stray_acks', 1)
    assert place.count('granted') == 0
    raw.ack(offer)
    assert raw.granted(offer)


@pytest.mark.parametrize('strange', ['envelope', 'descriptor', 'again', 'offer', 'long', 'empty'])
def test_a_strange_packet_ends_the_channel(place, strange):
    place.serve()
    raw = place.backend()
    client = place.client(frames.hello('raw'))
    assert frames.read_reply(client)[0] == 'negotiated'
    offer = raw.offer()
    body = frames.field(2, frames.field(1, offer[2]) + frames.field(2, 1)
                        + frames.field(4, offer[4]))
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        if strange == 'envelope':
            raw.ack(offer, request=offer[4] + 1)
        elif strange == 'descriptor':
            raw.send(frames.RESPONSE, body, offer[4], fds=[0, 1])
        elif strange == 'again':
            raw.send(frames.REQUEST, frames.field(4, frames.field(1, 'raw')))
        elif strange == 'offer':
            raw.send(frames.EVENT, frames.field(3, frames.field(1, offer[2])), 0)
        elif strange == 'long':
            raw.channel.send(bytes(100000))
        else:
            raw.channel.send(b'')
    assert raw.receive() == (None, None)
    assert frames.is_ended(client)
    assert place.count('granted') == 0


# Who has a service, and when nobody does.

def test_the_youngest_backend_has_the_service_until_it_goes(place):
    place.serve()
    place.keeper('echo', 'generation=5')
    newer = place.keeper('echo', 'generation=6')
    for generation in (5, 6):
        refused = place.start(KEEPER, 'echo', f'generation={generation}')
        assert refused.stdout.readline().startswith('error BATON_STALE: the broker says: ')
        assert refused.wait(BOUND) == 1
    result = place.connect('echo')
    assert result.stdout == f'{newer.pid}\nhi\n'
    newer.kill()
    newer.wait()
    older = place.connect('echo')
    assert older.returncode == 0 and older.stdout != result.stdout


def test_names_that_nobody_has_any_more_make_room_for_others(place):
    place.serve('--park', '10min')
    keeper = place.keeper()
    gone = place.keeper('wanted')
    gone.kill()
    gone.wait()
    client = place.client(frames.hello('wanted'))
    for number in range(1100):
        backend = place.backend(f'name-{number}')
        assert backend.registered.get(1) == 1, backend.registered
        backend.close()
        place.sockets.pop()
    # Those that somebody has or wants are there.
    assert place.connect('echo').stdout == f'{keeper.pid}\nhi\n'
    place.keeper('wanted')
    assert frames.read_reply(client)[0] == 'negotiated'


def test_clients_wait_for_a_backend_that_restarts(place):
    place.serve()
    first = place.keeper()
    first.kill()
    first.wait()
    client = place.start(BATON, 'connect', 'echo')
    place.await_count('waiting_clients', 2)      # and who asks
    second = place.keeper()
    assert client.stdout.readline() == f'{second.pid}\n'


def test_clients_do_not_wait_for_ever(place):
    place.serve('--park', '50ms')
    keeper = place.keeper()
    keeper.kill()
    keeper.wait()
    # It is told to come again in a second.
    result = place.connect('echo', '--wait', '900ms')
    assert result.returncode == TEMPFAIL
    assert result.stderr == ('baton: no connection in time; in the end: the broker says: '
                             'the service has no backend now\n')


def test_a_backend_comes_back_to_a_broker_that_restarts(place):
    broker = place.serve()
    keeper = place.keeper()
    broker.send_signal(signal.SIGTERM)
    assert broker.wait(BOUND) == 0
    place.serve()
    end = time.monotonic() + BOUND
    while not place.services():
        assert time.monotonic() < end
    assert place.way() == 'handoff'
    assert place.connect('echo').stdout == f'{keeper.pid}\nhi\n'


def test_no_connection_fails_while_backends_restart(place):
    place.serve()
    keeper = place.keeper()
    for _ in range(1000 if SOAK else 5):
        clients = [place.start(BATON, 'connect', 'echo') for _ in range(4)]
        keeper.kill()
        keeper.wait()
        keeper = place.keeper()
        for client in clients:
            first = client.stdout.readline()
            # One whose backend was killed before its first word has seen the end of a connection
            # that it had; whoever got none says so.
            assert first.strip().isdigit() or client.wait(BOUND) == 0, first
            client.kill()
            client.wait()
            client.stdout.close()
            place.started.remove(client)
    assert place.connect('echo').stdout == f'{keeper.pid}\nhi\n'


def test_what_is_on_its_way_is_finished_before_the_broker_ends(place):
    broker = place.serve()
    raw = place.backend()
    client = place.client(frames.hello('raw'))
    silent = place.client()
    assert frames.read_reply(client)[0] == 'negotiated'
    offer = raw.offer()
    broker.send_signal(signal.SIGTERM)
    kind, reply = frames.read_reply(silent)
    assert (kind, reply[4]) == ('refused', 5)
    with pytest.raises(OSError):
        place.client()
    raw.ack(offer)
    assert raw.granted(offer)
    assert broker.wait(BOUND) == 0
    offer['connection'].sendall(b'mine')
    assert frames.read_exactly(client, 4) == b'mine'
    assert os.listdir(place.folder) == ['broker.lock']


def test_a_client_that_has_sent_all_waits_too(place):
    place.serve()
    keeper = place.keeper()
    keeper.kill()
    keeper.wait()
    client = place.client(frames.hello('echo') + b'all of it\n')
    client.shutdown(socket.SHUT_WR)
    place.await_count('waiting_clients', 2)
    keeper = place.keeper()
    assert frames.read_reply(client)[0] == 'negotiated'
    expected = b'%d\nall of it\n' % keeper.pid
    assert frames.read_exactly(client, len(expected)) == expected


# Lanes.

class Fleet:
    """A store with the queue mail, whose shards belong to runners that do nothing."""

    def __init__(self, place):
        self.place = place
        self.store = f'sqlite:{place.top}/store.db'
        subprocess.run([BATON, 'queue', 'set', 'mail', 'shards=4', 'mode=runner', '--store',
                        self.store], check=True, timeout=BOUND, stdout=subprocess.DEVNULL)
        self.runners = {}

    def enlist(self, name, first, count):
        runner = self.place.start(os.environ['BATON_ENLIST'], self.store, name, 'attached', 'mail',
                                  str(first), str(count), stdin=subprocess.PIPE)
        assert int(runner.stdout.readline()) > 0
        self.runners[name] = runner

    def leave(self, name):
        self.runners[name].stdin.close()
        assert self.runners[name].wait(BOUND) == 0

    def owner(self, lane):
        result = subprocess.run([BATON, 'where', 'mail', lane, '--json', '--store', self.store],
                                check=False, timeout=BOUND, stdout=subprocess.PIPE)
        return json.loads(result.stdout)['runner']


def test_a_lanes_connection_finds_the_owner_and_follows_it(place):
    fleet = Fleet(place)
    place.serve('--store', fleet.store)
    fleet.enlist('one', 0, 2)
    fleet.enlist('two', 2, 2)
    keepers = {name: place.keeper(f'chat-{name}', f'owner={name}') for name in ('one', 'two')}
    seen = set()
    for number in range(12):
        lane = f'room-{number}'
        owner = fleet.owner(lane)
        result = place.connect('-v', '--queue', 'mail', '--lane', lane)
        assert result.stdout == f'{keepers[owner].pid}\nhi\n', result
        assert 'connected by handoff' in result.stderr
        seen.add(owner)
    assert seen == {'one', 'two'}
    # The shards of one go to the other, and so do its lanes.
    fleet.leave('one')
    fleet.enlist('three', 0, 2)
    keepers['three'] = place.keeper('chat-three', 'owner=three')
    for number in range(12):
        result = place.connect('--queue', 'mail', '--lane', f'room-{number}')
        assert result.stdout == f'{keepers[fleet.owner(f"room-{number}")].pid}\nhi\n'


def lane_told(place, capabilities=frames.ACCEPTS):
    """What the broker says to one who wants the lane ada."""
    body = (frames.field(1, 1) + frames.field(2, 1) + frames.field(6, capabilities)
            + frames.field(21, 'mail') + frames.field(22, 'ada'))
    return frames.read_reply(place.client(frames.frame(frames.envelope(0, frames.HELLO, body))))


def test_a_lane_whose_owner_is_elsewhere_is_reconnected_to(place):
    fleet = Fleet(place)
    place.serve('--store', fleet.store)
    fleet.enlist('far', 0, 4)
    kind, reply = lane_told(place)
    assert (kind, reply[3], reply.get(7)) == ('negotiated', b'there:1', None)
    kind, reply = lane_told(place, frames.ACCEPTS | frames.CANNOT_RECONNECT)
    assert (kind, reply[4]) == ('refused', 10)


def test_a_lane_without_an_owner_or_a_store_is_refused(place):
    fleet = Fleet(place)
    broker = place.serve('--store', fleet.store)
    kind, reply = lane_told(place)
    assert (kind, reply[4], reply[1]) == ('refused', 2, b'nobody owns the lane now')
    assert reply[6] > 0
    result = place.connect('--queue', 'mail', '--lane', 'ada', '--wait', '100ms')
    assert result.returncode == TEMPFAIL
    result = place.connect('--queue', 'none', '--lane', 'ada')
    assert (result.returncode, result.stderr) == (
        UNAVAILABLE, 'baton: the broker says: there is no such queue\n')
    broker.send_signal(signal.SIGTERM)
    assert broker.wait(BOUND) == 0
    place.serve()
    result = place.connect('--queue', 'mail', '--lane', 'ada')
    assert (result.returncode, result.stderr) == (
        UNAVAILABLE, 'baton: the broker says: this broker has no store with lanes\n')
    assert place.connect('--queue', 'mail').returncode == USAGE


# Where the sockets are, and who may use them.

def test_the_sockets_are_this_users_alone(place):
    place.serve()
    assert stat.S_IMODE(os.stat(place.folder).st_mode) == 0o700
    for name in ('broker', 'backends'):
        assert stat.S_IMODE(os.stat(f'{place.folder}/{name}').st_mode) == 0o600


def refusal(place, *arguments, **options):
    result = subprocess.run([BATON, 'serve', *arguments], env=place.env, check=False, text=True,
                            timeout=BOUND, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            **options)
    assert result.returncode not in (0, None), result
    return result.stderr


def test_there_is_one_broker_in_a_folder(place):
    place.serve()
    place.keeper()
    assert refusal(place) == f"baton: another broker runs in '{place.folder}'\n"
    assert place.way() == 'handoff'


def test_what_a_killed_broker_left_is_replaced(place):
    broker = place.serve()
    broker.kill()
    broker.wait()
    assert os.path.exists(f'{place.folder}/broker')
    place.serve()
    place.keeper()
    assert place.way() == 'handoff'


def test_somebody_who_listens_there_is_left_alone(place):
    os.mkdir(place.folder, 0o700)
    squatter = socket.socket(socket.AF_UNIX)
    place.sockets.append(squatter)
    squatter.bind(f'{place.folder}/broker')
    squatter.listen(0)
    assert refusal(place) == f"baton: somebody else listens at '{place.folder}/broker'\n"
    squatter.settimeout(BOUND)
    squatter.accept()[0].close()


def test_who_is_not_accepted_waits_for_that_and_not_for_ever(place):
    os.mkdir(place.folder, 0o700)
    door = socket.socket(socket.AF_UNIX)
    place.sockets.append(door)
    door.bind(f'{place.folder}/broker')
    door.listen(0)
    door.settimeout(BOUND)
    place.client()       # for more there is no room
    result = place.connect('echo', '--wait', '100ms')
    assert result.returncode == TEMPFAIL
    assert f"too many others wait at '{place.folder}/broker'" in result.stderr
    client = place.start(BATON, 'connect', 'echo', stdin=subprocess.PIPE)
    end = time.monotonic() + BOUND
    while not (sockets_of(client) and is_asleep(client)):
        assert client.poll() is None and time.monotonic() < end
    door.accept()[0].close()
    with door.accept()[0] as second:
        second.settimeout(BOUND)
        assert frames.fields(frames.read_frame(second)[4])[3] == b'echo'
        negotiated = frames.field(1, frames.field(1, 1) + frames.field(5, 1))
        second.sendall(frames.frame(frames.envelope(frames.RESPONSE, frames.HELLO, negotiated)))
        welcome = frames.field(6, frames.field(1, 1))
        second.sendall(frames.frame(frames.envelope(frames.EVENT, frames.HANDOFF, welcome))
                       + b'it\n')
        assert client.stdout.readline() == 'it\n'


def sockets_of(process):
    """The flags of its sockets."""
    flags = []
    for fd in os.listdir(f'/proc/{process.pid}/fd'):
        with contextlib.suppress(OSError):
            if os.readlink(f'/proc/{process.pid}/fd/{fd}').startswith('socket:'):
                with open(f'/proc/{process.pid}/fdinfo/{fd}', encoding='ascii') as file:
                    flags += [int(line.split()[1], 8) for line in file if 'flags' in line]
    return flags


def is_asleep(process):
    with open(f'/proc/{process.pid}/stat', encoding='ascii') as file:
        return file.read().rpartition(')')[2].split()[0] == 'S'


@pytest.mark.parametrize('way', [[], ['--no-handoff']], ids=['handoff', 'reconnecting'])
def test_what_a_client_gets_is_an_ordinary_socket(place, way):
    place.serve()
    keeper = place.keeper()
    client = place.start(BATON, 'connect', 'echo', *way, stdin=subprocess.PIPE)
    assert client.stdout.readline() == f'{keeper.pid}\n'
    flags, = sockets_of(client)
    assert flags & os.O_NONBLOCK == 0


def test_what_is_no_socket_is_left_alone(place):
    os.mkdir(place.folder, 0o700)
    with open(f'{place.folder}/backends', 'w', encoding='ascii') as file:
        file.write('mine')
    assert refusal(place) == (
        f"baton: '{place.folder}/backends' is in the way, and is no socket\n")
    with open(f'{place.folder}/backends', encoding='ascii') as file:
        assert file.read() == 'mine'


def test_a_folder_that_is_open_to_others_is_refused(place):
    os.mkdir(place.folder, 0o755)
    assert 'has mode 755' in refusal(place)
    assert 'has mode 755' in place.connect('echo').stderr
    os.rmdir(place.folder)
    os.mkdir(f'{place.top}/real', 0o700)
    os.symlink(f'{place.top}/real', place.folder)
    assert 'is no folder' in refusal(place)


def test_the_folder_is_that_of_the_runtime_or_one_of_this_user(place):
    os.mkdir(f'{place.top}/run', 0o700)
    place.env.pop('BATON_BROKER')
    place.env['XDG_RUNTIME_DIR'] = f'{place.top}/run'
    place.folder = f'{place.top}/run/baton'
    place.serve()
    place.keeper()
    assert place.way() == 'handoff'
    place.env['XDG_RUNTIME_DIR'] = 'run'
    assert 'an absolute path is needed' in refusal(place)
    place.env['XDG_RUNTIME_DIR'] = '/' + 'x' * 100
    assert 'too long' in refusal(place)


def test_without_a_runtime_folder_it_is_one_of_this_user_that_is_looked_at(place, as_other):
    if not as_other:
        pytest.skip('needs root, to be two users')
    folder = f"/tmp/baton-{as_other['user']}"
    if os.path.lexists(folder) or os.path.exists(f"/run/user/{as_other['user']}"):
        pytest.skip('that user has one')
    place.env.pop('BATON_BROKER')
    os.chmod(place.top, 0o711)
    try:
        # Somebody else was there before.
        os.mkdir(folder, 0o777)
        assert 'belongs to the user 0' in refusal(place, **as_other)
        assert 'belongs to the user 0' in place.connect('echo', **as_other).stderr
        os.rmdir(folder)
        os.symlink(place.top, folder)
        assert 'is no folder' in refusal(place, **as_other)
        os.unlink(folder)
        place.serve(**as_other)
        found = os.stat(folder)
        assert (stat.S_IMODE(found.st_mode), found.st_uid) == (0o700, as_other['user'])
        assert 'no such service' in place.connect('echo', **as_other).stderr
    finally:
        with contextlib.suppress(OSError):
            os.unlink(folder)
        shutil.rmtree(folder, ignore_errors=True)


def test_nobody_else_is_served(place, as_other):
    if not as_other:
        pytest.skip('needs root, to be two users')
    os.chmod(place.top, 0o711)
    os.mkdir(place.folder, 0o700)
    os.chown(place.folder, as_other['user'], as_other['group'])
    place.serve(**as_other)
    # Root passes by the modes of folder and socket.
    kind, reply = frames.read_reply(place.client())
    assert (kind, reply[4]) == ('refused', 6)
    backend = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    place.sockets.append(backend)
    backend.connect(f'{place.folder}/backends')
    assert backend.recv(1) == b''
    result = place.connect('echo')
    assert result.returncode == USAGE
    assert f"belongs to the user {as_other['user']}" in result.stderr


STRANGER = 54321
SQUAT = """
import os, socket, sys
doors = []
for name, kind in (('broker', socket.SOCK_STREAM), ('backends', socket.SOCK_SEQPACKET)):
    doors.append(socket.socket(socket.AF_UNIX, kind))
    doors[-1].bind(f'{sys.argv[1]}/{name}')
    os.chmod(f'{sys.argv[1]}/{name}', 0o666)
os.setuid(int(sys.argv[2]))
for door in doors:
    door.listen()
print('listening', flush=True)
sys.stdin.read()
"""


def test_somebody_else_who_listens_there_is_not_believed(place, as_other):
    if not as_other:
        pytest.skip('needs root, to be three users')
    os.chmod(place.top, 0o711)
    os.mkdir(place.folder, 0o700)
    squatter = place.start(sys.executable, '-c', SQUAT, place.folder, str(STRANGER),
                           stdin=subprocess.PIPE)
    assert squatter.stdout.readline() == 'listening\n'
    os.chown(place.folder, as_other['user'], as_other['group'])

    def said(name):
        return (f"the user {STRANGER} listens at '{place.folder}/{name}', "
                f"not {as_other['user']}\n")
    assert place.connect('echo', **as_other).stderr == f'baton: {said("broker")}'
    assert refusal(place, '--upgrade', **as_other) == f'baton: {said("backends")}'
    keeper = place.start(KEEPER, 'echo', **as_other)
    assert keeper.stdout.readline() == f'error BATON_INVALID: {said("backends")}'


CALL = """
import os, socket, sys
os.setgid(int(sys.argv[2]))
os.setuid(int(sys.argv[2]))
with socket.socket(socket.AF_UNIX) as client:
    client.settimeout(60)
    client.connect(sys.argv[1])
    try:
        client.sendall(bytes.fromhex(sys.argv[3]))
        print(client.recv(1000).hex())
    except ConnectionError:
        print()
"""


def test_a_backend_serves_nobody_else_at_its_endpoint(place, as_other):
    if not as_other:
        pytest.skip('needs root, to be two users')
    place.serve()
    keeper = place.keeper()
    # As if somebody had left all doors open.
    os.chmod(place.top, 0o711)
    os.chmod(place.folder, 0o711)
    os.chmod(keeper.endpoint, 0o666)

    def call(user):
        return subprocess.run([sys.executable, '-c', CALL, keeper.endpoint, str(user),
                               frames.hello('echo').hex()], check=True, timeout=BOUND, text=True,
                              stdout=subprocess.PIPE).stdout.strip()
    assert call(STRANGER) == ''
    assert bytes.fromhex(call(0)) == b'%d\n' % keeper.pid
    assert keeper.stdout.readline().split()[0] == 'reconnected'


# Clients that say nothing, nonsense, or too much.

@pytest.mark.parametrize('nonsense', [
    b'\0', b'\2\1\0\0\0x', b'GET / HTTP/1.1\r\n\r\n', b'\1\0\0\0\0', b'\1\1\0\1\0',
    b'\1\xff\xff\xff\xff', b'\1\4\0\0\0abcd', frames.frame(frames.envelope(1, 0, b'')),
    frames.frame(frames.envelope(0, 0xD0FF, b'')), frames.frame(frames.envelope(0, 0, b'')),
    frames.hello('../../etc'), frames.hello('a' * 65), frames.frame(b'\x08\x02' * 30000)],
    ids=lambda nonsense: nonsense[:12].hex())
def test_nonsense_ends_the_connection(place, nonsense):
    broker = place.serve()
    before = fds(broker)
    assert frames.is_ended(place.client(nonsense))
    assert place.count('nonsense') == 1
    await_fds(broker, before)


def test_a_hello_byte_by_byte_is_a_hello(place):
    place.serve()
    keeper = place.keeper()
    client = place.client()
    for byte in frames.hello('echo') + b'slow\n':
        client.sendall(bytes([byte]))
    assert frames.read_reply(client)[0] == 'negotiated'
    expected = b'%d\nslow\n' % keeper.pid
    assert frames.read_exactly(client, len(expected)) == expected


def test_a_protocol_that_is_not_spoken_is_refused(place):
    place.serve()
    place.keeper()
    kind, reply = frames.read_reply(place.client(frames.hello('echo', low=2, high=3)))
    assert (kind, reply[4], reply[2], reply[3]) == ('refused', 1, 1, 1)


def test_who_says_nothing_is_not_kept(place):
    broker = place.serve('--hello-timeout', '100ms')
    before = fds(broker)
    silent = [place.client(), place.client(frames.hello('echo')[:-1])]
    backend = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    place.sockets.append(backend)
    backend.connect(f'{place.folder}/backends')
    for client in silent:
        assert frames.is_ended(client)
    assert backend.recv(1) == b''
    assert place.count('silent') == 3
    await_fds(broker, before)


def test_a_thousand_silent_clients_keep_nobody_from_being_served(place):
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(limit[1], 4096), limit[1]))
    broker = place.serve()
    place.keeper()
    before = fds(broker)
    silent = [place.client() for _ in range(1000)]
    assert place.way() == 'handoff'
    for client in silent:
        client.close()
    await_fds(broker, before)


def test_connecting_and_closing_leaves_nothing(place):
    broker = place.serve()
    place.keeper()
    before = fds(broker)

    def resident():
        with open(f'/proc/{broker.pid}/statm', encoding='ascii') as file:
            return int(file.read().split()[1])

    def storm(number):
        for _ in range(number):
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(f'{place.folder}/broker')
        place.await_no_more('waiting_clients', 1)
    storm(1000)
    settled = resident()
    storm(1000000 if SOAK else 5000)
    # What was freed is kept for a while by a sanitizer.
    assert os.environ['BATON_SANITIZED'] == '1' or resident() <= settled + 64
    await_fds(broker, before)
    assert place.way() == 'handoff'


def test_when_descriptors_run_out_clients_are_told_and_later_served(place):
    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
    broker = place.serve(preexec_fn=few)
    keeper = place.keeper()
    before = fds(broker)
    silent = [place.client() for _ in range(60)]
    # Those for whom there was no descriptor have been told.
    told = [client for client in silent[40:] if frames.read_reply(client)[1][4] == 9]
    assert len(told) == 20
    for client in silent:
        client.close()
    await_fds(broker, before)
    ways = [place.way() for _ in range(4)]
    assert ways[-1] == 'handoff'
    assert place.count('fd_pressure') == ways.count('reconnecting')
    assert keeper.poll() is None


def watched(process):
    """For each descriptor that is in its epoll, what is waited for."""
    for fd in os.listdir(f'/proc/{process.pid}/fd'):
        if os.readlink(f'/proc/{process.pid}/fd/{fd}') == 'anon_inode:[eventpoll]':
            with open(f'/proc/{process.pid}/fdinfo/{fd}', encoding='ascii') as file:
                lines = [line.split() for line in file if line.startswith('tfd:')]
            return {int(words[1]): int(words[3], 16) for words in lines}
    return {}


def await_true(condition):
    end = time.monotonic() + BOUND
    while not condition():
        assert time.monotonic() < end


def way_told(place):
    """What the broker says to one who wants to be handed over."""
    client = place.client()
    # Who is refused without a word is gone by then.
    with contextlib.suppress(BrokenPipeError):
        client.sendall(frames.hello('echo'))
    kind, reply = frames.read_reply(client)
    if kind == 'refused':
        assert reply[6] > 0
        return f'refused {reply[4]}'
    return 'handed' if 7 in reply else 'reconnect'


def test_descriptors_run_out_step_by_step_and_come_back(place):
    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
    broker = place.serve(preexec_fn=few)
    place.keeper()
    before, doors = fds(broker), set(watched(broker))
    # First there are no handoffs: at three quarters, of which the backend has two.
    silent = [place.client() for _ in range(72)]
    assert way_told(place) == 'handed'
    await_fds(broker, before + 72)
    silent.append(place.client())
    assert way_told(place) == 'reconnect'
    # Then clients are refused, as many as come, through the descriptor that is kept for it.
    silent += [place.client() for _ in range(100 - fds(broker) + 10)]
    assert frames.read_reply(silent[-1])[1][4] == 9
    assert [way_told(place) for _ in range(3)] == ['refused 9'] * 3
    # Without even that one nobody is accepted for a while, and nothing turns round meanwhile.
    resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (3, 100))
    waits = place.client()
    await_true(lambda: [watched(broker)[fd] & select.EPOLLIN for fd in doors].count(0) == 2)
    await_true(lambda: is_asleep(broker))
    resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (100, 100))
    assert frames.read_reply(waits)[1][4] == 9
    for client in silent:
        client.close()
    await_fds(broker, before)
    # Three that were accepted well are the end of it.
    assert [way_told(place) for _ in range(3)] == ['reconnect', 'reconnect', 'handed']
    assert place.count('fd_pressure') == 3
    assert set(watched(broker)) == doors


def test_a_backend_without_descriptors_refuses_and_serves_when_it_has_some(place):
    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))
    place.serve()
    keeper = place.start(KEEPER, 'echo', preexec_fn=few)
    keeper.endpoint = keeper.stdout.readline().split()[1]
    served = []
    while fds(keeper) < 16:
        served.append(place.client(frames.hello('echo')))
        assert frames.read_reply(served[-1])[0] == 'negotiated'
        assert frames.read_exactly(served[-1], len(f'{keeper.pid}\n')) == b'%d\n' % keeper.pid
    client = place.start(BATON, 'connect', 'echo', '--wait', '10min', stdin=subprocess.PIPE)
    place.await_count('permission_denied', 1)

    def at_the_endpoint():
        with open('/proc/net/unix', encoding='utf-8', errors='replace') as sockets:
            return sum(line.endswith(f' {keeper.endpoint}\n') for line in sockets)
    await_true(lambda: at_the_endpoint() == 2)
    # It does not turn round, and is there for the broker.
    await_true(lambda: is_asleep(keeper))
    assert [row['pid'] for row in place.services()] == [keeper.pid]
    assert 'msg="backend gone"' not in place.log()
    served.pop().close()
    assert client.stdout.readline() == f'{keeper.pid}\n'


def test_a_probe_is_answered(place):
    place.serve()
    client = place.client(frames.frame(frames.envelope(0, frames.PROBE, b'', 7)))
    answer = frames.read_frame(client)
    assert (answer[2], answer[3], answer[5]) == (1, frames.PROBE, 7)
    assert frames.is_ended(client)
