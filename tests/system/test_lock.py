"""baton lock: one command at a time under a name, whoever is killed."""
import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

import pytest

from locks import (
    BATON, BOUND, FORMER, GOES_ON, HELD, LOST, RUN, SOFTWARE, SYSTEM, UNAVAILABLE, USAGE,
    WITNESS, WRONG_DATA, YIELDED, children, descriptor, done, ends, guardian_of, hear_signals,
    lead_a_group, running, says_if_alive, wait_until, with_daemon)


@pytest.fixture(autouse=True)
def own_fleet(tmp_path, monkeypatch):
    """Every test has a fleet of its own."""
    (tmp_path / 'run').mkdir(mode=0o700)
    monkeypatch.setenv('BATON_FLEET', str(tmp_path / 'run/fleet'))
    return tmp_path / 'run/fleet'


def waiters(baton):
    """How many stand in line, for any name."""
    return int(re.search(r'^waiters +(\d+) of', baton('fleet').stdout, re.MULTILINE).group(1))


def test_the_status_is_that_of_the_command(baton):
    for status in (0, 1, 3, 75, 255):
        result = baton('lock', 'x', 'sh', '-c', f'exit {status}')
        assert (result.returncode, result.stdout, result.stderr) == (status, '', '')


def test_a_command_that_a_signal_ends_is_128_and_the_signal(baton):
    assert baton('lock', 'x', 'sh', '-c', 'kill -9 $$').returncode == 128 + 9
    assert baton('lock', 'x', 'sh', '-c', 'kill -15 $$').returncode == 128 + 15


@pytest.mark.parametrize('command, status, why', [
    ('no-such-command', 127, 'No such file or directory'),
    ('/no/such/command', 127, 'No such file or directory'),
    ('', 127, 'No such file or directory'),
    ('/etc/passwd', 126, 'Permission denied'),
    ('/', 126, 'Permission denied'),
])
def test_a_command_that_cannot_be_run_gets_one_line(baton, own_fleet, command, status, why):
    result = baton('lock', 'x', '--at-least', '1h', '--', command)
    assert (result.returncode, result.stdout) == (status, '')
    assert result.stderr == f"baton: '{command}' cannot be run: {why}\n"
    assert baton('lock', '-n', 'x', 'true').returncode == 0
    assert os.listdir(f'{own_fleet}.locks') == []


def test_streams_and_arguments_reach_the_command_as_they_are(baton):
    result = baton('lock', 'x', '--', 'sh', '-c', 'cat; printf "<%s>" "$@" >&2', 'sh', '-n', '--',
                   'a b', input='hello')
    assert (result.returncode, result.stdout, result.stderr) == (0, 'hello', '<-n><--><a b>')


def test_a_string_is_for_the_shell(baton):
    for option in ('-c', '--command'):
        result = baton('lock', 'x', option, 'echo $((6 * 7)); exit 4')
        assert (result.returncode, result.stdout) == (4, '42\n')
        assert baton('lock', option, 'exit 5', 'x').returncode == 5


def test_the_command_is_told_subject_and_a_fence_that_grows(baton):
    fences = []
    for name, subject in (('x', 'lock/x'), ('lock/x', 'lock/x'), ('a/b/c', 'a/b/c'),
                          ('x', 'lock/x')):
        result = baton('lock', name, 'sh', '-c', 'echo $BATON_SUBJECT $BATON_FENCE',
                       env={'BATON_FENCE': '1', 'BATON_SUBJECT': 'old'})
        told, fence = result.stdout.split()
        assert told == subject
        fences.append(int(fence))
    assert fences[0] < fences[1] < fences[3]


@pytest.mark.parametrize('options', [['-n'], ['--nonblock'], ['--nb'], ['-w', '0'],
                                     ['-w', '10ms'], ['--wait', '0.01'], ['--timeout=10ms']])
def test_who_does_not_wait_yields_and_is_told_who_holds_it(baton, lock, options):
    holder = running(lock, 'x')
    result = baton('lock', *options, 'x', 'echo', 'ran')
    assert (result.returncode, result.stdout) == (YIELDED, '')
    name, owner, pid, host, since, until = HELD.fullmatch(result.stderr).groups()
    assert (name, owner, host) == ('x', 'sh', os.uname().nodename)
    assert int(pid) == guardian_of(holder)
    assert until == 'it is released'
    assert done(holder, input='bye\n') == 0
    assert holder.out == 'bye\n'
    assert baton('lock', *options, 'x', 'true').returncode == 0


