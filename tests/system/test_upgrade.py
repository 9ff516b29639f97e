"""baton serve --upgrade: one broker takes the place of another, with all that it has, or the other
goes on."""
import array
import contextlib
import os
import signal
import socket
import subprocess
import threading
import time

import pytest

import frames
from brokers import BATON, KEEPER, await_fds, fds, place_fixture
from frames import BOUND, field

place = place_fixture
SOAK = os.environ.get('BATON_SOAK') == '1'
ASK, PORTION, HAVE, END, READY, REFUSED = 1, 2, 3, 4, 5, 6
MOVE = 9
# So that the old one has as much time as it takes, however much else is done.
PATIENT = ('--ack-timeout', '1min')


def upgrade(place, old, *arguments, **options):
    """Another broker, which has taken the place of the old one."""
    patient = () if '--ack-timeout' in arguments else PATIENT
    new = place.serve('--upgrade', *patient, *arguments, log='log-new', **options)
    assert old.wait(BOUND) == 0
    return new


def move(step, number=0, items=()):
    body = field(1, step) + field(2, number) + b''.join(field(4, item) for item in items)
    return frames.envelope(frames.EVENT, frames.HANDOFF, field(MOVE, body))


class Heir:
    """A broker that asks for everything, and does exactly what it is told to."""

    def __init__(self, place):
        self.channel = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        place.sockets.append(self.channel)
        self.channel.settimeout(BOUND)
        self.channel.connect(f'{place.folder}/backends')

    def send(self, step, number=0):
        self.channel.send(move(step, number))

    def receive(self):
        """The step and number of what comes next; its descriptors are closed."""
        try:
            data, fds, _, _ = socket.recv_fds(self.channel, 1 << 17, 64)
        except ConnectionResetError:
            return None, None
        for fd in fds:
            os.close(fd)
        if not data:
            return None, None
        body = frames.fields(frames.fields(frames.fields(data)[4])[MOVE])
        return body[1], body.get(2, 0)

    def all(self):
        """Takes all there is, up to its end."""
        self.send(ASK, 1)
        steps = 0
        while True:
            step, number = self.receive()
            if step == END:
                return steps
            assert step == PORTION
            steps += 1
            self.send(HAVE, number)


# What is handed over.

def test_everything_goes_on_in_the_new_one(place):
    old = place.serve(*PATIENT)
    keeper = place.keeper('echo', 'put=http')
    assert keeper.stdout.readline().split()[3] == 'BATON_OK'
    assert place.way() == 'handoff'
    before = place.counts()
    new = upgrade(place, old)
    after = place.counts()
    assert after['pid'] == new.pid
    for name in ('granted', 'offered', 'stored_descriptors'):
        assert after[name] == before[name], name
    assert [(row['service'], row['pid'], row['granted']) for row in place.services()] == [
        ('echo', keeper.pid, 1)]
    assert place.way() == 'handoff'
    # The backend has noticed nothing, and finds what it had put.
    second = place.keeper('echo', 'take=http')
    assert second.stdout.readline().split()[3] == 'BATON_OK'
    new.send_signal(signal.SIGTERM)
    assert new.wait(BOUND) == 0
    assert 'broker' not in os.listdir(place.folder)


def test_without_a_broker_it_is_an_ordinary_start(place):
    place.serve('--upgrade')
    place.keeper()
    assert place.way() == 'handoff'


def test_a_half_read_hello_and_what_follows_it_are_read_on(place):
    old = place.serve(*PATIENT)
    keeper = place.keeper()
    hello = frames.hello('echo')
    clients = [place.client(hello[:size]) for size in (0, 1, 4, 5, 6, len(hello) - 1)]
    place.await_count('waiting_clients', len(clients) + 1)
    upgrade(place, old)
    for client, size in zip(clients, (0, 1, 4, 5, 6, len(hello) - 1)):
        client.sendall(hello[size:] + b'request\n')
        assert frames.read_reply(client)[0] == 'negotiated'
        expected = b'%d\nrequest\n' % keeper.pid
        assert frames.read_exactly(client, len(expected)) == expected


