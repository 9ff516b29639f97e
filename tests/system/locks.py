"""What the tests of `baton lock` share: processes, their ends, and commands to run."""
import os
import re
import select
import signal
import sys
import time

BATON = os.environ['BATON_BIN']
WITNESS = os.environ['BATON_WITNESS']
USAGE, WRONG_DATA, UNAVAILABLE, SOFTWARE, SYSTEM, YIELDED, LOST = 64, 65, 69, 70, 71, 75, 76
BOUND = 60     # seconds that nothing here takes
HELD = re.compile(r'baton: (\S+) is held by (.+) \(pid (\d+) on (\S+)\) '
                  r'since (\S+ \S+) until (.+)\n')
FORMER = re.compile(r'baton: processes of the former holder of (\S+) still run \(pid ([\d, ]+)\)\n')


def hear_signals(but=None):
    """Makes a process that is about to be another hear what whoever runs the tests may ignore."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGCHLD):
        signal.signal(number, signal.SIG_IGN if number == but else signal.SIG_DFL)


def lead_a_group():
    """For who is to be stopped: a group without a parent in its session is continued by the kernel
    when one of its processes ends."""
    hear_signals()
    os.setpgrp()


def done(process, **streams):
    """The status, after the process has ended by itself. Its input ends only if one is given."""
    if not streams:
        process.wait(timeout=BOUND)
    process.out, process.err = process.communicate(timeout=BOUND, **streams)
    return process.returncode


def descriptor(pid):
    """By which the end of any process can be waited for; None if that was it."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return None


def ends(pidfd):
    """Returns when that process has ended."""
    if pidfd is not None:
        assert select.select([pidfd], [], [], BOUND)[0], 'it goes on'
        os.close(pidfd)


def lives(pid):
    try:
        with open(f'/proc/{pid}/stat') as stat:
            return stat.read().rsplit(')', 1)[1].split()[0] not in 'ZX'
    except FileNotFoundError:
        return False


def children(pid):
    found = []
    for other in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{other}/stat') as stat:
                if int(stat.read().rsplit(')', 1)[1].split()[1]) == pid:
                    found.append(int(other))
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def wait_until(condition):
    limit = time.monotonic() + BOUND
    while not condition():
        assert time.monotonic() < limit


def guardian_of(process):
    wait_until(lambda: children(process.pid) or process.poll() is not None)
    [guardian] = children(process.pid)
    return guardian


def says_if_alive(pid):
    """A command that says so if that process lives; one that has ended may not have been reaped."""
    return ['sh', '-c', 'read line 2>/dev/null </proc/$1/stat; case $line in '
            '""|*") Z "*|*") X "*) ;; *) echo "$line"; esac', 'sh', str(pid)]


# Says that it runs, and with which fence, and goes on until its input ends.
RUN = ['sh', '-c', 'echo $BATON_FENCE; read line; echo $line']


def running(lock, *arguments):
    """A lock whose command runs."""
    process = lock(*arguments, *RUN)
    process.fence = int(process.stdout.readline())
    return process


# Leaves a daemon in a session of its own, which has closed everything else and ends with the
# reader of the pipe that it is given, says its pid, and goes on as told.
DAEMON = '''
import os, select, signal, sys
reader, writer = os.pipe()
if os.fork() == 0:
    os.setsid()
    child = os.fork()
    if child == 0:
        null = os.open('/dev/null', os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        os.write(writer, b'!')
        signal.pause()
    os.write(1, b'%d\\n' % child)
    os._exit(0)
os.wait()
os.read(reader, 1)
'''


def with_daemon(lock, *arguments, then='', **options):
    """A lock whose command has left a daemon, and then does that."""
    process = lock(*arguments, sys.executable, '-c', DAEMON + then, **options)
    process.daemon = int(process.stdout.readline())
    return process


GOES_ON = 'print("on", flush=True); sys.stdin.read()'