def test_the_status_of_a_yield_can_be_chosen(baton, lock):
    holder = running(lock, 'x')
    for option in ('-E', '--conflict-exit-code'):
        for status in (0, 9, 255):
            assert baton('lock', '-n', option, str(status), 'x', 'false').returncode == status
    assert done(holder, input='') == 0


def test_names_are_apart_and_a_plain_one_lies_in_the_namespace_lock(baton, lock):
    holder = running(lock, 'x')
    assert baton('lock', '-n', 'y', 'true').returncode == 0
    assert baton('lock', '-n', 'other/x', 'true').returncode == 0
    assert baton('lock', '-n', 'lock/x', 'true').returncode == YIELDED
    assert baton('lock', '-n', 'x', 'true', '--fleet').returncode == YIELDED
    elsewhere = os.environ['BATON_FLEET'] + '2'
    assert baton('lock', '-n', '--fleet', elsewhere, 'x', 'true').returncode == 0
    assert done(holder, input='') == 0


def test_who_waits_gets_the_name_with_a_higher_fence(lock):
    holder = running(lock, 'x')
    waiting = [lock('x', 'sh', '-c', 'echo $BATON_FENCE') for _ in range(4)]
    assert done(holder, input='') == 0
    assert [done(w) for w in waiting] == [0] * 4
    fences = sorted(int(w.out) for w in waiting)
    assert len(set(fences)) == 4 and fences[0] > holder.fence


def test_never_do_two_commands_run_at_once(lock, tmp_path):
    rounds = 400 if os.environ.get('BATON_SOAK') == '1' else 15
    script = (f'i=0; while [ $i -lt {rounds} ]; do "{BATON}" lock x "{WITNESS}" "$1" alone'
              ' || exit; i=$((i + 1)); done')
    crowd = [subprocess.Popen(['sh', '-c', script, 'sh', str(tmp_path / 'file')]) for _ in range(6)]
    assert [c.wait(timeout=10 * BOUND) for c in crowd] == [0] * 6
    log = [line.split() for line in (tmp_path / 'file.log').read_text().splitlines()]
    fences = [int(fence) for what, fence in log if what == 'enter']
    assert len(fences) == len(log) == 6 * rounds
    assert all(a < b for a, b in zip(fences, fences[1:]))


def test_verbose_says_fence_and_fleet_before_the_command(baton, own_fleet):
    result = baton('lock', '-v', 'x', 'sh', '-c', 'echo $BATON_FENCE >&2')
    where, said, fence = result.stderr.splitlines()
    assert where == f"baton: the fleet is '{own_fleet}'"
    assert said == f'baton: x is held with fence {fence}'


def test_nothing_is_left_behind(baton, own_fleet):
    process = subprocess.Popen([BATON, 'lock', 'x', 'true'])
    before = set(filter(str.isdigit, os.listdir('/proc')))
    assert process.wait(timeout=BOUND) == 0
    assert os.listdir(f'{own_fleet}.locks') == []
    names = []
    for pid in set(filter(str.isdigit, os.listdir('/proc'))) & before:
        try:
            with open(f'/proc/{pid}/environ') as environ, open(f'/proc/{pid}/comm') as comm:
                if f'BATON_FLEET={own_fleet}' in environ.read():
                    names.append(comm.read())
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            pass
    assert 'baton-guardian\n' not in names


def test_the_command_inherits_its_callers_descriptors_and_one_more(lock):
    reader, writer = os.pipe()
    process = lock('x', sys.executable, '-c',
                   'import os\nfor fd in os.listdir("/proc/self/fd"):\n'
                   ' try: print(fd, os.readlink("/proc/self/fd/" + fd))\n'
                   ' except OSError: pass', pass_fds=[writer])
    assert done(process) == 0
    found = dict(line.split(' ', 1) for line in process.out.splitlines())
    locks = [fd for fd, path in found.items() if '/fleet.locks/' in path]
    assert len(locks) == 1 and int(locks[0]) > 9
    assert set(found) == {'0', '1', '2', str(writer), *locks}
    os.close(writer)
    assert os.read(reader, 1) == b''
    os.close(reader)


