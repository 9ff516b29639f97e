"""baton work against what is done to it: limits, stopped and killed helpers, a log that nobody
reads, a store that is taken away."""
import contextlib
import ctypes
import errno
import os
import re
import resource
import select
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time

import pytest

import databases
from handlers import PATIENCE, Pipe, is_gone, until_log

OK, USAGE, SYSTEM, IO_ERROR, TEMPFAIL = 0, 64, 71, 74, 75
CLONE_NEWNS = 0x20000
LIBC = ctypes.CDLL(None)
TIMES = ['--ttl', '1s', '--beat', '100ms', '--margin', '500ms']


@pytest.fixture
def pipe(tmp_path):
    return Pipe(tmp_path / 'pipe')


def sh(script):
    return ['--', 'sh', '-c', script]


def limited(kind, limit):
    return lambda: resource.setrlimit(kind, (limit, limit))


def test_a_signal_that_was_ignored_from_the_start_stays_so(shop, pipe):
    gate = Pipe(shop.folder / 'gate')
    shop.put('q', 'x')
    runner = shop.start('work', 'q', '--once', *sh(f'echo $$ > {pipe.path}; read x < {gate.path}'),
                        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    pipe.line()
    for _ in range(2):
        runner.send_signal(signal.SIGHUP)
    gate.file.write(b'go\n')
    assert runner.wait(PATIENCE) == OK
    assert shop.object('queue', 'show', 'q')['done'] == 1


def test_a_runner_whose_log_nobody_reads_loses_its_shards(shop, pipe):
    shop.ok('queue', 'set', 'q', 'lane-backoff=none')
    shop.put('q', '--lane', 'a', 'x')
    script = f'echo $$ > {pipe.path}; [ $BATON_ATTEMPT != 1 ] || ' \
             '{ yes noise | head -c 1000000 >&2; sleep 1000; }'
    hung = shop.start('work', 'q', *TIMES, *sh(script))
    first = pipe.line()
    other = shop.start('work', 'q', *TIMES, '--once', *sh(script), stderr=None)
    pipe.line()
    assert is_gone(first)
    assert other.wait(PATIENCE) == OK
    hung.kill()


def test_a_file_that_may_not_grow_is_an_error(shop):
    shop.put('q', 'x')
    line = shop.refused(IO_ERROR, 'put', 'q', '-', input=b'x' * 1000000,
                        preexec_fn=limited(resource.RLIMIT_FSIZE, 500000))
    assert 'disk' in line or 'large' in line, line
    assert len(shop.objects('ls', 'q')) == 1


def test_too_few_descriptors_are_an_error_that_says_so(shop):
    for limit in range(12, 60, 8):
        result = shop.run('work', 'q', '--until-empty', '--', 'true',
                          preexec_fn=limited(resource.RLIMIT_NOFILE, limit))
        assert result.returncode == SYSTEM
        assert re.fullmatch(rb'baton: [^\n]*Too many open files\n', result.stderr), result.stderr


def test_as_many_commands_run_as_were_asked_for_whatever_is_open_at_first(shop, pipe):
    gate, count = Pipe(shop.folder / 'gate'), 60
    shop.ok('queue', 'set', 'q', 'keep=1h')
    for _ in range(count):
        shop.put('q', 'x')
    runner = shop.start('work', 'q', '-j', str(count), *TIMES,
                        *sh(f'echo > {pipe.path}; read x < {gate.path}'),
                        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, 1000)))
    for _ in range(count):
        pipe.line()
    gate.file.write(b'go\n' * count)
    until_done(shop, [str(i + 1) for i in range(count)])
    runner.send_signal(signal.SIGTERM)
    assert runner.wait(PATIENCE) == OK
    assert {shop.object('show', str(i + 1))['attempt'] for i in range(count)} == {1}


def test_more_commands_than_files_may_be_open_for_are_refused(shop):
    line = shop.refused(SYSTEM, 'work', 'q', '-j', '60', '--', 'true',
                        preexec_fn=limited(resource.RLIMIT_NOFILE, 100))
    assert line == '-j 60 needs 184 open files, and 100 are allowed: give a lower one, or allow ' \
                   'more (ulimit -Hn)'


@pytest.mark.parametrize('options', [['q', '--ttl', '2s'], ['q', 'q']])
def test_options_that_do_not_fit_are_a_wrong_call(shop, options):
    shop.refused(USAGE, 'work', *options, '--', 'true')