def test_what_was_read_fills_portions_to_the_last_byte(place):
    old = place.serve(*PATIENT)
    keepers = [place.keeper('one'), place.keeper('two')]
    # Of 29 such clients the last one is 3 bytes too many, which are those before its body.
    hellos = [frames.hello(name, auth='x' * 1450) for name in ('one', 'two')]
    clients = [place.client(hellos[i % 2][:5 + 1434]) for i in range(3 * 29)]
    place.await_count('waiting_clients', len(clients) + 1)
    upgrade(place, old)
    for i, client in enumerate(clients):
        client.sendall(hellos[i % 2][5 + 1434:] + b'x')
        assert frames.read_reply(client)[0] == 'negotiated'
        expected = b'%d\nx' % keepers[i % 2].pid
        assert frames.read_exactly(client, len(expected)) == expected
        assert keepers[i % 2].stdout.readline()


def test_who_waits_for_a_backend_waits_on(place):
    old = place.serve(*PATIENT, '--park', '60s')
    keeper = place.keeper()
    keeper.kill()
    keeper.wait()
    clients = [place.client(frames.hello('echo') + b'request\n') for _ in range(100)]
    place.await_count('waiting_clients', 101)
    upgrade(place, old, '--park', '60s')
    keeper = place.keeper()
    for client in clients:
        assert frames.read_reply(client)[0] == 'negotiated'
        expected = b'%d\nrequest\n' % keeper.pid
        assert frames.read_exactly(client, len(expected)) == expected


def test_what_is_on_its_way_is_granted_by_the_new_one(place):
    old = place.serve('--ack-timeout', '10min')
    raw = place.backend()
    clients = [place.client(frames.hello('raw') + b'%03d' % i) for i in range(100)]
    offers = []
    for client in clients:
        assert frames.read_reply(client)[0] == 'negotiated'
        offers.append(raw.offer())
    # Some acknowledge before, when nobody reads any more, and some after it.
    for offer in offers[:30]:
        raw.ack(offer)
        assert raw.granted(offer)
    os.kill(old.pid, signal.SIGSTOP)
    for offer in offers[30:60]:
        raw.ack(offer)
    os.kill(old.pid, signal.SIGCONT)
    new = upgrade(place, old, '--ack-timeout', '10min')
    for offer in offers[30:60]:
        assert raw.granted(offer)
    for offer in offers[60:]:
        raw.ack(offer)
        assert raw.granted(offer)
    for offer in offers:
        offer['connection'].sendall(frames.read_exactly(offer['connection'], 3))
    for number, client in enumerate(clients):
        assert frames.read_exactly(client, 3) == b'%03d' % number
    counts = place.counts()
    assert (counts['granted'], counts['pending'], counts['pid']) == (100, 0, new.pid)


def test_a_deadline_goes_on_in_the_new_one(place):
    old = place.serve('--ack-timeout', '500ms')
    raw = place.backend()
    client = place.client(frames.hello('raw'))
    assert frames.read_reply(client)[0] == 'negotiated'
    assert raw.offer()[3] == b'raw'
    upgrade(place, old, '--ack-timeout', '500ms')
    assert frames.is_ended(client)
    assert place.count('ack_timeout') == 1


def test_listeners_and_who_came_there_are_handed_over(place):
    specs = ('--listen', '127.0.0.1:0=one@one.example', '--listen', '127.0.0.1:0=echo', '--park',
             '60s')
    old = place.serve(*PATIENT, *specs)
    port = int(place.log().split('port=')[1].split()[0])

    def connect(first):
        client = socket.create_connection(('127.0.0.1', port), BOUND)
        place.sockets.append(client)
        client.settimeout(BOUND)
        client.sendall(first)
        return client
    half, parked = connect(b'GET / HT'), connect(b'\0')
    place.await_count('plain_clients', 2)
    place.await_log('msg=listening')
    upgrade(place, old, *specs)
    one, echo = place.keeper('one'), place.keeper('echo')
    rest = b'TP/1.1\r\nHost: one.example\r\n\r\n'
    half.sendall(rest)
    for client, keeper, text in ((half, one, b'GET / HT' + rest), (parked, echo, b'\0'),
                                 (connect(b'new'), echo, b'new')):
        expected = b'%d\n' % keeper.pid + text
        assert frames.read_exactly(client, len(expected)) == expected