# Writes the name of each signal that it gets, and ends with the one that it was told.
CATCH = '''
import os, signal, sys
def caught(number, frame):
    os.write(1, (signal.Signals(number).name + '\\n').encode())    # print() may be under way
    if number == signal.SIGUSR2:
        sys.exit(6)
for name in sys.argv[1:]:
    signal.signal(getattr(signal, name), caught)
print('ready', flush=True)
while True:
    signal.pause()
'''


@pytest.mark.parametrize('name', ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGALRM',
                                  'SIGCONT'])
def test_signals_are_passed_on(lock, name):
    process = lock('x', sys.executable, '-c', CATCH, name, 'SIGUSR2')
    assert process.stdout.readline() == 'ready\n'
    process.send_signal(getattr(signal, name))
    line = process.stdout.readline()
    assert line == name + '\n', process.communicate(timeout=BOUND)
    process.send_signal(signal.SIGUSR2)
    assert done(process) == 6
    assert (process.out, process.err) == ('SIGUSR2\n', '')


def test_a_signal_that_ends_the_command_frees_the_name(baton, lock):
    process = running(lock, 'x')
    process.terminate()
    assert done(process) == 128 + signal.SIGTERM
    assert baton('lock', '-n', 'x', 'true').returncode == 0


def test_what_the_caller_ignores_the_command_ignores(lock):
    process = lock('x', 'sh', '-c', 'echo on; read line; echo $line', ignored=signal.SIGHUP)
    assert process.stdout.readline() == 'on\n'
    process.send_signal(signal.SIGHUP)
    assert done(process, input='still here\n') == 0
    assert process.out == 'still here\n'


def test_what_the_caller_ignores_does_not_end_the_wait(lock):
    holder = running(lock, 'x')
    waiting = lock('x', 'echo', 'ran', ignored=signal.SIGHUP)
    guardian_of(waiting)
    waiting.send_signal(signal.SIGHUP)
    assert done(holder, input='') == 0
    assert done(waiting) == 0
    assert waiting.out == 'ran\n'


def test_a_caller_that_ignores_its_children_changes_nothing(lock):
    process = lock('x', 'sh', '-c', 'exit 7', ignored=signal.SIGCHLD)
    assert done(process) == 7
    process = lock('x', 'grep', 'SigIgn', '/proc/self/status', ignored=signal.SIGCHLD)
    assert done(process) == 0
    assert int(process.out.split()[1], 16) & 1 << signal.SIGCHLD - 1


def test_a_signal_while_it_waits_ends_the_wait(baton, lock):
    holder = running(lock, 'x')
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
        waiting = lock('x', 'echo', 'ran')
        guardian = descriptor(guardian_of(waiting))
        waiting.send_signal(number)
        assert done(waiting) == -number
        assert (waiting.out, waiting.err) == ('', '')
        ends(guardian)
    assert done(holder, input='') == 0
    assert baton('lock', '-n', 'x', 'true').returncode == 0


@pytest.fixture
def on_a_terminal():
    """Starts a program as the leader of a session on a terminal; gives its pid and our end."""
    started = []

    def start(program):
        try:
            pid, terminal = pty.fork()
        except OSError as error:
            pytest.skip(f'no terminal to be had here: {error}')
        if pid == 0:
            hear_signals()
            os.execvp(program[0], program)
        started.append((pid, terminal))
        return pid, terminal
    yield start
    for pid, terminal in started:
        for other in [*children(pid), pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(other, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)


def read_until(fd, text):
    got = b''
    while text not in got:
        assert select.select([fd], [], [], BOUND)[0], got
        got += os.read(fd, 65536)
    return got


# One group in the foreground, whose leader waits, as from a shell without job control.
UNDER_A_SHELL = ['sh', '-c', 'trap : INT; "$@"; exit', 'sh']


@pytest.mark.parametrize('under', [UNDER_A_SHELL, []], ids=['under a shell', 'alone'])
def test_what_is_typed_at_a_terminal_reaches_the_command_once(on_a_terminal, under):
    pid, terminal = on_a_terminal([*under, BATON, 'lock', 'x', sys.executable, '-c', CATCH,
                                   'SIGINT', 'SIGUSR2'])
    read_until(terminal, b'ready')
    [patron] = children(pid) if under else [pid]
    # What would be passed on lies with the guardian until the command has had the first one.
    [guardian] = children(patron)
    os.kill(guardian, signal.SIGSTOP)
    os.write(terminal, b'\x03')
    got = read_until(terminal, b'SIGINT')
    os.kill(patron, signal.SIGUSR2)
    os.kill(guardian, signal.SIGCONT)
    got += read_until(terminal, b'SIGUSR2')
    assert got.count(b'SIGINT') == 1 and got.count(b'SIGUSR2') == 1
    ends(descriptor(pid))
    assert os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT).si_status == 6