@pytest.mark.parametrize('stopped', [['guardian'], ['nanny'], ['guardian', 'nanny']])
def test_helpers_that_were_stopped_keep_nobody_from_ending(shop, pipe, stopped):
    shop.put('q', 'x')
    runner = shop.start('work', 'q', '--drain', '0', '--grace', '10ms',
                        *sh(f'echo $$ $PPID > {pipe.path}; sleep 1000'))
    command, nanny = pipe.line().split()
    pids = {'guardian': shop.object('runner')['guardian'], 'nanny': int(nanny)}
    for helper in stopped:
        os.kill(pids[helper], signal.SIGSTOP)
    runner.send_signal(signal.SIGTERM)
    assert runner.wait(PATIENCE) == OK
    assert is_gone(command)
    assert shop.object('show', '1')['state'] == 'ready'


def test_the_hook_is_told_that_a_runner_detaches_and_attaches_and_is_not_waited_for(shop, pipe):
    gate = Pipe(shop.folder / 'gate')
    shop.put('q', 'x')
    runner = shop.start('work', 'q', '--name', 'one', '--beat', '100ms', '--hook',
                        'ignored=$(sed -n "s/SigIgn:.//p" /proc/$$/status); echo "$BATON_RUNNER, '
                        f'$BATON_STATE, $BATON_REASON, $((0x$ignored & 4096))" > {pipe.path}; '
                        f'read x < {gate.path}; echo "the end" > {pipe.path}', '--', 'true')
    deadline = time.monotonic() + PATIENCE
    while not shop.objects('runner'):
        assert time.monotonic() < deadline
    shop.ok('runner', 'detach', 'one')
    assert pipe.line() == 'one, detached, manual detachment, 0'
    shop.ok('runner', 'attach', 'one')
    assert pipe.line() == 'one, attached, , 0'
    runner.send_signal(signal.SIGTERM)
    assert runner.wait(PATIENCE) == OK
    gate.file.write(b'go\ngo\n')
    assert [pipe.line(), pipe.line()] == ['the end'] * 2


def test_a_job_that_kills_the_guardian_each_time_ends_in_the_dead_letters(shop):
    shop.ok('queue', 'set', 'q', 'attempts=3', 'backoff=none')
    shop.put('q', 'x')
    script = 'kill -9 $(ps -o ppid= $PPID); sleep 1000'
    runner = shop.start('work', 'q', *sh(script))
    for _ in range(3):
        until_log(runner, 'guardian lost')
    until_log(runner, 'attached again')
    runner.send_signal(signal.SIGTERM)
    assert runner.wait(PATIENCE) == OK
    job = shop.object('show', '1')
    assert (job['state'], job['attempt']) == ('dead', 3)


# What a command leaves in a session of its own, and who looks after it.
FAMILY = '''d=$(setsid {daemon} sh -c 'echo $$; exec sleep 1000 > /dev/null' &)
echo $PPID $d > {pipe}; sleep 1000; :'''


def kill_helpers(shop, pipe):
    """Of the one runner, without a moment for one of them to clean up. Who is left behind."""
    nanny, daemon = pipe.line().split()
    guardian = shop.object('runner')['guardian']
    os.kill(guardian, signal.SIGSTOP)
    os.kill(int(nanny), signal.SIGKILL)
    os.kill(guardian, signal.SIGKILL)
    return daemon


@pytest.mark.parametrize('stream', [[], ['--stream', '-j', '1']])
def test_what_a_guardian_and_its_helper_leave_is_killed_before_work_goes_on(shop, pipe, stream):
    shop.ok('queue', 'set', 'q', 'shards=1', 'attempts=9', 'backoff=none', 'lane-backoff=none')
    shop.put('q', '--lane', 'l', 'x')
    runner = shop.start('work', 'q', '--drain', '0', '--grace', '10ms', *stream,
                        *sh(('read x <&3; ' if stream else '') +
                            FAMILY.format(daemon='', pipe=pipe.path)))
    for _ in range(2):
        daemon = kill_helpers(shop, pipe)
        until_log(runner, 'guardian lost')
        until_log(runner, 'attached again')
        assert is_gone(daemon)
    pipe.line()
    runner.send_signal(signal.SIGTERM)
    assert runner.wait(PATIENCE) == OK


def test_a_runner_ends_though_a_process_of_a_handler_cannot_be_killed(shop, as_other):
    if not as_other:
        pytest.skip('needs root to be somebody else')
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, as_other['user'], as_other['group'])
        raised = shutil.copy(shutil.which('setpriv'), folder)
        os.chmod(raised, 0o4755)
        pipe = Pipe(folder + '/pipe')
        os.chmod(pipe.path, 0o666)
        shop.env.update(BATON_STORE=f'sqlite:{folder}/store.db', BATON_FLEET=folder + '/fleet')
        shop.ok('queue', 'set', 'q', 'shards=1', 'lane-backoff=none', **as_other)
        shop.ok('put', 'q', '--lane', 'l', 'x', **as_other)
        options = ['q', '--drain', '0', '--grace', '10ms', *TIMES]
        runner = shop.start('work', *options, *sh(FAMILY.format(
            daemon=f'{raised} --reuid 0', pipe=pipe.path)), **as_other)
        daemon = pipe.line().split()[1]
        try:
            runner.send_signal(signal.SIGTERM)
            until_log(runner, 'a process of a handler lives on though it was killed')
            assert runner.wait(PATIENCE) == TEMPFAIL
            # Nobody has the lane as long as it lives.
            later = shop.start('work', *options, *sh(f'echo later > {pipe.path}'), **as_other)
            deadline = time.monotonic() + PATIENCE
            while (found := {r['state'] for r in shop.objects('runner', **as_other)}) != \
                    {'dead', 'attached'}:
                assert time.monotonic() < deadline, found
            assert not is_gone(daemon) and pipe.rest == b''
            os.kill(int(daemon), signal.SIGKILL)
            assert pipe.line() == 'later'
            later.send_signal(signal.SIGTERM)
            assert later.wait(PATIENCE) == OK
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(daemon), signal.SIGKILL)


