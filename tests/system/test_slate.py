"""Connections that are taken by a word of shared memory: backends and brokers that die, stop, lie
and come late at each step."""
import fcntl
import os
import resource
import signal
import socket
import time

import pytest

import frames
from brokers import KEEPER, await_fds, fds, place_fixture
from frames import BOUND, Slate, field
from test_upgrade import upgrade

place = place_fixture
BOTH = frames.TAKES | frames.TAKES_BY_SLATE
STOP = int(signal.SIGSTOP)


def stop(process):
    os.kill(process.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)


def go_on(process):
    os.kill(process.pid, signal.SIGCONT)


def asked(place, service='raw', request=b'request\n'):
    """A client whose request lies behind its Hello, and which was told to wait."""
    client = place.client(frames.hello(service) + request)
    assert frames.read_reply(client)[0] == 'negotiated'
    return client


def offered(place, raw):
    client = asked(place)
    return client, raw.offer()


def assert_served(client, keeper, request=b'request\n'):
    expected = b'%d\n' % keeper.pid + request
    assert frames.read_exactly(client, len(expected)) == expected


def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


# What the broker does about a word.

def test_what_is_taken_needs_no_grant_and_its_copy_goes_without_a_word(place):
    broker = place.serve('--ack-timeout', '10min')
    raw = place.backend(capabilities=BOTH)
    before = fds(broker)
    client, offer = offered(place, raw)
    assert fds(broker) == before + 1
    raw.take(offer, now())
    # Nobody tells the broker: it looks for itself.
    await_fds(broker, before)
    offer['connection'].sendall(b'served')
    assert frames.read_exactly(client, 6) == b'served'
    offer['connection'].close()
    assert frames.is_ended(client)
    counts = place.counts()
    assert (counts['granted'], counts['pending'], counts['ack_timeout']) == (1, 0, 0)
    # The word is free, and an acknowledgement that comes now is one of nothing.
    assert raw.slate.get(offer[14]) == 0
    raw.ack(offer)
    place.await_count('stray_acks', 1)


def test_an_ack_of_what_was_taken_is_answered_by_nothing(place):
    broker = place.serve('--ack-timeout', '10min')
    raw = place.backend(capabilities=BOTH)
    before = fds(broker)
    _, first = offered(place, raw)
    raw.take(first, now())
    raw.ack(first)
    await_fds(broker, before)
    # What comes next is the next offer, and no Grant.
    _, second = offered(place, raw)
    assert second[4] != first[4]
    assert place.count('granted') == 1


def test_an_ack_that_waited_for_a_broker_that_stood_still_is_of_something(place):
    broker = place.serve('--ack-timeout', '10min')
    raw = place.backend(capabilities=BOTH)
    offers = [offered(place, raw)[1] for _ in range(3)]
    stop(broker)
    for offer in offers:
        raw.take(offer, now())
        raw.ack(offer)
    # Until it is due to look for itself.
    due = now() + 50_000_000
    while now() < due:
        pass
    go_on(broker)
    place.await_no_more('pending', 0)
    counts = place.counts()
    assert (counts['granted'], counts['stray_acks']) == (3, 0)


def test_the_time_that_a_handoff_took_is_that_of_the_taking(place):
    place.serve('--ack-timeout', '10min')
    raw = place.backend(capabilities=BOTH)
    _, offer = offered(place, raw)
    # At the moment of the offer, or before it.
    raw.take(offer, 1)
    place.await_count('granted', 1)
    assert place.count('latency_p99_ns') == 0


def test_who_does_not_use_the_word_gets_a_grant_and_cannot_use_it_any_more(place):
    place.serve('--ack-timeout', '10min')
    raw = place.backend(capabilities=BOTH)
    client, offer = offered(place, raw)
    raw.ack(offer)
    assert raw.granted(offer)
    assert not raw.slate.is_offered(offer[14], offer[4])
    offer['connection'].sendall(b'served')
    assert frames.read_exactly(client, 6) == b'served'
    assert place.count('granted') == 1


