"""A persistent worker of `baton work --stream`, in one file without dependencies.

    import baton_worker

    def handle(claim):
        for payload in claim.payloads():
            ...
        return 'done'

    baton_worker.serve(handle)

What handle() returns is the result: text, or anything that JSON can hold. An exception fails the
claim, which is tried again later; baton_worker.Reject says that it can never succeed, and
baton_worker.Retry when to try again. With `threads` above 1 handle() is called for several claims
at once, as many as `--in-flight` allows. claim.more() takes what has come to its lane meanwhile.

With `baton work --conn` connections for lanes come too, to who says what to do with one:

    def talk(visit):
        visit.socket.sendall(b'hello\\n')
        ...

    baton_worker.serve(handle, talk=talk, visits=100)

talk() is called on a thread of its own for each, at most `visits` at once, and the connection ends
with it. When it should end, its socket is shut down, and visit.leaving is set.
"""
import base64
import collections
import json
import os
import queue
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

CHANNEL = 3     # the descriptor over which the runner speaks
CHUNK = 65536


class Reject(Exception):
    """It can never succeed: dead at once."""


class Retry(Exception):
    """It failed, and is tried again after `delay_ms`; 0: as the policy of its queue says."""

    def __init__(self, error, delay_ms=0):
        super().__init__(error)
        self.delay_ms = delay_ms


def payloads_of(jobs):
    """Of all of these jobs, in order."""
    for job in jobs:
        for fields in job.get('payloads', [job]):
            yield payload_of(fields)


def payload_of(fields):
    """Text as str, other bytes as bytes."""
    if 'payload_base64' in fields:
        return base64.b64decode(fields['payload_base64'])
    return fields['payload']


class Claim:
    def __init__(self, fields, say):
        self.id = fields['claim']
        self.fence = fields['fence']
        self.queue = fields['queue']
        self.lane = fields['lane']
        self.attempt = fields['attempt']
        self.jobs = fields['jobs']
        self.emitted = []
        self.cancelled = threading.Event()  # the runner wants it to stop
        self._say = say
        self._answers = queue.Queue()

    def payloads(self):
        """Of all of its jobs, in order."""
        return payloads_of(self.jobs)

    def more(self, jobs=100):
        """Takes what has come to the lane meanwhile to be joined, at most so many jobs, and
        returns their payloads, an empty list if there are none. They end with this claim."""
        self._say({'claim': self.id, 'checkpoint': jobs})
        answer = self._answers.get()
        if answer is None:
            raise ConnectionError('the runner has gone')
        self.jobs += answer['more']
        self.fence = answer.get('fence', self.fence)
        return list(payloads_of(answer['more']))

    def emit(self, queue, payload, **fields):
        """Puts follow-up work, in the moment in which this claim is completed."""
        if isinstance(payload, (bytes, bytearray)):
            fields['payload_base64'] = base64.b64encode(payload).decode()
        else:
            fields['payload'] = payload
        self.emitted.append({'queue': queue, **fields})

    def progress(self, value):
        self._say({'claim': self.id, 'progress': value})


class Visit:
    """A connection of somebody who wants a lane, for as long as the lane is the runner's."""

    def __init__(self, fields, connection):
        self.id = fields['visit']
        self.fence = fields['fence']
        self.queue = fields['queue']
        self.lane = fields['lane']
        self.client_pid = fields['client_pid']
        self.client_uid = fields['client_uid']
        self.socket = connection
        self.leaving = threading.Event()    # the runner wants it to end

    def leave(self):
        self.leaving.set()
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass        # it has ended by itself


