"""What the tests of the real program share."""
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios

import pytest

import databases
import locks

PATIENCE = 120      # seconds that something may take that is certain to happen


@pytest.fixture
def baton():
    """Runs the program to its end and gives what came of it."""
    def run(*arguments, env=None, **options):
        given = {k: v for k, v in os.environ.items() if k != 'NO_COLOR'}
        options = {'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE, **options}
        return subprocess.run([os.environ['BATON_BIN'], *arguments], text=True, check=False,
                              timeout=120, env={**given, **(env or {})}, **options)
    return run


class Shop:
    """The program on a store of its own."""

    def __init__(self, folder, store=None):
        self.folder = folder
        self.path = str(folder / 'store.db')
        self.store = store or f'sqlite:{self.path}'
        unwanted = ('NO_COLOR', 'BATON_CLAIM', 'BATON_TOKEN')
        self.env = {k: v for k, v in os.environ.items() if k not in unwanted}
        self.env.update(BATON_STORE=self.store, BATON_FLEET=str(folder / 'fleet'), TZ='UTC')
        self.started = []

    def run(self, *arguments, env=None, **options):
        """To its end; what it wrote is bytes."""
        if 'input' not in options:
            options.setdefault('stdin', subprocess.DEVNULL)
        options = {'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE, **options}
        return subprocess.run([os.environ['BATON_BIN'], *arguments], check=False, timeout=PATIENCE,
                              env={**self.env, **(env or {})}, **options)

    def start(self, *arguments, env=None, **options):
        """Beside the test, which ends it."""
        options = {'stdin': subprocess.DEVNULL, 'stdout': subprocess.PIPE,
                   'stderr': subprocess.PIPE, **options}
        self.started.append(subprocess.Popen([os.environ['BATON_BIN'], *arguments],
                                             env={**self.env, **(env or {})}, **options))
        return self.started[-1]

    def at_terminal(self, *arguments, columns=80, term='xterm', **options):
        """To its end, with a terminal of that kind as its standard error; and what that shows."""
        mine, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))
        result = self.run(*arguments, stderr=its, env={'TERM': term}, **options)
        os.close(its)
        shown = b''
        while True:
            try:
                shown += os.read(mine, 65536)
            except OSError:     # nobody has the other end any more
                os.close(mine)
                return result, shown

    def ok(self, *arguments, **options):
        """What it wrote, as it should."""
        result = self.run(*arguments, **options)
        assert (result.returncode, result.stderr) == (0, b''), result
        return result.stdout.decode()

    def objects(self, *arguments, **options):
        return [json.loads(line) for line in self.ok(*arguments, '--json', **options).splitlines()]

    def object(self, *arguments, **options):
        found, = self.objects(*arguments, **options)
        return found

    def refused(self, status, *arguments, **options):
        """The one line of a command that failed, and wrote nothing else."""
        result = self.run(*arguments, **options)
        assert (result.returncode, result.stdout) == (status, b''), result
        line = re.fullmatch(r'baton: ([^\n]+)\n', result.stderr.decode())
        assert line, result.stderr
        return line.group(1)

    def put(self, *arguments, **options):
        return self.ok('put', *arguments, **options).strip()

    def claim(self, queue, *arguments):
        """A claim, and what the commands that end it need."""
        claim = self.object('claim', queue, *arguments)
        claim['env'] = {'BATON_CLAIM': claim['claim'], 'BATON_TOKEN': claim['token']}
        return claim

    def states(self, *arguments):
        result = self.run('ls', *arguments, '--json')
        if b'there is no queue' in result.stderr:       # nothing was ever put there
            return {}
        assert (result.returncode, result.stderr) == (0, b''), result
        return {job['id']: job['state'] for job in map(json.loads, result.stdout.splitlines())}

    def end(self):
        for process in self.started:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream:
                    stream.close()


@pytest.fixture
def shop(tmp_path):
    tmp_path.chmod(0o700)
    shop = Shop(tmp_path)
    yield shop
    shop.end()


@pytest.fixture(scope='session')
def server():
    if not databases.tools():
        pytest.skip('no PostgreSQL server is installed')
    database = databases.Database()
    yield database
    database.done()


@pytest.fixture
def database(server):
    """A PostgreSQL server with an empty database, which the test may stop, and starts again."""
    server.renew()
    return server


@pytest.fixture
def far_shop(tmp_path, database):
    """One whose store is in that server."""
    tmp_path.chmod(0o700)
    shop = Shop(tmp_path, database.info())
    yield shop
    shop.end()


@pytest.fixture
def as_other():
    """Options for a process of a user who may do nothing special."""
    if os.geteuid() != 0:
        return {}
    return {'user': 65534, 'group': 65534, 'extra_groups': []}


@pytest.fixture
def lock():
    """Starts `baton lock`; what still runs at the end of the test is killed."""
    started = []

    def start(*arguments, ignored=None, **options):
        options = {'stdin': subprocess.PIPE, 'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE,
                   'preexec_fn': lambda: locks.hear_signals(but=ignored), **options}
        process = subprocess.Popen([locks.BATON, 'lock', *map(str, arguments)], text=True,
                                   **options)
        started.append(process)
        return process
    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=locks.BOUND)