def test_a_timer_of_the_caller_is_passed_on(lock):
    process = lock('x', 'sleep', '1000', preexec_fn=lambda: signal.alarm(1))
    # It may be over before the command has started.
    assert done(process) in (128 + signal.SIGALRM, -signal.SIGALRM)


def test_a_leader_whose_terminal_hangs_up_passes_that_on(on_a_terminal, tmp_path):
    caught = tmp_path / 'caught'
    pid, terminal = on_a_terminal([BATON, 'lock', 'x', 'sh', '-c',
                                   f'trap "echo HUP >> {caught}; kill \\$!; exit 3" HUP;'
                                   'echo ready; sleep 1000 & wait'])
    read_until(terminal, b'ready')
    with open('/dev/null') as null:
        os.dup2(null.fileno(), terminal)
    ends(descriptor(pid))
    status = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert (status.si_code, status.si_status) == (os.CLD_EXITED, 3)
    assert caught.read_text() == 'HUP\n'


def test_the_command_is_in_its_callers_group_and_may_use_the_terminal(on_a_terminal):
    pid, terminal = on_a_terminal([BATON, 'lock', 'x', 'sh', '-c',
                                   'ps -o pgid=,tpgid= -p $$; read line; echo got $line'])
    os.write(terminal, b'hello\n')
    got = read_until(terminal, b'got hello').split()
    assert str(pid).encode() in got


@pytest.fixture
def unshare():
    """What runs a command in new namespaces."""
    def prefix(*options):
        command = ['unshare', *([] if os.geteuid() == 0 else ['--map-root-user']), *options]
        if subprocess.run([*command, 'true'], check=False, stderr=subprocess.DEVNULL).returncode:
            pytest.skip('no new namespaces to be had here')
        return command
    return prefix


@pytest.mark.parametrize('under', [UNDER_A_SHELL, []], ids=['under a shell', 'alone'])
def test_in_a_new_pid_namespace_the_command_may_use_the_terminal(on_a_terminal, unshare, under):
    _, terminal = on_a_terminal([*unshare('--mount-proc', '--pid', '--fork'), *under, BATON, 'lock',
                                 'x', 'sh', '-c', 'read line; echo got $line'])
    os.write(terminal, b'hello\n')
    read_until(terminal, b'got hello')


def test_a_killed_patron_takes_the_command_and_its_daemons_with_it(baton, lock):
    process = with_daemon(lock, 'x', then=GOES_ON)
    assert process.stdout.readline() == 'on\n'
    guardian, daemon = descriptor(guardian_of(process)), descriptor(process.daemon)
    process.kill()
    assert done(process) == -signal.SIGKILL
    # Whoever has the name next finds nothing alive.
    result = baton('lock', 'x', *says_if_alive(process.daemon))
    assert (result.stdout, result.stderr) == ('', '')
    ends(guardian)
    ends(daemon)


def test_a_killed_group_takes_its_daemons_with_it(baton, lock):
    process = with_daemon(lock, 'x', then=GOES_ON, start_new_session=True)
    assert process.stdout.readline() == 'on\n'
    daemon = descriptor(process.daemon)
    os.killpg(process.pid, signal.SIGKILL)
    assert done(process) == -signal.SIGKILL
    ends(daemon)
    assert baton('lock', 'x', 'true').returncode == 0


def test_a_patron_that_is_killed_before_it_knows_of_the_end_takes_the_daemons_with_it(baton, lock):
    process = with_daemon(lock, 'x', then=GOES_ON, preexec_fn=lead_a_group)
    assert process.stdout.readline() == 'on\n'
    daemon = descriptor(process.daemon)
    [command] = [c for c in children(guardian_of(process)) if c != process.daemon]
    os.kill(process.pid, signal.SIGSTOP)
    os.kill(command, signal.SIGKILL)
    wait_until(lambda: not os.path.exists(f'/proc/{command}'))
    os.kill(process.pid, signal.SIGKILL)
    assert done(process) == -signal.SIGKILL
    ends(daemon)
    assert baton('lock', 'x', 'true').returncode == 0