class _Channel:
    """Lines, and what comes beside them. A line with a connection begins a message of its own, so
    that the n-th of these lines has the n-th connection; one that could not be received, for want
    of descriptors, leaves its place empty."""

    def __init__(self):
        self._socket = socket.socket(fileno=CHANNEL)
        self._socket.set_inheritable(False)     # what handle() starts has nothing to say here
        self._lock = threading.Lock()
        self._connections = collections.deque()

    def say(self, fields):
        line = json.dumps(fields, ensure_ascii=False, allow_nan=False).encode() + b'\n'
        with self._lock:
            self._socket.sendall(line)

    def lines(self):
        rest = b''
        while True:
            data, fds, flags, _ = socket.recv_fds(self._socket, CHUNK, 1, socket.MSG_CMSG_CLOEXEC)
            self._connections.extend(socket.socket(fileno=fd) for fd in fds)
            if flags & socket.MSG_CTRUNC:
                self._connections.append(None)
            if not data:
                return
            *lines, rest = (rest + data).split(b'\n')
            yield from map(json.loads, lines)

    def connection(self):
        """Of the visit whose line was the last; None: it was lost."""
        return self._connections.popleft()


def _answer(claim, handle):
    try:
        return {'claim': claim.id, 'ok': True, 'result': handle(claim), 'emit': claim.emitted}
    except Reject as error:
        return {'claim': claim.id, 'ok': False, 'error': str(error), 'retry': False}
    except Retry as error:
        return {'claim': claim.id, 'ok': False, 'error': str(error), 'delay_ms': error.delay_ms}
    except Exception as error:  # pylint: disable=broad-except
        return {'claim': claim.id, 'ok': False, 'error': f'{type(error).__name__}: {error}'}


class _Server:
    def __init__(self, handle, talk):
        self._handle, self._talk = handle, talk
        self._channel = _Channel()
        self._claims, self._visits = {}, {}

    def _work(self, claim):
        try:
            answer = _answer(claim, self._handle)
            del self._claims[claim.id]
            self._channel.say(answer)
        except (TypeError, ValueError) as error:    # no JSON can be made of the result
            self._channel.say({'claim': claim.id, 'ok': False,
                               'error': f'{type(error).__name__}: {error}'})

    def _visit(self, visit):
        try:
            with visit.socket:
                self._talk(visit)
        except Exception as error:  # pylint: disable=broad-except
            if not visit.leaving.is_set():
                print(f'visit {visit.id}: {type(error).__name__}: {error}', flush=True)
        del self._visits[visit.id]
        self._channel.say({'visit': visit.id, 'done': True})

    @staticmethod
    def _or_end(work, subject):
        try:
            work(subject)
        except OSError as error:
            print(f'the runner has gone: {error}', file=sys.stderr, flush=True)
            os._exit(1)     # pylint: disable=protected-access

    def _meet(self, fields):
        connection = self._channel.connection()
        if connection is None:
            self._channel.say({'visit': fields['visit'], 'done': True})
            return
        visit = Visit(fields, connection)
        self._visits[visit.id] = visit
        threading.Thread(target=self._or_end, args=(self._visit, visit), daemon=True).start()

    def _take(self, pool, fields):
        if 'cancel' in fields:
            claim = self._claims.get(fields['cancel'])
            if claim:
                claim.cancelled.set()
        elif 'leave' in fields:
            visit = self._visits.get(fields['leave'])
            if visit:
                visit.leave()
        elif 'visit' in fields:
            self._meet(fields)
        elif 'more' in fields:
            claim = self._claims[fields['claim']]
            claim._answers.put(fields)      # pylint: disable=protected-access
        else:
            claim = Claim(fields, self._channel.say)
            self._claims[claim.id] = claim
            pool.submit(self._or_end, self._work, claim)

    def run(self, threads, visits):
        if 'BATON_VISITS' in os.environ:
            self._channel.say({'visits': visits if self._talk else 0})
        with ThreadPoolExecutor(threads) as pool:
            for fields in self._channel.lines():
                self._take(pool, fields)
            for claim in list(self._claims.values()):
                claim._answers.put(None)    # pylint: disable=protected-access


def serve(handle, threads=1, talk=None, visits=100):
    """Until the runner hangs up."""
    _Server(handle, talk).run(threads, visits)


def _example(claim):
    """Counts the words of each payload, and has the sum kept."""
    count = sum(len(payload.split()) for payload in claim.payloads())
    print(f'{count} words in {claim.queue}', flush=True)    # goes to the runner's log
    if claim.queue == 'words':
        claim.emit('counts', {'words': count}, lane=claim.lane)
    return {'words': count}


if __name__ == '__main__':
    serve(_example)