def test_what_is_refused_is_taken_back(place):
    place.serve('--ack-timeout', '10min')
    raw = place.backend(capabilities=BOTH)
    client, offer = offered(place, raw)
    raw.ack(offer, accepted=0)
    assert frames.is_ended(client)
    counts = place.counts()
    assert (counts['granted'], counts['permission_denied']) == (0, 1)
    assert raw.slate.get(offer[14]) == 0


def test_what_was_taken_cannot_be_refused(place):
    place.serve('--ack-timeout', '10min')
    raw = place.backend(capabilities=BOTH)
    client, offer = offered(place, raw)
    raw.take(offer)
    raw.ack(offer, accepted=0)
    place.await_count('granted', 1)
    offer['connection'].sendall(b'served')
    assert frames.read_exactly(client, 6) == b'served'


@pytest.mark.parametrize('front, state', [(0, Slate.OFFERED), (0, Slate.FREE), (5, Slate.REVOKED),
                                          (2**62 - 1, Slate.REVOKED)])
def test_a_backend_that_writes_nonsense_loses_the_connection(place, front, state):
    broker = place.serve('--ack-timeout', '10min')
    raw = place.backend(capabilities=BOTH)
    before = fds(broker)
    client, offer = offered(place, raw)
    raw.slate.set(offer[14], front, state)
    raw.ack(offer, accepted=0)
    assert frames.is_ended(client)
    await_fds(broker, before)
    assert (place.count('permission_denied'), place.count('granted')) == (1, 0)
    # And not the next one.
    client, offer = offered(place, raw)
    raw.take(offer)
    offer['connection'].sendall(b'served')
    assert frames.read_exactly(client, 6) == b'served'


def test_a_word_is_free_when_its_connection_was_taken_back(place):
    place.serve('--ack-timeout', '10min')
    raw = place.backend(capabilities=BOTH)
    client, first = offered(place, raw)
    raw.ack(first, accepted=0)
    assert frames.is_ended(client)
    place.await_no_more('pending', 0)
    assert raw.slate.get(first[14]) == 0
    _, second = offered(place, raw)
    # It is that of the next, and says whose it is.
    assert second[14] == first[14]
    assert raw.slate.is_offered(second[14], second[4])
    assert not raw.slate.is_offered(first[14], first[4])


def test_without_a_free_word_there_is_a_grant(place):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < 4096 <= hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (4096, hard))
    place.serve('--ack-timeout', '10min', '--pending', '1000')
    raw = place.backend(capabilities=BOTH)
    offers = []
    for _ in range(Slate.WORDS):
        offers.append(offered(place, raw)[1])
    last = offers.pop()
    assert {offer[14] for offer in offers} == set(range(1, Slate.WORDS))
    assert 14 not in last
    raw.ack(last)
    assert raw.granted(last)
    raw.take(offers[99])
    place.await_count('granted', 2)
    assert offered(place, raw)[1][14] == offers[99][14]


def test_three_wrong_tokens_end_the_channel_and_not_what_was_taken(place):
    place.serve('--ack-timeout', '10min')
    raw = place.backend(capabilities=BOTH)
    clients, offers = zip(*[offered(place, raw) for _ in range(2)])
    raw.take(offers[0])
    for _ in range(3):
        raw.ack(offers[1], token=bytes(16))
    assert frames.is_ended(clients[1])
    offers[0]['connection'].sendall(b'served')
    assert frames.read_exactly(clients[0], 6) == b'served'
    counts = place.counts()
    assert (counts['wrong_tokens'], counts['granted'], counts['integrity_mismatch']) == (3, 1, 1)


def test_the_page_stays_as_long_as_it_is(place):
    place.serve()
    raw = place.backend(capabilities=BOTH)
    with pytest.raises(PermissionError):
        os.ftruncate(raw.slate.fd, 0)
    with pytest.raises(PermissionError):
        fcntl.fcntl(raw.slate.fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)


def test_who_does_not_ask_for_a_slate_has_none(place):
    place.serve()
    raw = place.backend()
    assert raw.slate is None
    assert 14 not in offered(place, raw)[1]


