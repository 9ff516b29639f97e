"""What a service manager sees of the program: sockets that it has opened, readiness, a watchdog,
and the units as they are installed. A manager of the test's own stands in for systemd."""
import contextlib
import os
import pathlib
import queue
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

import pytest

import frames

BATON = os.environ['BATON_BIN']
UNITS = pathlib.Path(os.environ['BATON_UNITS'])
PATIENCE = 120
USAGE, TEMPFAIL = 64, 75
KEEPER = os.environ['BATON_KEEPER']

pytestmark = pytest.mark.skipif(os.environ['BATON_SYSTEMD'] != '1',
                                reason='built without libsystemd')


# Puts descriptors where systemd puts them, says whose they are, and becomes the command.
START = """import os, sys
given = [os.dup(int(fd)) for fd in sys.argv[1].split(',') if fd]
high = [os.dup2(fd, 100 + i) for i, fd in enumerate(given)]
for i, fd in enumerate(high):
    os.dup2(fd, 3 + i)
os.environ['LISTEN_PID'] = str(os.getpid())
os.execv(sys.argv[2], sys.argv[2:])
"""


class Manager:
    """Starts the program as systemd does, and hears what it says."""

    def __init__(self, top):
        self.top = top
        self.folder = f'{top}/b'
        os.mkdir(self.folder, 0o700)
        self.env = {k: v for k, v in os.environ.items() if k != 'XDG_RUNTIME_DIR'}
        self.env.update(BATON_BROKER=self.folder)
        self.ear = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.ear.bind(f'{top}/notify')
        self.words = queue.Queue()
        self.kept = {}
        # Who is not heard has to wait, so it always is.
        self.listener = threading.Thread(target=self.listen_on)
        self.listener.start()
        self.sockets = []
        self.started = []
        self.backends = []
        self.heirs = []     # who has taken the place of another one, and is nobody's child here

    def listen(self, name, kind):
        listener = socket.socket(socket.AF_UNIX, kind)
        listener.bind(f'{self.folder}/{name}')
        listener.listen(64)
        self.sockets.append(listener)
        return listener

    def start(self, *arguments, passed=(), **env):
        """With those sockets as descriptors 3 and so on, and those that are kept behind them."""
        given = {**self.env, 'NOTIFY_SOCKET': f'{self.top}/notify', **env}
        fds = [listener.fileno() for listener in passed]
        names = ['baton-serve.socket'] * len(fds)
        for name, kept in self.kept.items():
            names += [name] * len(kept)
            fds += kept
        if fds:
            given.update(LISTEN_FDS=str(len(fds)), LISTEN_FDNAMES=':'.join(names))
        process = subprocess.Popen(
            [sys.executable, '-c', START, ','.join(map(str, fds)), BATON, *arguments], env=given,
            pass_fds=fds, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.started.append(process)
        return process

    def listen_on(self):
        while True:
            word, fds, _, _ = socket.recv_fds(self.ear, 4096, 8)
            word = word.decode()
            if word == 'END':
                return
            fields = dict(line.split('=', 1) for line in word.splitlines())
            if 'MAINPID' in fields:
                self.heirs.append(int(fields['MAINPID']))
            if 'FDSTORE' in fields:
                # Without FDPOLL systemd throws away what has an end, as connections do.
                assert fields['FDPOLL'] == '0' and len(fds) == 1
                self.keep(fields['FDNAME'], fds[0])
            for fd in self.kept.pop(fields['FDNAME'], []) if 'FDSTOREREMOVE' in fields else []:
                os.close(fd)
            self.words.put(word)

    def keep(self, name, fd):
        """As systemd does: one that is there already is not kept twice."""
        same = [os.fstat(kept).st_ino for kept in self.kept.get(name, [])]
        if os.fstat(fd).st_ino in same:
            os.close(fd)
        else:
            self.kept.setdefault(name, []).append(fd)

    def upgrade(self, *arguments):
        """As systemd does to reload; what it leaves behind goes on."""
        return subprocess.run([BATON, 'serve', '--upgrade', '--detach', *arguments], env=self.env,
                              check=False, timeout=PATIENCE, stdin=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL).returncode

    def hear(self):
        return self.words.get(timeout=PATIENCE)

    def hear_other(self):
        """The next word that is not about being alive."""
        while (word := self.hear()) == 'WATCHDOG=1':
            pass
        return word

    def run(self, *arguments, **options):
        return subprocess.run([BATON, *arguments], env=self.env, check=False, text=True,
                              timeout=PATIENCE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              **options)

    @staticmethod
    def await_end(pid):
        """Of one that is nobody's child here."""
        with contextlib.suppress(ProcessLookupError):
            pidfd = os.pidfd_open(pid)
            assert select.select([pidfd], [], [], PATIENCE)[0]
            os.close(pidfd)

    def end(self):
        for process in self.started:
            process.kill()
            process.wait()
            process.stderr.close()
        for process in self.backends:
            process.kill()
            process.wait()
            process.stdout.close()
        for pid in self.heirs:
            with contextlib.suppress(OSError):
                if os.path.samefile(f'/proc/{pid}/exe', BATON):
                    os.kill(pid, signal.SIGKILL)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as last:
            last.sendto(b'END', f'{self.top}/notify')
        self.listener.join()
        for opened in [*self.sockets, self.ear]:
            opened.close()
        for fd in sum(self.kept.values(), []):
            os.close(fd)


@pytest.fixture
def manager():
    top = tempfile.mkdtemp(prefix='baton-')
    manager = Manager(top)
    yield manager
    manager.end()
    shutil.rmtree(top, ignore_errors=True)


def stop(process):
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 0


def test_a_broker_says_that_it_is_ready_lives_and_ends(manager):
    broker = manager.start('serve', WATCHDOG_USEC='20000')
    heard = [manager.hear() for _ in range(5)]
    assert heard == ['READY=1'] + ['WATCHDOG=1'] * 4
    assert manager.run('services').returncode == 0
    stop(broker)
    assert manager.hear_other() == 'STOPPING=1'


def test_a_broker_that_nobody_watches_over_says_only_how_it_stands(manager):
    broker = manager.start('serve')
    assert manager.hear() == 'READY=1'
    stop(broker)
    assert manager.hear() == 'STOPPING=1'


def test_a_broker_takes_the_sockets_it_is_given_and_leaves_them(manager):
    clients = manager.listen('broker', socket.SOCK_STREAM)
    backends = manager.listen('backends', socket.SOCK_SEQPACKET)
    # Who comes before there is a broker waits for it.
    early = socket.socket(socket.AF_UNIX)
    manager.sockets.append(early)
    early.settimeout(PATIENCE)
    early.connect(f'{manager.folder}/broker')
    early.sendall(frames.hello('nobody'))
    for passed in ((clients, backends), (backends, clients)):
        broker = manager.start('serve', passed=passed)
        assert manager.hear() == 'READY=1'
        if passed[0] is clients:
            assert frames.read_reply(early)[0] == 'refused'
        backend = subprocess.Popen([BATON, 'backend', 'date', '--', 'echo', 'now'], text=True,
                                   env=manager.env, stderr=subprocess.PIPE)
        assert 'msg=backend' in backend.stderr.readline()
        assert manager.run('connect', 'date', input='').stdout == 'now\n'
        backend.terminate()
        assert backend.wait(PATIENCE) == 0
        backend.stderr.close()
        stop(broker)
        assert manager.hear() == 'STOPPING=1'
        assert sorted(os.listdir(manager.folder)) == ['backends', 'broker', 'broker.lock']


def test_a_broker_makes_the_socket_that_it_is_not_given(manager):
    clients = manager.listen('broker', socket.SOCK_STREAM)
    broker = manager.start('serve', passed=(clients,))
    assert manager.hear() == 'READY=1'
    assert os.path.exists(f'{manager.folder}/backends')
    assert manager.run('services').returncode == 0
    stop(broker)
    assert sorted(os.listdir(manager.folder)) == ['broker', 'broker.lock']


def test_a_broker_is_not_upgraded_whose_sockets_somebody_has_who_cannot_be_told(manager):
    clients = manager.listen('broker', socket.SOCK_STREAM)
    broker = manager.start('serve', passed=(clients,), NOTIFY_SOCKET='')
    broker.stderr.readline()
    for detached in ([], ['--detach']):
        new = manager.run('serve', '--upgrade', *detached)
        assert new.returncode == TEMPFAIL
        assert new.stderr == ('baton: the broker says: the service manager has the sockets: reload '
                              'or restart it there\n')
    assert manager.run('services').returncode == 0
    stop(broker)


def test_detaching_is_for_upgrades(manager):
    result = manager.run('serve', '--detach')
    assert (result.returncode, result.stderr) == (USAGE, 'baton: --detach needs --upgrade\n')


def backend(manager, *arguments):
    """A backend for tests, registered."""
    process = subprocess.Popen([KEEPER, *arguments], env=manager.env, text=True,
                               stdout=subprocess.PIPE)
    manager.backends.append(process)
    assert process.stdout.readline().startswith('ready')
    return process


def await_kept(manager, names):
    while sorted(manager.kept) != sorted(names):
        manager.hear()


def hexed(name):
    return name.encode().hex()


@pytest.mark.parametrize('how', ['upgraded', 'not upgraded'])
def test_a_broker_that_is_killed_loses_no_listener_and_nothing_that_it_keeps(manager, how):
    passed = (manager.listen('broker', socket.SOCK_STREAM),
              manager.listen('backends', socket.SOCK_SEQPACKET))
    listen = ['--listen', '127.0.0.1:0=echo', '--listen', '[::1]:0=echo', '--ack-timeout', '20s']
    broker = manager.start('serve', *listen, passed=passed)
    port = int(re.search(r'port=(\d+)', broker.stderr.readline())[1])
    names = ['baton/tcp/127.0.0.1/0', 'baton/tcp/[//1]/0']
    await_kept(manager, names)
    keeper = backend(manager, 'echo', 'put=http', 'put=a:b,3600000', 'take=http', 'put=x')
    assert [keeper.stdout.readline().split()[3] for _ in range(4)] == ['BATON_OK'] * 4
    # What was taken is kept no longer.
    while not (len(manager.kept) == 4 and f"baton/kept/echo/{2**63 - 1}/{hexed('x')}" in
               manager.kept):
        manager.hear()
    names = sorted(manager.kept)
    assert any(re.fullmatch(rf"baton/kept/echo/\d+/{hexed('a:b')}", name) for name in names)
    if how == 'upgraded':
        assert manager.upgrade(*listen) == 0
        assert broker.wait(PATIENCE) == 0
        while not (word := manager.hear()).startswith('MAINPID='):
            pass
        os.kill(int(word.removeprefix('MAINPID=')), signal.SIGKILL)
        manager.await_end(int(word.removeprefix('MAINPID=')))
    else:
        broker.kill()
        broker.wait()
    keeper.kill()
    keeper.wait()
    # Somebody comes while there is no broker.
    client = socket.create_connection(('127.0.0.1', port), PATIENCE)
    manager.sockets.append(client)
    broker = manager.start('serve', *listen, passed=passed)
    assert f'port={port}' in broker.stderr.readline()
    keeper = backend(manager, 'echo', 'list', 'take=x')
    assert keeper.stdout.readline().split() == ['list', 'BATON_OK', 'a:b!', 'x']
    assert keeper.stdout.readline().split()[3] == 'BATON_OK'
    # He is served in the end.
    client.sendall(b'hello\n')
    assert client.recv(1000)
    names = [name for name in names if not name.endswith(f"/{hexed('x')}")]
    await_kept(manager, names)
    # A broker that ends in order leaves it to the manager what becomes of these.
    stop(broker)
    assert len(manager.kept) == 3


def test_what_was_kept_and_is_of_no_use_is_thrown_away(manager):
    bad = ['baton/', 'baton/x', 'baton/tcp/', 'baton/tcp/127.0.0.1/1', 'baton/kept/',
           'baton/kept/a', 'baton/kept/a/1', f"baton/kept/a/1/{hexed('late')}",
           f'baton/kept/a/{2**63 - 1}/', f'baton/kept/a/{2**63 - 1}/0',
           f'baton/kept/a/{2**63 - 1}/00',
           f'baton/kept/a/{2**63 - 1}/4x', f'baton/kept/a/{2**63 - 1}/4A',
           f"baton/kept/a/{2**63 - 1}/{hexed('x' * 65)}", f"baton/kept/A/{2**63 - 1}/{hexed('x')}",
           f"baton/kept//{2**63 - 1}/{hexed('x')}", f"baton/kept/a/{2**63}/{hexed('x')}"]
    good = f"baton/kept/a/{2**63 - 1}/{hexed('x' * 64)}"
    for name in [*bad, good]:
        with socket.socket() as some:
            manager.keep(name, os.dup(some.fileno()))
    # Right names, and wrong things: no socket, and one that listens at nothing.
    manager.keep(f"baton/kept/a/{2**63 - 1}/{hexed('file')}", os.open('/dev/null', os.O_RDONLY))
    with socket.socket() as some:
        manager.keep('baton/tcp/127.0.0.1/0', os.dup(some.fileno()))
    broker = manager.start('serve', '--listen', '127.0.0.1:0=echo')
    while manager.hear() != 'READY=1':
        pass
    assert sorted(manager.kept) == sorted([good, 'baton/tcp/127.0.0.1/0'])
    with socket.socket(fileno=os.dup(manager.kept['baton/tcp/127.0.0.1/0'][-1])) as listener:
        assert listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1
    stop(broker)


def test_a_broker_is_upgraded_and_the_manager_told_whom_to_watch(manager):
    passed = (manager.listen('broker', socket.SOCK_STREAM),
              manager.listen('backends', socket.SOCK_SEQPACKET))
    broker = manager.start('serve', '--ack-timeout', '20s', passed=passed, WATCHDOG_USEC='20000')
    while manager.hear() != 'READY=1':
        pass
    keeper = backend(manager, 'echo')
    pids = [broker.pid]
    # The second time it is one that knows of the manager only from the one before it.
    for _ in range(2):
        assert manager.upgrade('--ack-timeout', '20s') == 0
        while not (word := manager.hear()).startswith('MAINPID='):
            assert word == 'WATCHDOG=1'
        pids.append(int(word.removeprefix('MAINPID=')))
        # From now on that one says that it lives.
        assert [manager.hear() for _ in range(3)] == ['WATCHDOG=1'] * 3
        assert manager.run('connect', 'echo', input='hello\n').stdout
    assert len(set(pids)) == 3
    assert broker.wait(PATIENCE) == 0
    os.kill(pids[-1], signal.SIGTERM)
    assert manager.hear_other() == 'STOPPING=1'
    manager.await_end(pids[-1])
    assert {'backends', 'broker'} < set(os.listdir(manager.folder))
    assert keeper.poll() is None
    # The sockets are there for the next one.
    broker = manager.start('serve', passed=passed)
    while manager.hear() != 'READY=1':
        pass
    stop(broker)


def test_a_broker_refuses_what_is_no_socket_of_its_own(manager):
    elsewhere = manager.listen('elsewhere', socket.SOCK_STREAM)
    broker = manager.start('serve', passed=(elsewhere,))
    assert broker.stderr.read() == (f"baton: the socket of descriptor 3 is not at "
                                    f"'{manager.folder}/broker'\n")
    assert broker.wait(PATIENCE) == USAGE
    deaf = socket.socket(socket.AF_UNIX)
    manager.sockets.append(deaf)
    for passed in ((elsewhere, elsewhere), (deaf,)):
        broker = manager.start('serve', passed=passed)
        assert 'was passed; a broker takes one listening socket' in broker.stderr.read()
        assert broker.wait(PATIENCE) == USAGE


@pytest.mark.skipif(not shutil.which('systemd-socket-activate'), reason='systemd is missing')
def test_systemd_starts_a_broker_when_somebody_comes(manager):
    path = f'{manager.folder}/broker'
    starter = subprocess.Popen(
        ['systemd-socket-activate', f'--setenv=BATON_BROKER={manager.folder}', '-l', path, BATON,
         'serve'], env=manager.env, stderr=subprocess.PIPE, text=True)
    try:
        while not re.match(r'Listening on', line := starter.stderr.readline()):
            assert line
        assert manager.run('services').stdout.startswith('SERVICE')
        starter.send_signal(signal.SIGTERM)
        assert starter.wait(PATIENCE) == 0
    finally:
        starter.kill()
        starter.wait()
        starter.stderr.close()


def test_a_runner_is_ready_when_it_is_registered(manager):
    store = {'BATON_STORE': f'sqlite:{manager.top}/store.db', 'BATON_FLEET': f'{manager.top}/fleet'}
    manager.env.update(store)
    runner = manager.start('work', 'mail', '--name', 'one', '--', 'true', WATCHDOG_USEC='20000')
    assert manager.hear_other() == 'READY=1'
    assert 'one' in manager.run('runner').stdout
    assert [manager.hear() for _ in range(3)] == ['WATCHDOG=1'] * 3
    # One whose name is taken is never ready.
    other = manager.start('work', 'mail', '--name', 'one', '--', 'true')
    assert other.wait(PATIENCE) == 1
    stop(runner)
    assert manager.hear_other() == 'STOPPING=1'


# The units.

def installed(folder):
    """The units as they would be if the program were installed where it was built."""
    for who in ('system', 'user'):
        os.mkdir(folder / who)
    for path in UNITS.iterdir():
        if path.suffix not in ('.service', '.socket'):
            continue
        who = 'user' if path.name.startswith('user-') else 'system'
        text = path.read_text(encoding='utf-8')
        if path.suffix == '.service':
            text, count = re.subn(r'(?m)^(Exec(Start|Reload))=\S+/baton ', rf'\1={BATON} ', text)
            assert count == 1 + ('serve' in path.name)
        (folder / who / path.name.removeprefix('user-')).write_text(text, encoding='utf-8')
    return folder


@pytest.mark.skipif(not shutil.which('systemd-analyze'), reason='systemd is missing')
@pytest.mark.parametrize('who', ['system', 'user'])
def test_systemd_finds_nothing_wrong_with_the_units(tmp_path, who):
    folder = installed(tmp_path) / who
    os.symlink('baton-work@.service', folder / 'baton-work@mail.service')
    names = ['baton-serve.socket', 'baton-serve.service', 'baton-work@mail.service']
    result = subprocess.run(
        ['systemd-analyze', f'--{who}', '--man=no', 'verify', *[str(folder / n) for n in names]],
        env={**os.environ, 'XDG_RUNTIME_DIR': str(tmp_path), 'SYSTEMD_UNIT_PATH': f'{folder}:'},
        check=False, text=True, timeout=PATIENCE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    about = [line for line in result.stdout.splitlines() if 'baton' in line]
    assert (result.returncode, about) == (0, []), result.stdout
    # It sees what is wrong.
    unit = folder / 'baton-serve.service'
    unit.write_text(unit.read_text().replace('KillMode=mixed', 'KillMode=never'))
    result = subprocess.run(
        ['systemd-analyze', f'--{who}', '--man=no', 'verify', str(unit)],
        env={**os.environ, 'XDG_RUNTIME_DIR': str(tmp_path), 'SYSTEMD_UNIT_PATH': f'{folder}:'},
        check=False, text=True, timeout=PATIENCE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert 'kill mode' in result.stdout


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which('systemd-sysusers'),
                    reason='needs root and systemd')
def test_the_user_and_the_folders_are_made(tmp_path):
    sources = pathlib.Path(__file__).resolve().parents[2] / 'packaging'
    os.mkdir(tmp_path / 'etc')
    for kind in ('sysusers', 'tmpfiles'):
        os.makedirs(tmp_path / f'usr/lib/{kind}.d')
        shutil.copy(sources / f'baton.{kind}', tmp_path / f'usr/lib/{kind}.d/baton.conf')
    for command in (['systemd-sysusers'], ['systemd-tmpfiles', '--create']):
        subprocess.run([*command, f'--root={tmp_path}', 'baton.conf'], check=True,
                       timeout=PATIENCE)
    assert (tmp_path / 'etc/passwd').read_text().startswith('baton:')
    found = os.stat(tmp_path / 'run/baton-serve')
    assert found.st_uid != 0 and oct(found.st_mode) == '0o40700'
