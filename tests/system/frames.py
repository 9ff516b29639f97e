"""The protocol of handoffs once more, written after its tables alone: for clients and backends that
do what no library would."""
import array
import fcntl
import mmap
import os
import socket
import struct
import termios

HELLO, HANDOFF, ADMIN, PROBE = 0x0000, 0xD0FF, 0xAD01, 0xB232
REQUEST, RESPONSE, EVENT = 0, 1, 2
ACCEPTS, CANNOT_RECONNECT, WANTS_WELCOME = 1, 2, 4
TAKES, TAKES_BY_SLATE = 1, 128
BOUND = 60          # seconds that something may take that is certain to happen


def varint(number):
    out = b''
    while True:
        low, number = number & 127, number >> 7
        out += bytes([low | (128 if number else 0)])
        if not number:
            return out


def field(number, value):
    """One field; numbers that are 0 and bytes that are empty are left out."""
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value if value else b''
    return varint(number << 3) + varint(value) if value else b''


def fields(data):
    """What a message has: a number or bytes for each field, the last one if there are several."""
    found, at = {}, 0

    def take():
        nonlocal at
        number = shift = 0
        while True:
            byte = data[at]
            at += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number
    while at < len(data):
        key = take()
        if key & 7 == 0:
            found[key >> 3] = take()
        else:
            assert key & 7 == 2, data
            size = take()
            found[key >> 3] = data[at:at + size]
            at += size
    return found


def envelope(kind, protocol, payload, request=0, deadline=0, parent='', state=''):
    return (field(1, 1) + field(2, kind) + field(3, protocol) + field(4, payload)
            + field(5, request) + field(7, deadline) + field(8, parent) + field(9, state))


def frame(body, version=1):
    return struct.pack('<BI', version, len(body)) + body


def hello(service, capabilities=ACCEPTS, low=1, high=1, auth='', **around):
    body = (field(1, low) + field(2, high) + field(3, service) + field(6, capabilities)
            + field(7, auth))
    return frame(envelope(REQUEST, HELLO, body, **around))


def read_exactly(connection, size):
    data = b''
    while len(data) < size:
        try:
            part = connection.recv(size - len(data))
        except ConnectionResetError:
            part = b''
        if not part:
            return None
        data += part
    return data


def read_frame(connection):
    """The envelope that comes next; None at the end of the connection."""
    head = read_exactly(connection, 5)
    if head is None:
        return None
    version, size = struct.unpack('<BI', head)
    assert version == 1
    return fields(read_exactly(connection, size))


def read_reply(connection):
    """('negotiated' or 'refused', its fields); None at the end of the connection."""
    answer = read_frame(connection)
    if answer is None:
        return None
    assert answer.get(2, 0) == RESPONSE and answer.get(3, 0) == HELLO
    (kind, body), = fields(answer[4]).items()
    return {1: 'negotiated', 2: 'refused'}[kind], fields(body)


def is_ended(connection):
    """Whether the connection ends here, without another byte."""
    return read_exactly(connection, 1) is None