def test_a_runner_without_its_store_says_why_and_goes_on_when_it_is_back(shop, pipe):
    shop.ok('queue', 'set', 'q', 'lane-backoff=none')
    shop.put('q', '--lane', 'a', 'x')
    script = f'echo $$ > {pipe.path}; [ -e {shop.folder}/go ] || sleep 1000'
    runner = shop.start('work', 'q', *TIMES, *sh(script))
    first = pipe.line()
    away = shop.folder / 'away'
    away.mkdir()
    files = [f for f in os.listdir(shop.folder) if re.fullmatch('store.db(-.*)?', f)]
    for file in files:
        os.rename(shop.folder / file, away / file)
    assert 'was removed or replaced while it was open' in until_log(runner, 'msg=detached')
    (shop.folder / 'go').touch()
    for file in files:
        os.rename(away / file, shop.folder / file)
    pipe.line()
    assert is_gone(first)
    runner.send_signal(signal.SIGTERM)
    assert runner.wait(PATIENCE) == OK
    assert shop.object('queue', 'show', 'q')['done'] == 1


def cut(path):
    os.truncate(path, 0)


def halve(path):
    os.truncate(path, os.path.getsize(path) // 2)


def overwrite(path):
    with open(path, 'r+b') as file:
        file.write(os.urandom(os.path.getsize(path)))


@pytest.mark.parametrize('spoil', [cut, halve, overwrite])
@pytest.mark.parametrize('busy', [False, True], ids=['idle', 'busy'])
@pytest.mark.parametrize('emptied', [False, True], ids=['with-log', 'log-emptied'])
def test_who_has_a_spoilt_file_detaches_and_ends_its_handlers(shop, pipe, spoil, busy, emptied):
    shop.ok('queue', 'set', 'q', 'shards=1')
    runner = shop.start('work', 'q', '--beat', '100ms', '--grace', '10ms',
                        *sh(f'echo $$ > {pipe.path}; sleep 1000'))
    if busy:
        shop.put('q', 'x')
        command = pipe.line()
    deadline = time.monotonic() + PATIENCE
    while not any(r['shards'] for r in shop.objects('runner')):
        assert time.monotonic() < deadline
    if emptied:     # all of it is in the file itself, which is not in memory any more
        with contextlib.closing(sqlite3.connect(shop.path)) as file:
            assert file.execute('PRAGMA wal_checkpoint(TRUNCATE)').fetchone()[0] == 0
    spoil(shop.path)
    line = until_log(runner, 'msg=detached')
    assert re.search('reason="storage error: [^"]*' + re.escape(shop.path), line), line
    runner.send_signal(signal.SIGTERM)
    assert runner.wait(PATIENCE) == IO_ERROR
    assert not busy or is_gone(command)


def test_a_store_that_stays_locked_does_not_keep_handlers_alive(shop, pipe):
    gate = Pipe(shop.folder / 'gate')
    for lane in 'ab':
        shop.put('q', '--lane', lane, lane)
    script = f'trap "" TERM; echo $BATON_LANE $$ > {pipe.path}; ' \
             f'case $BATON_LANE in b) read x < {gate.path};; ' \
             f'a) [ -e {shop.folder}/go ] || {{ setsid sleep 1000 & wait; }};; esac'
    runner = shop.start('work', 'q', *TIMES, '--grace', '100ms', *sh(script))
    handles = {lane: os.pidfd_open(int(pid)) for lane, pid in (pipe.line().split() for _ in 'ab')}
    with contextlib.closing(sqlite3.connect(shop.path, isolation_level=None)) as other:
        other.execute('BEGIN IMMEDIATE')
        # That it has ended cannot be recorded.
        gate.file.write(b'go\n')
        for handle in handles.values():
            ready, _, _ = select.select([handle], [], [], PATIENCE)
            assert ready, 'a handler lives on while the store is locked'
            os.close(handle)
        assert 'keep-alive failure streak: 3 consecutive failures' in until_log(runner,
                                                                                'msg=detached')
        (shop.folder / 'go').touch()
        other.execute('ROLLBACK')
    assert pipe.line().startswith('a ')
    until_log(runner, 'attached again')
    runner.send_signal(signal.SIGTERM)
    assert runner.wait(PATIENCE) == OK
    assert shop.object('queue', 'show', 'q')['done'] == 2


def mount_small(folder, megabytes):
    """Gives the folder a disk of its own, which only this process and those it starts see."""
    if LIBC.unshare(CLONE_NEWNS) != 0:
        pytest.skip('no file system can be mounted here')
    try:
        mount('--make-rprivate', '/')
        mount('-t', 'tmpfs', '-o', f'size={megabytes}m,mode=0700', 'tmpfs', str(folder))
    except subprocess.CalledProcessError:
        pytest.skip('no file system can be mounted here')


@pytest.fixture
def small_disk(tmp_path):
    """A folder with room for a few megabytes."""
    folder = tmp_path / 'disk'
    folder.mkdir(mode=0o700)
    mount_small(folder, 8)
    yield folder
    subprocess.run(['umount', '-l', str(folder)], check=True)


@pytest.fixture
def small_database():
    """A server whose disk has room for some megabytes more than it needs."""
    if not databases.tools():
        pytest.skip('no PostgreSQL is installed')
    database = databases.Database(place=lambda folder: mount_small(folder, 160))
    database.renew()
    yield database
    database.stop()
    subprocess.run(['umount', '-l', str(database.folder)], check=True)
    os.rmdir(database.folder)


def mount(*arguments):
    subprocess.run(['mount', *arguments], check=True, stderr=subprocess.PIPE)


def fill(path):
    """Takes all the room that there is."""
    with open(path, 'wb', buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError as error:
            assert error.errno == errno.ENOSPC


def test_a_full_disk_loses_nothing_and_work_goes_on_once_there_is_room(shop, small_disk):
    shop.store = shop.env['BATON_STORE'] = f'sqlite:{small_disk}/store.db'
    shop.ok('queue', 'set', 'q', 'keep=1h', 'attempts=1000', 'backoff=none')
    acknowledged = [shop.put('q', 'x') for _ in range(30)]
    gate, started = Pipe(shop.folder / 'gate'), Pipe(shop.folder / 'started')
    script = f'echo > {started.path}; read x < {gate.path}; head -c 20000 /dev/zero | tr "\\0" x'
    runner = shop.start('work', 'q', '-j', '2', *TIMES, *sh(script))
    started.line()
    fill(small_disk / 'filler')
    gate.file.write(b'go\n' * 1000)
    line = until_log(runner, 'msg=detached')
    assert 'full' in line, line
    result = shop.run('put', 'q', '-', input=b'x' * 100000)
    assert result.returncode != OK and b'full' in result.stderr, result
    os.unlink(small_disk / 'filler')
    until_log(runner, 'attached again')
    acknowledged.append(shop.put('q', 'y'))
    until_done(shop, acknowledged)
    runner.send_signal(signal.SIGTERM)
    assert runner.wait(PATIENCE) == OK
    shop.ok('check')


def until_done(shop, jobs):
    deadline = time.monotonic() + PATIENCE
    while shop.object('queue', 'show', 'q')['done'] < len(jobs):
        assert time.monotonic() < deadline, shop.object('queue', 'show', 'q')
    assert shop.states('q') == {job: 'done' for job in jobs}


def test_a_server_whose_disk_is_full_loses_nothing_and_work_goes_on(shop, small_database):
    shop.store = shop.env['BATON_STORE'] = small_database.info()
    shop.ok('queue', 'set', 'q', 'keep=1h', 'attempts=1000', 'backoff=none')
    acknowledged = [shop.put('q', 'x') for _ in range(30)]
    gate, started = Pipe(shop.folder / 'gate'), Pipe(shop.folder / 'started')
    script = f'echo > {started.path}; read x < {gate.path}; head -c 20000 /dev/urandom | base64'
    runner = shop.start('work', 'q', '-j', '2', *sh(script))
    started.line()
    fill(small_database.folder / 'filler')
    # Results get to the disk until there is no room, and then none does.
    gate.file.write(b'go\n' * 1000)
    told = b''
    while b'No space left' not in told:
        result = shop.run('put', 'q', '-', input=os.urandom(500000))
        if result.returncode == OK:
            acknowledged.append(result.stdout.decode().strip())
        told = result.stderr
    assert result.returncode == IO_ERROR, result
    os.unlink(small_database.folder / 'filler')
    acknowledged.append(shop.put('q', 'y'))
    until_done(shop, acknowledged)
    runner.send_signal(signal.SIGTERM)
    assert runner.wait(PATIENCE) == OK
    shop.ok('check')
