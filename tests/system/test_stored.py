"""What a broker keeps for the backends of a service: their listeners and idle connections."""
import array
import os
import resource
import socket
import subprocess
import time

import pytest

import frames
from brokers import BATON, KEEPER, await_fds, fds, place_fixture
from frames import BOUND, field

place = place_fixture
PUT, TAKE, TAKEN, LIST = 1, 2, 3, 4
DONE, NONE, THERE, FULL, WRONG, BUSY = 1, 2, 3, 4, 5, 6


def lines(keeper, number):
    return [keeper.stdout.readline().split() for _ in range(number)]


def gone(keeper):
    keeper.kill()
    keeper.wait()


def keep(raw, verb, name='', ttl=0, fds=()):
    """Asks, and gives the result and the descriptor."""
    body = field(1, verb) + field(2, name) + field(3, ttl) + field(4, 77)
    raw.send(frames.REQUEST, field(7, body), 77, fds=fds)
    kind, kept = raw.receive()
    assert kind == 8 and kept[3] == 77
    return kept[1], raw.fd


def taken(raw, name):
    raw.send(frames.REQUEST, field(7, field(1, TAKEN) + field(2, name)), 0)


def test_a_listener_outlives_its_backend(place):
    place.serve()
    first = place.keeper('echo', 'put=http', 'put=idle,3600000', 'list')
    (_, name, port, result), other, names = lines(first, 3)
    assert (name, result, other[3]) == ('http', 'BATON_OK', 'BATON_OK')
    assert names == ['list', 'BATON_OK', 'http', 'idle!']
    gone(first)
    # Somebody comes while nobody is there.
    client = socket.create_connection(('127.0.0.1', int(port)), BOUND)
    counts = place.counts()
    assert counts['stored_descriptors'] == 2
    stored = {entry['name']: entry for entry in counts['stored']}
    assert stored['http'] == {'service': 'echo', 'name': 'http', 'left_ms': None}
    assert 0 < stored['idle']['left_ms'] <= 3600000
    shown = subprocess.run([BATON, 'handoff'], env=place.env, check=True, text=True,
                           stdout=subprocess.PIPE).stdout
    assert 'stored: echo http, infinity\n' in shown
    second = place.keeper('echo', 'take=http', 'take=http', 'list')
    assert lines(second, 3) == [['took', 'http', port, 'BATON_OK'],
                                ['took', 'http', '0', 'BATON_NOT_FOUND'],
                                ['list', 'BATON_OK', 'idle!']]
    client.close()
    assert place.count('stored_descriptors') == 1


def test_nothing_that_is_kept_is_replaced(place):
    place.serve()
    keeper = place.keeper('echo', 'put=http', 'put=http', 'take=http', 'put=http')
    assert [line[3] for line in lines(keeper, 4)] == ['BATON_OK', 'BATON_CONFLICT', 'BATON_OK',
                                                      'BATON_OK']


def test_names_and_times_have_limits(place):
    place.serve()
    long = 'x' * 65
    keeper = place.keeper('echo', 'put=', f'put={long}', 'put=a,0', f'put={long[1:]}')
    assert [line[-1] for line in lines(keeper, 4)] == ['BATON_INVALID', 'BATON_INVALID',
                                                       'BATON_INVALID', 'BATON_OK']


def test_other_services_have_nothing_of_it(place):
    place.serve()
    place.keeper('echo', 'put=http')
    place.await_count('stored_descriptors', 1)
    other = place.keeper('other', 'take=http', 'list', 'put=http')
    assert lines(other, 2) == [['took', 'http', '0', 'BATON_NOT_FOUND'], ['list', 'BATON_OK']]
    assert lines(other, 1)[0][3] == 'BATON_OK'
    assert place.count('stored_descriptors') == 2


def test_what_is_not_taken_in_time_is_closed(place):
    broker = place.serve()
    keeper = place.keeper('echo')
    before = fds(broker)
    gone(keeper)
    keeper = place.keeper('echo', 'put=http,50')
    (_, _, port, result), = lines(keeper, 1)
    assert result == 'BATON_OK'
    place.await_count('expired_descriptors', 1)
    await_fds(broker, before)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(('127.0.0.1', int(port)), BOUND)


def test_one_service_keeps_no_more_than_so_many(place):
    broker = place.serve()
    raw = place.backend()
    before = fds(broker)
    with socket.socket() as some:
        for number in range(128):
            assert keep(raw, PUT, f'n{number}', fds=[some.fileno()])[0] == DONE
        assert keep(raw, PUT, 'more', fds=[some.fileno()])[0] == FULL
        assert keep(place.backend('other'), PUT, 'more', fds=[some.fileno()])[0] == DONE
    place.await_count('stored_descriptors', 129)
    for number in range(128):
        result, fd = keep(raw, TAKE, f'n{number}')
        assert result == DONE
        os.close(fd)
        taken(raw, f'n{number}')
    place.await_no_more('stored_descriptors', 1)
    await_fds(broker, before + 2)