def test_slates_go_with_their_backends(place):
    broker = place.serve()
    before = fds(broker)
    for _ in range(10):
        raw = place.backend(capabilities=BOTH)
        offered(place, raw)
        raw.close()
    place.sockets.clear()
    await_fds(broker, before)


def test_what_is_on_its_way_is_finished_before_the_broker_ends(place):
    broker = place.serve('--ack-timeout', '10min')
    raw = place.backend(capabilities=BOTH)
    client, offer = offered(place, raw)
    broker.terminate()
    raw.take(offer)
    assert broker.wait(BOUND) == 0
    offer['connection'].sendall(b'served')
    assert frames.read_exactly(client, 6) == b'served'


# The library in a backend that is stopped or killed, or whose broker is.

def test_what_was_taken_is_not_taken_back_at_the_deadline(place):
    place.serve('--ack-timeout', '5s')
    keeper = place.keeper('echo', f'first={STOP}')
    client = asked(place, 'echo')
    # It has taken the connection, has told nobody, and stands still until the broker lets go.
    os.waitid(os.P_PID, keeper.pid, os.WSTOPPED)
    place.await_no_more('pending', 0)
    go_on(keeper)
    assert_served(client, keeper)
    counts = place.counts()
    assert (counts['granted'], counts['ack_timeout'], counts['stray_acks']) == (1, 0, 0)


def test_what_was_taken_is_not_taken_back_by_a_broker_that_slept(place):
    broker = place.serve('--ack-timeout', '5s')
    keeper = place.keeper('echo', f'offer={STOP}')
    client = asked(place, 'echo')
    os.waitid(os.P_PID, keeper.pid, os.WSTOPPED)
    end = now() + 5 * 10**9
    stop(broker)
    go_on(keeper)
    assert_served(client, keeper)
    while now() < end:
        pass
    # Its first deed is to look at what is too late.
    go_on(broker)
    place.await_count('granted', 1)
    client.sendall(b'more\n')
    assert frames.read_exactly(client, 5) == b'more\n'
    assert place.count('ack_timeout') == 0


def test_who_dies_after_it_has_taken_a_connection_has_had_it(place):
    broker = place.serve('--ack-timeout', '10min')
    before = fds(broker)
    keeper = place.keeper('echo', f'first={int(signal.SIGKILL)}')
    client = asked(place, 'echo')
    assert keeper.wait(BOUND) == -signal.SIGKILL
    assert frames.is_ended(client)
    await_fds(broker, before)
    counts = place.counts()
    assert (counts['granted'], counts['pending'], counts['ack_timeout']) == (1, 0, 0)


def test_an_offer_of_a_broker_that_was_killed_is_served(place):
    broker = place.serve('--ack-timeout', '10min')
    keeper = place.keeper()
    stop(keeper)
    client = asked(place, 'echo')
    place.await_count('offered', 1)
    broker.kill()
    broker.wait()
    # Nobody can take it back any more.
    go_on(keeper)
    assert_served(client, keeper)


# The library with a broker that does what it should not.

def ruled(place, page, *told):
    """A keeper, and the broker that it is told by."""
    os.mkdir(place.folder, 0o700)
    broker = frames.Broker(place.folder)
    place.sockets.append(broker)
    keeper = place.start(KEEPER, 'echo', *told)
    broker.register(page)
    assert keeper.stdout.readline().split()[0] == 'ready'
    return broker, keeper


def pass_one(place, broker, number, word=0, deadline=None):
    client, passed = socket.socketpair(socket.AF_UNIX)
    place.sockets.append(client)
    client.settimeout(BOUND)
    client.sendall(b'mine\n')
    broker.offer(number, passed, deadline or now() + 2 * BOUND * 10**9, word)
    passed.close()
    return client


def test_a_backend_takes_by_its_word_and_tells_when_it_has_served(place):
    slate = Slate.new()
    broker, keeper = ruled(place, slate.fd)
    slate.set(3, 1, Slate.OFFERED)
    before = now()
    assert_served(pass_one(place, broker, 1, 3), keeper, b'mine\n')
    assert slate.state(3) == Slate.TAKEN and before <= slate.get(3) >> 2 <= now()
    assert broker.acked() == 1