def test_who_is_stopped_while_it_waits_gives_its_turn_to_others(baton, lock):
    holder = running(lock, 'x')
    waiting = lock('-v', 'x', *RUN, preexec_fn=lead_a_group)
    wait_until(lambda: waiters(baton) == 1)
    waiting.send_signal(signal.SIGSTOP)
    assert done(holder, input='') == 0
    # It gets the name and does not answer; the name goes on to the next.
    other = running(lock, '-w', f'{BOUND}s', 'x')
    waiting.send_signal(signal.SIGCONT)
    wait_until(lambda: waiters(baton) == 1)
    assert done(other, input='') == 0
    fence = int(waiting.stdout.readline())
    assert fence > other.fence > holder.fence
    assert done(waiting, input='') == 0
    where, said = waiting.err.splitlines()
    assert said == f'baton: x is held with fence {fence}'


def test_a_killed_patron_that_waits_leaves_nobody_in_line(baton, lock):
    holder = running(lock, 'x')
    waiting = lock('x', 'echo', 'ran')
    guardian = descriptor(guardian_of(waiting))
    waiting.kill()
    ends(guardian)
    assert done(waiting) == -signal.SIGKILL and waiting.out == ''
    assert done(holder, input='') == 0
    assert baton('lock', '-n', 'x', 'true').returncode == 0


def test_a_killed_guardian_takes_the_command_with_it_and_leaves_the_name_to_daemons(baton, lock):
    process = with_daemon(lock, 'x', then=GOES_ON)
    assert process.stdout.readline() == 'on\n'
    guardian = guardian_of(process)
    [command] = [c for c in children(guardian) if c != process.daemon]
    command_ends = descriptor(command)
    os.kill(guardian, signal.SIGKILL)
    ends(command_ends)
    assert done(process) == SOFTWARE
    assert re.fullmatch(r'baton: the guardian of x was killed \(signal 9\), .*\n', process.err)
    for options in (['-n'], ['-w', '50ms']):
        result = baton('lock', *options, 'x', 'echo', 'ran')
        assert (result.returncode, result.stdout) == (YIELDED, '')
        name, pids = FORMER.fullmatch(result.stderr).groups()
        assert (name, pids) == ('x', str(process.daemon))
    waiting = lock('x', *says_if_alive(process.daemon))
    guardian_of(waiting)
    os.kill(process.daemon, signal.SIGKILL)
    done(waiting)
    assert (waiting.out, waiting.err) == ('', '')


def test_what_a_command_leaves_in_the_background_keeps_the_name(baton, lock):
    process = with_daemon(lock, 'x', then='sys.exit(3)')
    assert done(process) == 3
    result = baton('lock', '-n', 'x', 'true')
    assert result.returncode == YIELDED
    guardian = int(HELD.fullmatch(result.stderr).group(3))
    guardian_ends = descriptor(guardian)
    assert process.daemon in children(guardian)
    waiting = lock('x', *says_if_alive(process.daemon))
    os.kill(process.daemon, signal.SIGTERM)
    done(waiting)
    assert waiting.out == ''
    ends(guardian_ends)


def test_a_guardian_that_is_asked_to_end_ends_what_it_guards(baton, lock):
    process = with_daemon(lock, 'x', then=GOES_ON)
    assert process.stdout.readline() == 'on\n'
    daemon = descriptor(process.daemon)
    os.kill(guardian_of(process), signal.SIGTERM)
    assert done(process) == 128 + signal.SIGTERM
    assert baton('lock', 'x', 'true').returncode == 0
    ends(daemon)


def test_a_name_is_kept_for_at_least_so_long_in_the_background(baton, lock):
    began = time.clock_gettime(time.CLOCK_BOOTTIME)
    result = baton('lock', '--at-least', '700ms', 'x', 'sh', '-c', 'echo ran; exit 3')
    assert (result.returncode, result.stdout, result.stderr) == (3, 'ran\n', '')
    kept = baton('lock', '-n', 'x', 'true')
    if time.clock_gettime(time.CLOCK_BOOTTIME) < began + 0.7:
        assert kept.returncode == YIELDED and HELD.fullmatch(kept.stderr)
    assert baton('lock', 'x', 'true').returncode == 0
    assert time.clock_gettime(time.CLOCK_BOOTTIME) >= began + 0.7


