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
"""
import base64
import json
import os
import queue
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

CHANNEL = 3     # the descriptor over which the runner speaks


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


def _answer(claim, handle):
    try:
        return {'claim': claim.id, 'ok': True, 'result': handle(claim), 'emit': claim.emitted}
    except Reject as error:
        return {'claim': claim.id, 'ok': False, 'error': str(error), 'retry': False}
    except Retry as error:
        return {'claim': claim.id, 'ok': False, 'error': str(error), 'delay_ms': error.delay_ms}
    except Exception as error:  # pylint: disable=broad-except
        return {'claim': claim.id, 'ok': False, 'error': f'{type(error).__name__}: {error}'}


def serve(handle, threads=1):
    """Until the runner hangs up."""
    channel = socket.socket(fileno=CHANNEL)
    channel.set_inheritable(False)      # what handle() starts has nothing to say here
    lock = threading.Lock()
    claims = {}

    def say(fields):
        line = json.dumps(fields, ensure_ascii=False, allow_nan=False).encode() + b'\n'
        with lock:
            channel.sendall(line)

    def work(claim):
        try:
            try:
                answer = _answer(claim, handle)
                del claims[claim.id]
                say(answer)
            except (TypeError, ValueError) as error:    # no JSON can be made of the result
                say({'claim': claim.id, 'ok': False, 'error': f'{type(error).__name__}: {error}'})
        except OSError as error:
            print(f'the runner has gone: {error}', file=sys.stderr, flush=True)
            os._exit(1)     # pylint: disable=protected-access

    with ThreadPoolExecutor(threads) as pool:
        for line in channel.makefile('rb'):
            fields = json.loads(line)
            if 'cancel' in fields:
                claim = claims.get(fields['cancel'])
                if claim:
                    claim.cancelled.set()
                continue
            if 'more' in fields:
                claims[fields['claim']]._answers.put(fields)    # pylint: disable=protected-access
                continue
            claim = Claim(fields, say)
            claims[claim.id] = claim
            pool.submit(work, claim)
        for claim in list(claims.values()):
            claim._answers.put(None)    # pylint: disable=protected-access


def _example(claim):
    """Counts the words of each payload, and has the sum kept."""
    count = sum(len(payload.split()) for payload in claim.payloads())
    print(f'{count} words in {claim.queue}', flush=True)    # goes to the runner's log
    if claim.queue == 'words':
        claim.emit('counts', {'words': count}, lane=claim.lane)
    return {'words': count}


if __name__ == '__main__':
    serve(_example)