def test_what_was_taken_back_is_not_read(place):
    slate = Slate.new()
    broker, keeper = ruled(place, slate.fd)
    # An offer that was taken back; one whose word is that of another by now; one without a word.
    slate.set(3, 1, Slate.REVOKED)
    slate.set(4, 9, Slate.OFFERED)
    for number, word in ((1, 3), (2, 4), (3, 5), (4, Slate.WORDS), (5, 2**32 - 1)):
        client = pass_one(place, broker, number, word)
        assert frames.is_ended(client), word
    assert slate.is_offered(4, 9)
    slate.set(6, 6, Slate.OFFERED)
    assert_served(pass_one(place, broker, 6, 6), keeper, b'mine\n')


def test_what_comes_at_the_deadline_is_not_taken(place):
    slate = Slate.new()
    broker, _ = ruled(place, slate.fd)
    slate.set(3, 1, Slate.OFFERED)
    assert frames.is_ended(pass_one(place, broker, 1, 3, now()))
    assert slate.is_offered(3, 1)


def test_what_the_broker_has_seen_is_not_told(place):
    slate = Slate.new()
    broker, keeper = ruled(place, slate.fd, f'first={STOP}')
    slate.set(3, 1, Slate.OFFERED)
    client = pass_one(place, broker, 1, 3)
    os.waitid(os.P_PID, keeper.pid, os.WSTOPPED)
    assert slate.state(3) == Slate.TAKEN
    slate.set(3, 0, Slate.FREE)
    slate.set(4, 2, Slate.OFFERED)
    other = pass_one(place, broker, 2, 4)
    go_on(keeper)
    for one in (client, other):
        assert_served(one, keeper, b'mine\n')
    assert broker.acked() == 2


def test_a_page_that_may_end_is_no_slate(place):
    slate = Slate.new(seals=0)
    broker, keeper = ruled(place, slate.fd)
    slate.set(3, 1, Slate.OFFERED)
    client = pass_one(place, broker, 1, 3)
    # It asks for a Grant.
    assert broker.acked() == 1
    assert slate.is_offered(3, 1)
    broker.grant(1)
    assert_served(client, keeper, b'mine\n')


def test_all_that_lie_in_the_channel_are_served_by_who_takes_one_at_a_time(place):
    slate = Slate.new()
    broker, keeper = ruled(place, slate.fd, 'single')
    stop(keeper)
    clients = []
    for number in range(1, 6):
        slate.set(number, number, Slate.OFFERED)
        clients.append(pass_one(place, broker, number, number))
    go_on(keeper)
    for client in clients:
        assert_served(client, keeper, b'mine\n')
    assert [broker.acked() for _ in range(4)] == [1, 2, 3, 4]


def test_an_offer_of_a_broker_that_is_gone_is_not_served_too_late(place):
    slate = Slate.new()
    broker, keeper = ruled(place, slate.fd)
    stop(keeper)
    slate.set(3, 1, Slate.OFFERED)
    deadline = now() + 50 * 10**6
    client = pass_one(place, broker, 1, 3, deadline)
    broker.close()
    while now() < deadline:
        pass
    go_on(keeper)
    assert frames.is_ended(client)
    assert slate.is_offered(3, 1)


def test_more_are_taken_at_once_than_are_told_later(place):
    """While a backend waits for the answer to a question."""
    slate = Slate.new()
    broker, keeper = ruled(place, slate.fd, 'put=listener')
    keep = frames.fields(frames.fields(frames.fields(broker.channel.recv(1 << 17))[4])[7])
    clients = []
    for number in range(1, 67):
        slate.set(number, number, Slate.OFFERED)
        clients.append(pass_one(place, broker, number, number))
    assert [broker.acked() for _ in range(64)] == list(range(1, 65))
    broker.send(frames.RESPONSE, field(8, field(1, 1) + field(3, keep[4])), keep[4])
    for client in clients:
        assert_served(client, keeper, b'mine\n')
    assert [broker.acked() for _ in range(2)] == [65, 66]


# Brokers that take the place of others.