def test_a_name_that_is_kept_can_be_given_up(baton):
    assert baton('lock', '--at-least', '1h', 'x', 'true').returncode == 0
    result = baton('lock', '-n', 'x', 'true')
    guardian = int(HELD.fullmatch(result.stderr).group(3))
    pidfd = descriptor(guardian)
    os.kill(guardian, signal.SIGTERM)
    ends(pidfd)
    assert baton('lock', '-n', 'x', 'true').returncode == 0


def test_a_name_with_a_ttl_is_renewed(baton, lock):
    holder = running(lock, '--ttl', '1s', 'x')
    seen = set()
    limit = time.monotonic() + BOUND
    while len(seen) < 4:
        assert time.monotonic() < limit
        result = baton('lock', '-n', 'x', 'true')
        assert result.returncode == YIELDED
        seen.add(HELD.fullmatch(result.stderr).group(6))
    assert done(holder, input='') == 0


def test_a_guardian_that_is_stopped_past_its_ttl_ends_the_command_when_it_wakes(baton, lock):
    holder = running(lock, '--ttl', '1s', 'x')
    guardian = guardian_of(holder)
    os.kill(guardian, signal.SIGSTOP)
    limit = time.monotonic() + BOUND
    while True:
        result = baton('lock', '-n', 'x', 'echo', 'ran')
        assert (result.returncode, result.stdout) == (YIELDED, '')
        if FORMER.fullmatch(result.stderr):
            break
        assert time.monotonic() < limit
    os.kill(guardian, signal.SIGCONT)
    assert done(holder) == LOST
    assert holder.err.startswith('baton: x was lost, ')
    assert baton('lock', 'x', 'true').returncode == 0


def test_a_fleet_that_is_removed_ends_the_command(baton, lock, own_fleet):
    holder = with_daemon(lock, 'x', then=GOES_ON)
    assert holder.stdout.readline() == 'on\n'
    daemon = descriptor(holder.daemon)
    own_fleet.unlink()
    assert done(holder) == LOST
    assert re.fullmatch('baton: x was lost, .*\n', holder.err)
    ends(daemon)
    assert baton('lock', '-n', 'x', 'true').returncode == 0


@pytest.mark.parametrize('arguments, line', [
    ([], "no name to hold; 'baton help lock' says more"),
    (['-n'], "no name to hold; 'baton help lock' says more"),
    (['x'], "no command to run while 'x' is held; 'baton help lock' says more"),
    (['x', '-n', '--'], "no command to run while 'x' is held; 'baton help lock' says more"),
    (['x', '-c', 'true', 'false'], "-c has the command already, but got 'false' too"),
    (['', 'true'], None),
    (['a/', 'true'], None),
    (['/a', 'true'], None),
    (['n' * 481, 'true'], None),
    (['s' * 32 + '/x', 'true'], None),
    (['x', '-w', '5 parsecs', 'true'], None),
    (['x', '-w', '-1', 'true'], None),
    (['x', '--ttl', 'soon', 'true'], None),
    (['x', '--at-least', '', 'true'], None),
    (['x', '-w'], "option '-w' needs a value"),
    (['x', '-E', '256', 'true'], "-E: '256' is no exit status; a number from 0 to 255 is needed"),
    (['x', '-E', '-1', 'true'], "-E: '-1' is no exit status; a number from 0 to 255 is needed"),
    (['x', '-E', '1x', 'true'], "-E: '1x' is no exit status; a number from 0 to 255 is needed"),
    (['x', '-E', '', 'true'], "-E: '' is no exit status; a number from 0 to 255 is needed"),
    (['x', '--fleet', 'here', 'true'],
     "'here' is no path of a fleet; it must be the absolute path of a file"),
    (['-s', 'x', 'true'], '-s: a name is never shared; it has one holder'),
    (['--shared', 'x', 'true'], '-s: a name is never shared; it has one holder'),
    (['-u', 'x'], '-u: a name is free when its command has ended'),
    (['x', '-o', 'true'], "unknown option '-o'; 'baton lock --help' says more"),
    (['x', '--noblock', 'true'], "unknown option '--noblock'; did you mean '--nonblock'?"),
])
def test_a_wrong_call_gets_one_clear_line(baton, own_fleet, arguments, line):
    result = baton('lock', *arguments)
    assert (result.returncode, result.stdout) == (USAGE, '')
    assert re.fullmatch('baton: .+\n', result.stderr)
    if line:
        assert result.stderr == f'baton: {line}\n'
    assert not own_fleet.exists()