def test_services_and_commands_that_were_started_go_on(place):
    place.define('echo', f'command = {KEEPER} echo', 'start-timeout = 10min')
    place.define('cat', 'command = cat', 'takes = stdio', 'max = 1')
    place.define('slow', 'command = sleep 1000', 'start-timeout = 10min')
    old = place.serve_defined()
    services = ('--services', f'{place.top}/services', '--park', '60s')
    pid = int(place.connect('echo').stdout.split()[0])
    first = place.client(frames.hello('cat') + b'1\n')
    assert frames.read_reply(first)[0] == 'negotiated'
    place.client(frames.hello('slow'))
    second = place.client(frames.hello('cat') + b'2\n')
    place.await_log('msg="service started"', 2)
    place.await_count('waiting_clients', 3)
    new = upgrade(place, old, *services)
    rows = {row['service']: row for row in place.services()}
    assert (rows['echo']['state'], rows['echo']['pid'], rows['echo']['starts']) == ('up', pid, 1)
    assert (rows['slow']['state'], rows['slow']['starts']) == ('starting', 1)
    assert rows['cat']['commands'] == 1
    # One that waited for the end of the other is next.
    first.close()
    assert frames.read_reply(second)[0] == 'negotiated'
    assert frames.read_exactly(second, 2) == b'2\n'
    # The new one knows when a service dies that it has not started, and ends those that live.
    os.kill(pid, signal.SIGKILL)
    again = int(place.connect('echo').stdout.split()[0])
    assert again != pid
    new.send_signal(signal.SIGTERM)
    assert new.wait(BOUND) == 0
    end = time.monotonic() + BOUND
    while any('sleep' in name or 'keeper' in name for name in names(place)):
        assert time.monotonic() < end


def names(place):
    """What runs that the broker has started."""
    for pid in place.strays():
        with contextlib.suppress(OSError):
            with open(f'/proc/{pid}/comm', encoding='ascii') as file:
                yield file.read()


def test_it_can_be_done_again_and_again(place):
    broker = place.serve(*PATIENT)
    keeper = place.keeper()
    first = None
    for _ in range(4):
        broker = upgrade(place, broker)
        assert place.connect('echo').stdout == f'{keeper.pid}\nhi\n'
        first = first or fds(broker)
        await_fds(broker, first)
    assert place.count('granted') == 4


def test_no_connection_fails_while_brokers_change(place):
    broker = place.serve(*PATIENT)
    keeper = place.keeper()
    stop, served, wrong = threading.Event(), [], []

    def work():
        while not stop.is_set():
            result = place.connect('echo')
            if (result.returncode, result.stdout) == (0, f'{keeper.pid}\nhi\n'):
                served.append(1)
            else:
                wrong.append(result)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(100 if SOAK else 4):
            broker = upgrade(place, broker)
            target = len(served) + 4
            end = time.monotonic() + BOUND
            while len(served) < target and not wrong and time.monotonic() < end:
                pass
            place.started = [process for process in place.started if process.poll() is None]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not wrong
    assert len(served) >= 4


# The new one dies, hangs or speaks nonsense at each step: the old one goes on.

def busy(place):
    """A broker that has some of everything, in several portions."""
    place.define('cat', 'command = cat', 'takes = stdio')
    broker = place.serve_defined('--ack-timeout', '10min', '--listen', '127.0.0.1:0=echo')
    raw = place.backend()
    client = place.client(frames.hello('raw') + b'request')
    assert frames.read_reply(client)[0] == 'negotiated'
    offer = raw.offer()
    cat = place.client(frames.hello('cat'))
    assert frames.read_reply(cat)[0] == 'negotiated'
    half = [place.client(frames.hello('cat')[:-1]) for _ in range(150)]
    place.await_count('waiting_clients', 151)
    return broker, raw, client, offer, cat, half


def goes_on(place, world):
    """Everything is as it was."""
    broker, raw, client, offer, cat, half = world
    raw.ack(offer)
    assert raw.granted(offer)
    offer['connection'].sendall(frames.read_exactly(offer['connection'], 7))
    assert frames.read_exactly(client, 7) == b'request'
    cat.sendall(b'cat')
    assert frames.read_exactly(cat, 3) == b'cat'
    for number in (0, 149):
        half[number].sendall(frames.hello('cat')[-1:] + b'x')
        assert frames.read_reply(half[number])[0] == 'negotiated'
        assert frames.read_exactly(half[number], 1) == b'x'
    assert broker.poll() is None
    assert sorted(os.listdir(place.folder)) == ['backends', 'broker', 'broker.lock']


@pytest.mark.parametrize('step', ['asked', 'first', 'second', 'last', 'all', 'nonsense', 'number',
                                  'early', 'format'])