def test_what_did_not_arrive_is_there_for_the_next(place):
    place.serve()
    raw = place.backend('raw', generation=1)
    other = place.backend('raw', generation=2)
    with socket.socket() as some:
        assert keep(raw, PUT, 'it', fds=[some.fileno()])[0] == DONE
    result, fd = keep(raw, TAKE, 'it')
    assert result == DONE
    assert keep(other, TAKE, 'it') == (BUSY, None)
    os.close(fd)
    # It dies without a word that it has it.
    raw.close()
    end = time.monotonic() + BOUND
    while (answer := keep(other, TAKE, 'it')) == (BUSY, None):
        assert time.monotonic() < end
    assert answer[0] == DONE
    os.close(answer[1])
    taken(other, 'it')
    assert keep(other, TAKE, 'it')[0] == NONE


def test_who_is_offered_before_an_answer_that_never_comes_is_served(place):
    os.mkdir(place.folder, 0o700)
    door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    place.sockets.append(door)
    door.settimeout(BOUND)
    door.bind(f'{place.folder}/backends')
    door.listen()
    keeper = place.start(KEEPER, 'echo', 'repeatable', 'put=it')
    channel, _ = door.accept()
    place.sockets.append(channel)
    channel.settimeout(BOUND)
    client, theirs = socket.socketpair()
    place.sockets.append(client)
    client.settimeout(BOUND)
    assert channel.recv(1 << 17)
    channel.send(frames.envelope(frames.RESPONSE, frames.HANDOFF, field(5, field(1, 1))))
    assert channel.recv(1 << 17)        # what it puts
    hello = field(1, 1) + field(2, 1) + field(3, 'echo') + field(6, frames.ACCEPTS)
    offer = (field(2, b't' * 16) + field(3, 'echo') + field(4, 5) + field(11, hello)
             + field(12, field(1, 1)) + field(13, 2**63 - 1))
    packet = frames.envelope(frames.REQUEST, frames.HANDOFF, field(1, offer), 5)
    socket.send_fds(channel, [packet], [theirs.fileno()])
    theirs.close()
    assert channel.recv(1 << 17)        # that it takes it
    channel.close()
    expected = b'%d\n' % keeper.pid
    assert frames.read_exactly(client, len(expected)) == expected
    client.sendall(b'x')
    assert frames.read_exactly(client, 1) == b'x'


@pytest.mark.parametrize('wrong', ['no-name', 'no-socket', 'long-time'])
def test_what_cannot_be_kept_is_told(place, wrong):
    broker = place.serve()
    raw = place.backend()
    before = fds(broker)
    with socket.socket() as some, open('/dev/null', 'rb') as null:
        fd = null.fileno() if wrong == 'no-socket' else some.fileno()
        name = '' if wrong == 'no-name' else 'it'
        ttl = 31 * 86400 * 1000 if wrong == 'long-time' else 0
        assert keep(raw, PUT, name, ttl, fds=[fd])[0] == WRONG
    assert keep(raw, LIST)[0] == DONE
    await_fds(broker, before)


def test_a_broker_without_descriptors_says_so_and_goes_on(place):
    broker = place.serve()
    raw = place.backend()
    limits = resource.prlimit(broker.pid, resource.RLIMIT_NOFILE)
    with socket.socket() as some:
        resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (3, limits[1]))
        assert keep(raw, PUT, 'it', fds=[some.fileno()])[0] == FULL
        resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, limits)
        assert keep(raw, PUT, 'it', fds=[some.fileno()])[0] == DONE
    assert place.count('broken_backends') == 0


@pytest.mark.parametrize('strange', ['two', 'none', 'with-take', 'taken', 'verb', 'name', 'early'])
def test_strange_questions_end_the_channel(place, strange):
    broker = place.serve()
    before = fds(broker)
    if strange == 'early':
        channel = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        place.sockets.append(channel)
        channel.settimeout(BOUND)
        channel.connect(f'{place.folder}/backends')
        packet = frames.envelope(frames.REQUEST, frames.HANDOFF, field(7, field(1, LIST)))
        channel.send(packet)
        assert channel.recv(1) == b''
    else:
        raw = place.backend()
        verb = {'with-take': TAKE, 'taken': TAKEN, 'verb': 9}.get(strange, PUT)
        name = 'x' * 65 if strange == 'name' else 'it'
        with socket.socket() as some:
            count = {'two': 2, 'none': 0, 'taken': 0, 'verb': 0}.get(strange, 1)
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                       array.array('i', [some.fileno()] * count))] if count else []
            packet = frames.envelope(frames.REQUEST, frames.HANDOFF,
                                     field(7, field(1, verb) + field(2, name)))
            raw.channel.sendmsg([packet], rights)
        assert raw.receive() == (None, None)
    assert place.count('stored_descriptors') == 0
    await_fds(broker, before)