@pytest.mark.parametrize('option', ['-x', '-e', '--exclusive'])
def test_what_flock_has_for_exclusive_is_accepted(baton, option):
    assert baton('lock', option, 'x', 'true').returncode == 0


def test_a_fleet_whose_folder_is_not_there_is_an_error(baton, tmp_path):
    result = baton('lock', '--fleet', f'{tmp_path}/no/fleet', 'x', 'echo', 'ran')
    assert (result.returncode, result.stdout) == (SYSTEM, '')
    assert re.fullmatch('baton: .+\n', result.stderr)


def test_a_fleet_that_is_something_else_is_an_error_and_left_alone(baton, own_fleet):
    own_fleet.write_text('precious')
    result = baton('lock', 'x', 'echo', 'ran')
    assert (result.returncode, result.stdout) == (WRONG_DATA, '')
    assert re.fullmatch('baton: .+\n', result.stderr)
    assert own_fleet.read_text() == 'precious'


def test_without_room_for_the_fleet_nothing_runs(baton, unshare, tmp_path):
    script = 'mount -t tmpfs -o size=64k none "$1" && "$2" lock --fleet "$1/fleet" x echo ran; ' \
             'status=$?; ls -A "$1"; exit $status'
    command = [*unshare('--mount'), 'sh', '-c', script, 'sh', tmp_path / 'run', BATON]
    result = subprocess.run(command, capture_output=True, text=True, timeout=BOUND, check=False)
    assert (result.returncode, result.stdout) == (UNAVAILABLE, '')
    assert re.fullmatch(f"baton: .*'{tmp_path}/run/fleet'.*\n", result.stderr)


@pytest.mark.parametrize('options', [[], ['-n'], ['-w', '1h'], ['-E', '3']])
def test_behind_a_stopped_process_nothing_runs(baton, own_fleet, options):
    assert baton('fleet', '--create').returncode == 0
    # Whoever joins has this lock for a moment.
    with open(f'{own_fleet}.mark') as mark:
        fcntl.flock(mark, fcntl.LOCK_EX)
        result = baton('lock', *options, 'x', 'echo', 'ran')
    assert (result.returncode, result.stdout) == (YIELDED, '')
    assert re.fullmatch(f"baton: '{own_fleet}.mark' has been locked for .*\n", result.stderr)
    assert baton('lock', *options, 'x', 'true').returncode == 0


def test_a_fleet_named_badly_by_the_environment_is_an_error(baton):
    result = baton('lock', 'x', 'echo', 'ran', env={'BATON_FLEET': 'relative'})
    assert (result.returncode, result.stdout) == (USAGE, '')
    assert re.fullmatch('baton: .+\n', result.stderr)


def test_a_folder_of_somebody_else_is_not_trusted(baton, own_fleet):
    if os.geteuid() != 0:
        pytest.skip('only root can give a folder away')
    os.chown(own_fleet.parent, 12345, 12345)
    result = baton('lock', 'x', 'echo', 'ran')
    assert (result.returncode, result.stdout) == (WRONG_DATA, '')
    assert re.fullmatch('baton: .+\n', result.stderr)


@pytest.mark.parametrize('closed', [[0], [1], [2], [0, 1], [0, 1, 2]])
def test_closed_standard_descriptors_are_no_trap(lock, baton, closed):
    def close():
        hear_signals()
        for fd in closed:
            os.close(fd)
    found = ' && '.join(f'[ ! -e /proc/$$/fd/{fd} ]' for fd in closed)
    process = subprocess.Popen([BATON, 'lock', 'x', '-c', f'{found} && exit 7'], preexec_fn=close)
    assert process.wait(timeout=BOUND) == 7
    assert baton('lock', '-w', '1min', 'x', 'true').returncode == 0


def test_a_long_name_leaves_less_room_for_who_holds_it(baton):
    command = 'true ' + 'x' * 70
    assert baton('lock', 'n' * 479, '-c', command).returncode == 0
    assert baton('lock', 'n' * 480, '-c', command).returncode == USAGE