def test_the_old_one_goes_on_if_the_new_one_is_gone(place, step):
    world = busy(place)
    before = fds(world[0])
    heir = Heir(place)
    if step == 'format':
        heir.send(ASK, 2)
        assert heir.receive()[0] == REFUSED
    elif step == 'all':
        assert heir.all() >= 3
    elif step == 'asked':
        heir.send(ASK, 1)
    else:
        heir.send(ASK, 1)
        assert heir.receive() == (PORTION, 1)
        if step in ('second', 'last'):
            heir.send(HAVE, 1)
            assert heir.receive() == (PORTION, 2)
        if step == 'last':
            heir.send(HAVE, 2)
        if step == 'nonsense':
            heir.channel.send(b'nonsense')
        if step == 'number':
            heir.send(HAVE, 2)
        if step == 'early':
            heir.send(READY)
    heir.channel.close()
    place.await_log('msg="upgrade failed, going on"')
    goes_on(place, world)
    assert fds(world[0]) <= before + 4      # those that are served since


def test_a_new_one_that_is_killed_changes_nothing(place):
    world = busy(place)
    # The old one is stopped, so the new one cannot come further than its question.
    os.kill(world[0].pid, signal.SIGSTOP)
    new = place.start(BATON, 'serve', '--upgrade', stderr=subprocess.DEVNULL)
    while not any('socket' in name for name in links(new)):
        assert new.poll() is None
    new.kill()
    new.wait()
    os.kill(world[0].pid, signal.SIGCONT)
    goes_on(place, world)
    assert place.count('pending') == 0


def test_a_new_one_that_is_killed_at_each_step_changes_nothing(place):
    broker, *rest = busy(place)
    before, step, new = fds(broker), 0, None
    while not new:
        # Before its question, each time that it has got a portion, and before it is the broker.
        step += 1
        assert place.counts()['pending'] == 1 and place.count('waiting_clients') == 151
        place.env.update(LD_PRELOAD=os.environ['BATON_STRIKE'], BATON_TEST_STRIKE=str(step))
        with open(f'{place.top}/log-{step}', 'w', encoding='utf-8') as log:
            heir = place.start(BATON, 'serve', '--upgrade', '--services', f'{place.top}/services',
                               '--ack-timeout', '10min', '--park', '60s', '--listen',
                               '127.0.0.1:0=echo', stderr=log)
        del place.env['LD_PRELOAD']
        end = time.monotonic() + BOUND
        while heir.poll() is None and 'msg=serving' not in place.log(f'log-{step}'):
            assert time.monotonic() < end
        if heir.poll() is None:
            new = heir
            continue
        assert heir.wait() == -signal.SIGKILL, place.log(f'log-{step}')
        # One that has not asked has changed nothing that could be told.
        place.await_log('msg="upgrade failed, going on"', step - 1)
        await_fds(broker, before)
        assert broker.poll() is None
    # A question, at least three portions, and that it is ready: none was left out.
    assert step >= 1 + 3 + 1 + 1
    assert broker.wait(BOUND) == 0
    goes_on(place, (new, *rest))


def links(process):
    """What its descriptors are."""
    for name in os.listdir(f'/proc/{process.pid}/fd'):
        with contextlib.suppress(OSError):
            yield os.readlink(f'/proc/{process.pid}/fd/{name}')


def test_a_listener_that_the_new_one_does_not_want_ends(place):
    old = place.serve(*PATIENT, '--listen', '127.0.0.1:0=one@one.example', '--listen',
                      '127.0.0.1:0=echo')
    port = int(place.log().split('port=')[1].split()[0])
    client = socket.create_connection(('127.0.0.1', port), BOUND)
    place.sockets.append(client)
    client.settimeout(BOUND)
    client.sendall(b'GET')
    place.await_count('plain_clients', 1)
    upgrade(place, old)
    assert frames.is_ended(client)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(('127.0.0.1', port), BOUND)


def test_a_new_one_with_wrong_options_changes_nothing(place):
    world = busy(place)
    with socket.create_server(('127.0.0.1', 0)) as other:
        spec = f'127.0.0.1:{other.getsockname()[1]}=echo'
        result = subprocess.run([BATON, 'serve', '--upgrade', '--listen', spec], env=place.env,
                                check=False, text=True, timeout=BOUND, stderr=subprocess.PIPE)
    assert result.returncode == 75 and 'somebody else listens' in result.stderr
    place.await_log('msg="upgrade failed, going on"')
    goes_on(place, world)


# The old one dies, or sends what it should not: the new one does not begin.

@pytest.mark.parametrize('what', ['nothing', 'gone', 'few', 'many', 'end', 'kind', 'refused',
                                  'nonsense', 'pipe'])