class Slate:
    """The page that a broker shares with a backend: a word for each offer."""
    HEAD, WORDS = 0x736c617465000001, 512
    FREE, OFFERED, TAKEN, REVOKED = range(4)

    def __init__(self, fd):
        self.fd = fd
        self.page = mmap.mmap(fd, 8 * self.WORDS)
        assert self.get(0) == self.HEAD

    @classmethod
    def new(cls, seals=fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW):
        fd = os.memfd_create('slate', os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.write(fd, struct.pack('<Q', cls.HEAD).ljust(8 * cls.WORDS, b'\0'))
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
        return cls(fd)

    def get(self, word):
        return struct.unpack_from('<Q', self.page, 8 * word)[0]

    def set(self, word, front, state):
        struct.pack_into('<Q', self.page, 8 * word, front << 2 | state)

    def state(self, word):
        return self.get(word) & 3

    def is_offered(self, word, connection):
        return self.get(word) == connection << 2 | self.OFFERED

    def close(self):
        self.page.close()
        os.close(self.fd)


class Broker:
    """A broker that does exactly what it is told to, for one backend."""

    def __init__(self, folder):
        self.door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.door.settimeout(BOUND)
        self.door.bind(f'{folder}/backends')
        self.door.listen(8)
        self.channel = None

    def register(self, page=None):
        """Takes the backend that comes, with that descriptor as its slate."""
        self.channel, _ = self.door.accept()
        self.channel.settimeout(BOUND)
        assert 4 in fields(fields(self.channel.recv(1 << 17))[4])
        self.send(RESPONSE, field(5, field(1, 1) + field(3, 1)), fds=[] if page is None else [page])

    def send(self, kind, payload, request=0, fds=()):
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', fds))] if fds else []
        self.channel.sendmsg([envelope(kind, HANDOFF, payload, request)], rights)

    def offer(self, number, connection, deadline, word=0):
        """Offers it; the number is its token too."""
        greeting = field(1, 1) + field(2, 1) + field(3, 'echo') + field(6, ACCEPTS)
        body = (field(2, bytes([number] * 16)) + field(3, 'echo') + field(4, number)
                + field(11, greeting) + field(12, field(1, 1)) + field(13, deadline)
                + field(14, word))
        self.send(REQUEST, field(1, body), number, [connection.fileno()])

    def acked(self):
        """The number of the next that is acknowledged."""
        ack = fields(fields(fields(self.channel.recv(1 << 17))[4])[2])
        assert ack[2] == 1 and ack[1] == bytes([ack[4]] * 16)
        return ack[4]

    def grant(self, number):
        self.send(EVENT, field(3, field(1, bytes([number] * 16)) + field(2, number)), number)

    def unread(self):
        """How many bytes the backend has not read."""
        room = array.array('i', [0])
        fcntl.ioctl(self.channel, termios.TIOCOUTQ, room)
        return room[0]

    def close(self):
        self.door.close()
        if self.channel:
            self.channel.close()


class Backend:
    """A backend that does exactly what it is told to."""

    def __init__(self, folder, service, generation=1, endpoint='', capabilities=1):
        self.channel = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.channel.settimeout(BOUND)
        self.channel.connect(f'{folder}/backends')
        body = (field(1, service) + field(2, generation) + field(3, endpoint)
                + field(5, capabilities))
        self.send(REQUEST, field(4, body))
        _, answer = self.receive()
        self.registered = answer
        self.slate = Slate(self.fd) if answer and self.fd is not None else None

    def send(self, kind, payload, request=0, fds=()):
        packet = envelope(kind, HANDOFF, payload, request)
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', fds))] if fds else []
        self.channel.sendmsg([packet], rights)

    def receive(self):
        """The number and the fields of the next message; (None, None) when the broker has hung
        up. The descriptor of an offer is in `fd`, the envelope in `around`."""
        try:
            data, fds, _, _ = socket.recv_fds(self.channel, 1 << 17, 8)
        except ConnectionResetError:
            return None, None
        if not data:
            return None, None
        self.fd = fds[0] if fds else None
        message = self.around = fields(data)
        (kind, body), = fields(message[4]).items()
        return kind, fields(body)

    def offer(self):
        kind, offer = self.receive()
        assert kind == 1 and self.fd is not None
        offer['connection'] = socket.socket(fileno=self.fd)
        offer['connection'].settimeout(BOUND)
        return offer

    def ack(self, offer, accepted=1, token=None, correlation=None, request=None):
        correlation = offer[4] if correlation is None else correlation
        body = (field(1, offer[2] if token is None else token) + field(2, accepted)
                + field(4, correlation))
        self.send(RESPONSE, field(2, body), correlation if request is None else request)

    def take(self, offer, at=1):
        """Takes it by its word, as of that moment."""
        assert self.slate.is_offered(offer[14], offer[4])
        self.slate.set(offer[14], at, Slate.TAKEN)

    def granted(self, offer):
        """Whether the next message is the Grant of that offer."""
        kind, grant = self.receive()
        return kind == 3 and (grant[1], grant[2]) == (offer[2], offer[4])

    def close(self):
        if self.slate:
            self.slate.close()
        self.channel.close()
