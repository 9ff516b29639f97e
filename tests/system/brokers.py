"""A broker with its clients and backends, for tests."""
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import pytest

from frames import BOUND, Backend

BATON, KEEPER = os.environ['BATON_BIN'], os.environ['BATON_KEEPER']
CALLER = os.environ['BATON_CALLER']


class Place:
    """A broker, its clients and backends, in a folder with a short name."""

    def __init__(self):
        self.top = tempfile.mkdtemp(prefix='baton-')
        self.folder = f'{self.top}/b'
        self.env = {k: v for k, v in os.environ.items() if k != 'XDG_RUNTIME_DIR'}
        self.env['BATON_BROKER'] = self.folder
        self.started = []
        self.sockets = []

    def start(self, *command, **options):
        options = {'stdin': subprocess.DEVNULL, 'stdout': subprocess.PIPE, 'text': True,
                   'env': self.env, **options}
        self.started.append(subprocess.Popen(command, **options))
        return self.started[-1]

    def serve(self, *arguments, log='log', **options):
        """A broker that is ready."""
        # Not a pipe, which would be full some day, and stop who writes to it.
        with open(f'{self.top}/{log}', 'w', encoding='utf-8') as file:
            broker = self.start(BATON, 'serve', *arguments, stderr=file, **options)
        end = time.monotonic() + BOUND
        while 'msg=serving' not in self.log(log):
            assert broker.poll() is None and time.monotonic() < end, self.log(log)
        return broker

    def serve_by_grants(self, *arguments, **options):
        """A broker that has no slates."""
        env = {**self.env, 'LD_PRELOAD': os.environ['BATON_NO_SLATE']}
        return self.serve(*arguments, env=env, **options)

    def log(self, name='log'):
        with open(f'{self.top}/{name}', encoding='utf-8') as log:
            return log.read()

    def keeper(self, service='echo', *arguments):
        keeper = self.start(KEEPER, service, *arguments)
        first = keeper.stdout.readline().split()
        assert first[0] == 'ready', first
        keeper.endpoint = first[1]
        return keeper

    def connect(self, *arguments, text='hi\n', **options):
        """baton connect with that input, to its end."""
        return subprocess.run([BATON, 'connect', *arguments], input=text, text=True, check=False,
                              timeout=BOUND, env=self.env, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, **options)

    def way(self, service='echo', *arguments):
        """How baton connect came to a keeper that echoed what it was sent."""
        result = self.connect(service, '-v', *arguments)
        assert result.returncode == 0, result
        pid, echo = result.stdout.splitlines()
        assert echo == 'hi' and int(pid) > 0
        return 'handoff' if 'connected by handoff' in result.stderr else 'reconnecting'

    def call(self, service, first, *arguments):
        """A client of the library that sends a request with its question."""
        return self.start(CALLER, service, first, *arguments)

    def called(self, service, first, *arguments):
        """How such a client came to its connection, and what came by it."""
        out, _ = self.call(service, first, *arguments).communicate(timeout=BOUND)
        way, _, rest = out.partition('\n')
        return way, rest

    def client(self, first=b'', timeout=BOUND):
        """A connection to the broker of which nothing is known."""
        connection = socket.socket(socket.AF_UNIX)
        self.sockets.append(connection)
        connection.settimeout(timeout)
        connection.connect(f'{self.folder}/broker')
        if first:
            connection.sendall(first)
        return connection

    def backend(self, service='raw', **options):
        backend = Backend(self.folder, service, **options)
        self.sockets.append(backend.channel)
        return backend

    def counts(self):
        result = subprocess.run([BATON, 'handoff', '--json'], env=self.env, check=True,
                                timeout=BOUND, stdout=subprocess.PIPE)
        return json.loads(result.stdout)

    def count(self, name):
        return self.counts()[name]

    def await_count(self, name, value):
        """Until a count is as high as it will certainly be."""
        end = time.monotonic() + BOUND
        while self.count(name) < value:
            assert time.monotonic() < end, self.counts()

    def await_no_more(self, name, value):
        """Until a count is as low as it will certainly be."""
        end = time.monotonic() + BOUND
        while self.count(name) > value:
            assert time.monotonic() < end, self.counts()

    def services(self):
        result = subprocess.run([BATON, 'services', '--json'], env=self.env, check=True,
                                timeout=BOUND, stdout=subprocess.PIPE)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def define(self, name, *lines):
        """A file for a service that the broker starts itself."""
        os.makedirs(f'{self.top}/services', 0o755, exist_ok=True)
        path = f'{self.top}/services/{name}.conf'
        with open(path, 'w', encoding='utf-8') as file:
            file.write(''.join(f'{line}\n' for line in lines))
        return path

    def serve_defined(self, *arguments, **options):
        return self.serve('--services', f'{self.top}/services', '--park', '60s', *arguments,
                          **options)

    def logged_pids(self, message):
        """Of which processes the log says that."""
        return [int(word[4:]) for line in self.log().splitlines() if f'msg="{message}"' in line
                for word in line.split() if word.startswith('pid=')]

    def await_log(self, text, number=1):
        """Until the log of the broker has it."""
        end = time.monotonic() + BOUND
        while self.log().count(text) < number:
            assert time.monotonic() < end, self.log()

    def strays(self):
        """The processes that a broker of this place has started, whoever their parent is now."""
        mark = f'BATON_BROKER={self.folder}'.encode()
        for name in filter(str.isdigit, os.listdir('/proc')):
            with contextlib.suppress(OSError):
                with open(f'/proc/{name}/environ', 'rb') as file:
                    if mark in file.read().split(b'\0') and int(name) != os.getpid():
                        yield int(name)

    def end(self):
        for connection in self.sockets:
            connection.close()
        for process in self.started:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream:
                    stream.close()
        for pid in self.strays():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.top, ignore_errors=True)


@pytest.fixture(name='place')
def place_fixture():
    place = Place()
    yield place
    place.end()


def fds(process):
    return len(os.listdir(f'/proc/{process.pid}/fd'))


def await_fds(process, number):
    end = time.monotonic() + BOUND
    while fds(process) > number:
        assert time.monotonic() < end, os.listdir(f'/proc/{process.pid}/fd')
