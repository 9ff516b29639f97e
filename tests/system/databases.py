"""PostgreSQL servers of tests, which those stop, start and freeze, and a proxy before one."""
import contextlib
import ctypes
import glob
import os
import pathlib
import pwd
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time

PATIENCE = 120      # seconds that something may take that is certain to happen
PR_SET_PDEATHSIG = 1
IN_TRANSACTION = b'Z\0\0\0\5T'     # that the server is ready, as it tells its client
LIBC = ctypes.CDLL(None)


def tools():
    """Where the newest server is that is installed; None: there is none."""
    found = sorted(glob.glob('/usr/lib/postgresql/*/bin/initdb'))
    return pathlib.Path(found[-1]).parent if found else None


class Database:
    """A server on a socket in a folder of its own. It runs as a user who may do nothing, and ends
    with the test, however that ends."""

    def __init__(self, clock=None, place=None):
        """clock: what makes one of its own, in its folder. place: what is done to it first."""
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='baton-pg-'))
        if place:
            place(self.folder)
        self.clock = clock(self.folder) if clock else None
        self.server = None
        self.names = 0      # of databases in it
        self.who = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam('nobody')
            self.who = {'user': nobody.pw_uid, 'group': nobody.pw_gid, 'extra_groups': []}
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
        self.make_files()
        self.start()

    def make_files(self):
        """Copies those that another test of the build has made (tests/support/cluster.c), which is
        faster."""
        model = pathlib.Path(os.environ.get('BATON_TEST_CLUSTERS', '/nowhere'),
                             f'cluster-{tools().parent.name}')
        if model.exists():
            subprocess.run(['cp', '-a', model, self.folder / 'data'], check=True, timeout=PATIENCE)
            return
        self.run('initdb', '-D', 'data', '-A', 'trust', '-E', 'UTF8', '--locale=C', '-U', 'baton',
                 '--no-sync', '--no-instructions')

    def run(self, tool, *arguments):
        subprocess.run([tools() / tool, *arguments], cwd=self.folder, check=True, timeout=PATIENCE,
                       stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, **self.who)

    def renew(self):
        """From now on another database in it is the one, which is empty."""
        self.names += 1
        self.run('createdb', '-h', self.folder, '-U', 'baton', f't{self.names}')

    def info(self, host=None):
        return f'postgres:{host or f"host={self.folder}"} dbname=t{self.names} user=baton'

    def options(self):
        """What this kind of server is told besides."""
        return []

    def is_up(self):
        return subprocess.run([tools() / 'pg_isready', '-q', '-h', self.folder], check=False,
                              timeout=PATIENCE).returncode == 0

    def start(self):
        with open(self.folder / 'log', 'ab') as log:
            self.server = subprocess.Popen(
                [tools() / 'postgres', '-D', 'data', '-c', 'listen_addresses=', '-c',
                 f'unix_socket_directories={self.folder}', '-c', 'fsync=off', '-c',
                 'shared_buffers=32MB', '-c', 'max_connections=60', *self.options()],
                cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, **(self.clock.env if self.clock else {})},
                preexec_fn=lambda: LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGQUIT), **self.who)
        deadline = time.monotonic() + PATIENCE
        while not self.is_up():
            assert time.monotonic() < deadline, (self.folder / 'log').read_text()

    def stop(self):
        """As if the machine had lost its power; what `pg_ctl stop -m immediate` does."""
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self.server.send_signal(signal.SIGQUIT)
        self.server.wait(PATIENCE)

    def processes(self):
        """The server and all that it has started."""
        listed = subprocess.run(['ps', '-o', 'pid=', '--ppid', str(self.server.pid)], check=False,
                                stdout=subprocess.PIPE, timeout=PATIENCE)
        return [self.server.pid, *map(int, listed.stdout.split())]

    def signal(self, number):
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def done(self):
        if self.server:
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


class Proxy:
    """Stands between its users and a database. `way` is what it does with what they send and get:
    'pass', 'hold' (until it passes again), 'swallow', 'reset', or 'strand': to hold what tells a
    client that it is in a transaction, so that it stays there."""

    def __init__(self, database):
        self.path = str(database.folder / '.s.PGSQL.5432')
        self.changed = threading.Condition()
        self.way = 'pass'
        self.stranded = threading.Event()   # somebody is
        self.pairs = set()
        self.spoilt = set()
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.host = f'host=127.0.0.1 port={self.listener.getsockname()[1]} sslmode=disable'
        threading.Thread(target=self.listen, daemon=True).start()

    def turn(self, way):
        """From now on. Connections that have lost something are of no use any more, and reset."""
        with self.changed:
            self.way = way
            bad = self.pairs if way == 'reset' else self.spoilt
            for pair in list(bad):
                self.end(pair)
            self.changed.notify_all()

    def end(self, pair):
        self.pairs.discard(pair)
        self.spoilt.discard(pair)
        for side in pair:
            with contextlib.suppress(OSError):
                side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)

    def listen(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(self.path)
            except OSError:
                client.close()
                server.close()
                continue
            pair = (client, server)
            with self.changed:
                self.pairs.add(pair)
                if self.way == 'reset':
                    self.end(pair)
            for one, other in (pair, pair[::-1]):
                threading.Thread(target=self.carry, args=(pair, one, other), daemon=True).start()

    def strands(self, data):
        strands = self.way == 'strand' and data.endswith(IN_TRANSACTION)
        if strands:
            self.stranded.set()
        return strands

    def carry(self, pair, one, other):
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                with self.changed:
                    while self.way == 'hold' or self.strands(data):
                        self.changed.wait()
                    if self.way == 'swallow':
                        self.spoilt.add(pair)
                        continue
                other.sendall(data)
        with self.changed:
            # A way that swallows swallows the end, too.
            while self.way in ('hold', 'swallow') and pair in self.pairs:
                self.changed.wait()
            self.end(pair)
        one.close()

    def done(self):
        self.turn('reset')
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