def test_what_is_on_its_way_is_let_go_by_the_new_one(place):
    old = place.serve('--ack-timeout', '10min')
    raw = place.backend(capabilities=BOTH)
    clients, offers = zip(*[offered(place, raw) for _ in range(70)])
    # Some are taken and told, some are taken when nobody looks, some only after it.
    stop(old)
    for offer in offers[:40]:
        raw.take(offer)
    for offer in offers[:20]:
        raw.ack(offer)
    go_on(old)
    new = upgrade(place, old, '--ack-timeout', '10min')
    for offer in offers[40:]:
        raw.take(offer)
    place.await_count('granted', 70)
    for client, offer in zip(clients, offers):
        offer['connection'].sendall(b'served')
        assert frames.read_exactly(client, 6) == b'served'
    # The next offers have words that nobody else has.
    more = [offered(place, raw)[1] for _ in range(5)]
    assert len({offer[14] for offer in more}) == 5
    for offer in more:
        raw.take(offer)
    place.await_no_more('pending', 0)
    counts = place.counts()
    assert (counts['granted'], counts['pid'], counts['ack_timeout']) == (75, new.pid, 0)


def test_a_deadline_goes_on_in_the_new_one(place):
    old = place.serve('--ack-timeout', '500ms')
    raw = place.backend(capabilities=BOTH)
    client, offer = offered(place, raw)
    upgrade(place, old, '--ack-timeout', '500ms')
    assert frames.is_ended(client)
    assert place.count('ack_timeout') == 1
    assert raw.slate.get(offer[14]) == 0


def test_words_that_are_used_are_not_given_twice_by_the_new_one(place):
    old = place.serve('--ack-timeout', '10min')
    raw = place.backend(capabilities=BOTH)
    pairs = [offered(place, raw) for _ in range(4)]
    raw.take(pairs[0][1])
    raw.take(pairs[2][1])
    place.await_no_more('pending', 2)
    upgrade(place, old, '--ack-timeout', '10min')
    used = {pairs[1][1][14], pairs[3][1][14]}
    for _ in range(4):
        used.add(offered(place, raw)[1][14])
    assert len(used) == 6
    for client, offer in (pairs[1], pairs[3]):
        raw.take(offer)
        offer['connection'].sendall(b'served')
        assert frames.read_exactly(client, 6) == b'served'


# Clients that come before their Hello.

def test_one_that_comes_before_its_hello_is_served_whatever_comes_between(place):
    broker = place.serve('--hello-timeout', '10min')
    keeper = place.keeper()
    before = fds(broker)
    for between in ('nothing', 'another', 'silence', 'half'):
        fresh = place.client()
        await_fds_exactly(broker, before + 1)
        if between == 'another':
            assert_served(asked(place, 'echo'), keeper)
        elif between == 'silence':
            place.client()
            await_fds_exactly(broker, before + 2)
        hello = frames.hello('echo') + b'request\n'
        if between == 'half':
            fresh.sendall(hello[:4])
            assert place.counts()['granted'] > 0
            hello = hello[4:]
        fresh.sendall(hello)
        assert frames.read_reply(fresh)[0] == 'negotiated', between
        assert_served(fresh, keeper)
        for connection in place.sockets:
            connection.close()
        place.sockets.clear()
        await_fds(broker, before)


def await_fds_exactly(process, number):
    end = time.monotonic() + BOUND
    while fds(process) != number:
        assert time.monotonic() < end, fds(process)


def test_one_that_goes_before_its_hello_leaves_nothing(place):
    broker = place.serve('--hello-timeout', '10min')
    place.keeper()
    before = fds(broker)
    for between in ('nothing', 'another'):
        fresh = place.client()
        await_fds_exactly(broker, before + 1)
        if between == 'another':
            assert place.way() == 'handoff'
        fresh.close()
        await_fds(broker, before)
    assert place.way() == 'handoff'


def test_one_that_never_says_hello_is_not_kept(place):
    broker = place.serve('--hello-timeout', '100ms')
    before = fds(broker)
    assert frames.is_ended(place.client())
    await_fds(broker, before)
    assert place.count('silent') == 1