def test_a_new_one_begins_with_all_or_not_at_all(place, what):
    os.mkdir(place.folder, 0o700)
    door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    place.sockets.append(door)
    door.bind(f'{place.folder}/backends')
    door.listen()
    door.settimeout(BOUND)
    new = place.start(BATON, 'serve', '--upgrade', stderr=subprocess.PIPE)
    old, _ = door.accept()
    assert old.recv(1000) == move(ASK, 1)
    reader, writer = os.pipe()

    def send(packet, fds=()):
        old.sendmsg([packet], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', fds))])
    item = field(1, 1)
    if what == 'gone':
        send(move(PORTION, 1, [item]), [reader])
    elif what == 'few':
        send(move(PORTION, 1, [item, item]), [reader])
    elif what == 'many':
        send(move(PORTION, 1, [item]), [reader] * 65)
    elif what == 'end':
        old.send(move(END))
    elif what == 'kind':
        send(move(PORTION, 1, [field(1, 99)]), [reader])
    elif what == 'refused':
        old.send(frames.envelope(frames.EVENT, frames.HANDOFF,
                                 field(MOVE, field(1, REFUSED) + field(3, 'not now'))))
    elif what == 'nonsense':
        old.send(b'nonsense')
    elif what == 'pipe':
        send(move(PORTION, 1, [field(1, 2)]), [reader])
        assert old.recv(1000) == move(HAVE, 1)
        old.send(move(END))
    if what in ('nothing', 'gone'):
        old.close()
    assert new.wait(BOUND) not in (0, None)
    said = new.stderr.read()
    assert said.startswith('baton: ') and said.count('\n') == 1, said
    if what == 'refused':
        assert said == 'baton: the broker says: not now\n'
    if what not in ('nothing', 'gone'):
        # It has not said that it goes on.
        last = [old.recv(1000), old.recv(1000)] if what != 'pipe' else [old.recv(1000)]
        assert move(READY) not in last
    os.close(reader)
    os.close(writer)
    assert os.listdir(place.folder) == ['backends']


LOCK, CLIENTS, BACKENDS, STORED, CHILD = 1, 2, 3, 9, 11


@pytest.mark.parametrize('what', ['good', 'many', 'twice', 'pipe', 'nameless', 'process'])
def test_a_new_one_takes_only_what_may_be(place, what):
    os.mkdir(place.folder, 0o700)
    doors = [socket.socket(socket.AF_UNIX, kind) for kind in (socket.SOCK_STREAM,
                                                              socket.SOCK_SEQPACKET)]
    place.sockets += doors
    for door, name in zip(doors, ('broker', 'backends')):
        door.bind(f'{place.folder}/{name}')
        door.listen()
        door.settimeout(BOUND)
    new = place.start(BATON, 'serve', '--upgrade', stderr=subprocess.PIPE)
    old, _ = doors[1].accept()
    place.sockets.append(old)
    old.settimeout(BOUND)
    assert old.recv(1000) == move(ASK, 1)
    pipe = os.pipe()
    names = {'many': [f'n{i}' for i in range(129)], 'twice': ['a', 'a'], 'nameless': ['']}
    things = [(field(1, LOCK), pipe[1]), (field(1, CLIENTS), doors[0].fileno()),
              (field(1, BACKENDS), doors[1].fileno())]
    things += [(field(1, STORED) + field(2, 'echo') + field(3, name) + field(11, 2**63 - 1),
                pipe[0] if what == 'pipe' else doors[0].fileno())
               for name in names.get(what, ['a'])]
    if what == 'process':
        things += [(field(1, CHILD) + field(2, 'echo') + field(7, 1) + field(9, 1), pipe[0])]
    for number, at in enumerate(range(0, len(things), 50), 1):
        items, descriptors = zip(*things[at:at + 50])
        socket.send_fds(old, [move(PORTION, number, items)], descriptors)
        assert old.recv(1000) == move(HAVE, number)
    old.send(move(END))
    for fd in pipe:
        os.close(fd)
    if what == 'good':
        assert old.recv(1000) == move(READY)
        return
    assert new.wait(BOUND) not in (0, None)
    said = new.stderr.read()
    assert ('a process that is none' if what == 'process' else 'cannot be kept') in said, said


def test_only_this_user_can_ask(place, as_other):
    if not as_other:
        pytest.skip('needs root, to be two users')
    os.chmod(place.top, 0o711)
    os.mkdir(place.folder, 0o700)
    os.chown(place.folder, as_other['user'], as_other['group'])
    broker = place.serve(**as_other)
    heir = Heir(place)
    with contextlib.suppress(BrokenPipeError):
        heir.send(ASK, 1)
    assert heir.receive() == (None, None)
    assert broker.poll() is None
