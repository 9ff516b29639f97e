"""baton serve --listen: clients of TCP that know nothing of Baton."""
import os
import signal
import socket
import ssl
import subprocess
import threading

import pytest

import frames
from brokers import BATON, await_fds, fds, place_fixture
from frames import BOUND

place = place_fixture
USAGE, TEMPFAIL = 64, 75


def listen(place, *specs, arguments=(), services=False):
    """A broker that listens; the spec of a listener is what is behind '='. All are at one port."""
    options = [word for spec in specs for word in ('--listen', f'127.0.0.1:0={spec}')]
    if services:
        options += ['--services', f'{place.top}/services']
    place.broker = place.serve(*options, '--park', '60s', *arguments)
    line, = [line for line in place.log().splitlines() if 'msg=listening' in line]
    place.port = int(line.split('port=')[1])


def connect(place, first=b''):
    client = socket.create_connection(('127.0.0.1', place.port), BOUND)
    place.sockets.append(client)
    client.settimeout(BOUND)
    if first:
        client.sendall(first)
    return client


def request(host):
    return f'GET / HTTP/1.1\r\nHost: {host}\r\n\r\n'.encode()


def hello_of(name):
    """The first bytes of a client that speaks TLS."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname=name).do_handshake()
    return outgoing.read()


def served(client, keeper, text):
    expected = b'%d\n' % keeper.pid + text
    return frames.read_exactly(client, len(expected)) == expected


def take(raw):
    """What comes to that backend, granted."""
    offer = raw.offer()
    raw.ack(offer)
    assert raw.granted(offer)
    return offer['connection']


def test_a_client_of_tcp_is_handed_over_and_leaves_the_broker(place):
    listen(place, 'echo')
    keeper = place.keeper()
    before = fds(place.broker)
    clients = [connect(place, b'hello\n') for _ in range(20)]
    for client in clients:
        assert served(client, keeper, b'hello\n')
    await_fds(place.broker, before)
    counts = place.counts()
    assert (counts['plain_clients'], counts['granted']) == (20, 20)
    place.broker.kill()
    place.broker.wait()
    for client in clients:
        client.sendall(b'again\n')
        assert frames.read_exactly(client, 6) == b'again\n'


def test_a_backend_knows_that_nobody_knows_who_it_is(place):
    listen(place, 'raw')
    raw = place.backend()
    connect(place, b'x')
    offer = raw.offer()
    who = frames.fields(offer[12])
    assert (who.get(1, 0), who[2]) == (0, 2**32 - 1)
    assert frames.fields(offer[11])[6] == frames.ACCEPTS | frames.CANNOT_RECONNECT


def test_it_waits_for_a_backend_that_restarts(place):
    listen(place, 'echo')
    client = connect(place, b'early\n')
    place.await_count('plain_clients', 1)
    assert served(client, place.keeper(), b'early\n')


def test_a_command_has_a_connection_of_tcp_too(place):
    place.define('cat', "command = sh -c 'echo ${BATON_CLIENT_UID-nobody}; exec cat'",
                 'takes = stdio')
    listen(place, 'cat', services=True)
    client = connect(place, b'hello\n')
    assert frames.read_exactly(client, 13) == b'nobody\nhello\n'


def test_who_comes_too_often_is_closed(place):
    place.define('cat', 'command = cat', 'takes = stdio', 'rate = 1/1h')
    listen(place, 'cat', services=True)
    assert frames.read_exactly(connect(place, b'first'), 5) == b'first'
    assert frames.is_ended(connect(place, b'second'))
    assert place.count('rate_limited') == 1


def test_a_service_that_does_not_start_is_a_close(place):
    place.define('bad', 'command = false')
    listen(place, 'bad', services=True)
    assert frames.is_ended(connect(place, b'hello\n'))
    assert frames.is_ended(connect(place))
    assert place.count('starts') == 3


# Told apart by name.

@pytest.mark.parametrize('first', [request, hello_of], ids=['http', 'tls'])
def test_names_tell_services_apart(place, first):
    listen(place, 'one@one.example', 'two@TWO.example', 'rest')
    keepers = {name: place.keeper(name) for name in ('one', 'two', 'rest')}
    for name in ('two', 'one', 'rest', 'one'):
        text = first(f'{name}.example')
        assert served(connect(place, text), keepers[name], text)


@pytest.mark.parametrize('first', [request, hello_of], ids=['http', 'tls'])
def test_byte_by_byte_nothing_is_lost(place, first):
    listen(place, 'one@one.example')
    keeper = place.keeper('one')
    text = first('one.example')
    client = connect(place)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in text:
        client.sendall(bytes([byte]))
    assert served(client, keeper, text)


def test_tls_is_between_client_and_backend_alone(place):
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt',
                    'ec_paramgen_curve:prime256v1', '-nodes', '-subj', '/CN=one.example',
                    '-keyout', f'{place.top}/key', '-out', f'{place.top}/cert'], check=True,
                   stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=BOUND)
    listen(place, 'one@one.example', 'raw')
    raw = place.backend('one')

    def serve():
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f'{place.top}/cert', f'{place.top}/key')
        with context.wrap_socket(take(raw), server_side=True) as connection:
            connection.sendall(connection.recv(100).upper())
    server = threading.Thread(target=serve)
    server.start()
    context = ssl.create_default_context(cafile=f'{place.top}/cert')
    context.hostname_checks_common_name = True
    context.check_hostname = False
    with context.wrap_socket(connect(place), server_hostname='one.example') as client:
        client.sendall(b'secret')
        assert client.recv(100) == b'SECRET'
    server.join(BOUND)


def test_who_names_nobody_gets_the_rest_or_a_close(place):
    listen(place, 'one@one.example', 'rest')
    place.keeper('one')
    rest = place.keeper('rest')
    for text in (b'SSH-2.0-x\r\n', request('else.example'), hello_of(None), b'\0', b'A' * 20000):
        client = connect(place, text)
        assert served(client, rest, text)


def test_without_a_rest_they_are_closed(place):
    listen(place, 'one@one.example')
    place.keeper('one')
    before = fds(place.broker)
    texts = (b'SSH-2.0-x\r\n', request('else.example'), hello_of('else.example'), b'\0')
    for text in texts:
        assert frames.is_ended(connect(place, text))
    assert place.count('nonsense') == len(texts)
    await_fds(place.broker, before)


def test_who_says_nothing_or_not_enough_is_not_kept(place):
    listen(place, 'one@one.example', 'rest', arguments=['--hello-timeout', '100ms'])
    place.keeper('rest')
    before = fds(place.broker)
    for text in (b'', b'GET', hello_of('one.example')[:-1]):
        assert frames.is_ended(connect(place, text))
    assert place.count('silent') == 3
    await_fds(place.broker, before)


def test_who_ends_before_it_has_said_enough_is_let_go(place):
    listen(place, 'one@one.example', 'rest')
    before = fds(place.broker)
    for text in (b'', b'GET / HTTP/1.1\r\n'):
        client = connect(place, text)
        client.shutdown(socket.SHUT_WR)
        assert frames.is_ended(client)
    await_fds(place.broker, before)


def test_who_has_sent_all_is_served_too(place):
    listen(place, 'one@one.example')
    keeper = place.keeper('one')
    client = connect(place, request('one.example'))
    client.shutdown(socket.SHUT_WR)
    assert served(client, keeper, request('one.example'))


# In doubt they see a close.

def test_another_backend_is_tried_if_the_first_certainly_has_nothing(place):
    listen(place, 'raw')
    older = place.backend('raw', generation=1)
    newer = place.backend('raw', generation=2)
    newer.channel.shutdown(socket.SHUT_RD)
    client = connect(place, b'hello')
    connection = take(older)
    connection.sendall(b'older')
    assert frames.read_exactly(client, 5) == b'older'
    assert frames.read_exactly(connection, 5) == b'hello'


def test_without_another_one_it_is_closed(place):
    listen(place, 'raw')
    before = fds(place.broker)
    raw = place.backend('raw')
    raw.channel.shutdown(socket.SHUT_RD)
    assert frames.is_ended(connect(place, b'hello'))
    await_fds(place.broker, before + 1)


def test_in_doubt_nobody_else_gets_it(place):
    listen(place, 'raw')
    older = place.backend('raw', generation=1)
    newer = place.backend('raw', generation=2)
    client = connect(place, b'hello')
    offer = newer.offer()
    newer.close()
    offer['connection'].close()
    assert frames.is_ended(client)
    counts = place.counts()
    assert (counts['offered'], counts['granted'], counts['ack_timeout']) == (1, 0, 1)
    assert older.channel


def test_a_backend_that_does_not_answer_loses_it(place):
    listen(place, 'raw', arguments=['--ack-timeout', '100ms'])
    raw = place.backend()
    client = connect(place, b'hello')
    assert raw.offer()[3] == b'raw'
    assert frames.is_ended(client)
    assert place.count('ack_timeout') == 1


def test_an_adopted_server_cannot_be_reconnected_to(place):
    listen(place, 'plain')
    place.keeper('plain', 'endpoint=/nowhere')
    assert frames.is_ended(connect(place, b'hello'))
    assert place.count('adopted_backend') == 1


def test_a_broker_that_ends_closes_who_waits(place):
    listen(place, 'echo', 'one@one.example')
    waiting = [connect(place, b'GET'), connect(place, b'\0')]
    place.await_count('plain_clients', 2)
    place.broker.send_signal(signal.SIGTERM)
    for client in waiting:
        assert frames.is_ended(client)
    assert place.broker.wait(BOUND) == 0
    with pytest.raises(OSError):
        connect(place)


# What is wrong.

@pytest.mark.parametrize('spec, why', [
    ('127.0.0.1:0', "is not of the form ADDRESS:PORT=SERVICE[@NAME]"),
    ('127.0.0.1=echo', "'127.0.0.1' is no address to listen at"),
    ('127.0.0.1:123456=echo', 'is no address to listen at'),
    ('::1:80=echo', 'is no address to listen at'),
    ('127.0.0.1:x=echo', 'is no address to listen at'),
    ('127.0.0.1:0=Echo', 'a service has a name of 1 to 64 of [a-z0-9-]'),
    ('127.0.0.1:0=echo@a/b', "'a/b' is no name of a server"),
    ('127.0.0.1:0=echo@', "'' is no name of a server")])
def test_what_is_no_listener_is_told(place, spec, why):
    result = subprocess.run([BATON, 'serve', '--listen', spec], env=place.env, check=False,
                            text=True, timeout=BOUND, stderr=subprocess.PIPE)
    assert result.returncode == USAGE
    assert why in result.stderr
    assert not os.path.exists(f'{place.folder}/broker')


def test_an_address_that_somebody_has_is_told(place):
    with socket.create_server(('127.0.0.1', 0)) as other:
        spec = f'127.0.0.1:{other.getsockname()[1]}'
        result = subprocess.run([BATON, 'serve', '--listen', f'{spec}=echo'], env=place.env,
                                check=False, text=True, timeout=BOUND, stderr=subprocess.PIPE)
    assert result.returncode == TEMPFAIL
    assert f"somebody else listens at '{spec}'" in result.stderr


def test_two_services_of_one_address_need_names(place):
    result = subprocess.run([BATON, 'serve', '--listen', '127.0.0.1:0=one', '--listen',
                             '127.0.0.1:0=two'], env=place.env, check=False, text=True,
                            timeout=BOUND, stderr=subprocess.PIPE)
    assert result.returncode == USAGE
    assert "there are two services at '127.0.0.1:0'" in result.stderr
