"""baton lock --cluster: one command at a time under a name in a store, whatever becomes of it."""
import os
import re
import resource
import signal
import sqlite3
import subprocess

import pytest

from locks import (
    BATON, BOUND, FORMER, GOES_ON, HELD, LOST, RUN, SOFTWARE, USAGE, WITNESS, YIELDED, children,
    descriptor, done, ends, guardian_of, lead_a_group, lives, says_if_alive, wait_until,
    with_daemon)

LESSEE = os.environ['BATON_LESSEE']
NO, DATA, IO_ERROR = 1, 65, 74
DEAF = 'signal.signal(signal.SIGTERM, signal.SIG_IGN); ' + GOES_ON


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    """Every test has a store of its own, and no fleet."""
    (tmp_path / 'run').mkdir(mode=0o700)
    monkeypatch.setenv('BATON_STORE', f'sqlite:{tmp_path}/run/store.db')
    monkeypatch.setenv('BATON_FLEET', '/nonexistent/fleet')
    return tmp_path / 'run/store.db'


@pytest.fixture
def cluster(baton):
    """Runs `baton lock --cluster` to its end."""
    def run(*arguments, **options):
        return baton('lock', '--cluster', *map(str, arguments), **options)
    return run


@pytest.fixture
def start(lock):
    """Starts it."""
    def start(*arguments, **options):
        return lock('--cluster', *arguments, **options)
    return start


def running(start, *arguments):
    """One whose command runs."""
    process = start(*arguments, *RUN)
    process.fence = int(process.stdout.readline())
    return process


def holders(baton):
    result = baton('holders', '--cluster')
    assert (result.returncode, result.stderr) == (0, '')
    return [line.split()[0] for line in result.stdout.splitlines()[1:]]


def lease(store, subject):
    """The fence and the end of the lease, as the store has them."""
    with sqlite3.connect(store) as db:
        row = db.execute('SELECT fence, expires_at FROM lease WHERE subject = ?',
                         [subject]).fetchone()
    db.close()
    return row


def others_hold_it(subject):
    """Whether somebody who knows nothing of latches can have the lease now."""
    result = subprocess.run([LESSEE, os.environ['BATON_STORE'], 'other', subject], text=True,
                            input='', capture_output=True, check=True, timeout=BOUND)
    return int(result.stdout) > 0


def test_the_command_is_told_subject_and_fence_and_its_status_is_the_answer(cluster, baton, store):
    fences = []
    for name, subject in (('x', 'lock/x'), ('a/b/c', 'a/b/c'), ('x', 'lock/x')):
        result = cluster(name, 'sh', '-c', 'echo $BATON_SUBJECT $BATON_FENCE; exit 3')
        assert (result.returncode, result.stderr) == (3, '')
        told, fence = result.stdout.split()
        assert told == subject
        fences.append(int(fence))
    assert fences[0] < fences[2]
    assert holders(baton) == []
    assert os.listdir(f'{store}.locks') == []
    assert cluster('x', 'no-such-command').returncode == 127
    assert holders(baton) == []


@pytest.mark.parametrize('options', [['-n'], ['-w', '0'], ['-w', '30ms']])
def test_who_does_not_wait_yields_and_is_told_who_holds_it(cluster, baton, start, options):
    holder = running(start, 'x')
    assert holders(baton) == ['lock/x']
    result = cluster(*options, 'x', 'echo', 'ran')
    assert (result.returncode, result.stdout) == (YIELDED, '')
    name, owner, pid, host, _, until = HELD.fullmatch(result.stderr).groups()
    assert (name, owner, host) == ('x', 'sh', os.uname().nodename)
    assert int(pid) == guardian_of(holder)
    assert re.fullmatch(r'\d+-\d\d-\d\d \d\d:\d\d:\d\d', until)
    assert cluster(*options, '-E', 9, 'x', 'true').returncode == 9
    assert done(holder, input='bye\n') == 0
    assert holder.out == 'bye\n'
    assert cluster(*options, 'x', 'true').returncode == 0


def test_a_name_in_a_store_is_not_that_in_a_fleet_or_another_store(cluster, baton, start, tmp_path):
    holder = running(start, 'x')
    assert baton('lock', '-n', '--fleet', f'{tmp_path}/run/fleet', 'x', 'true').returncode == 0
    assert cluster('-n', '--store', f'sqlite:{tmp_path}/run/other.db', 'x', 'true').returncode == 0
    assert cluster('-n', 'y', 'true').returncode == 0
    assert cluster('-n', 'lock/x', 'true').returncode == YIELDED
    assert done(holder, input='') == 0


def test_who_waits_gets_the_name_with_a_higher_fence(start):
    holder = running(start, 'x')
    waiting = [start('x', 'sh', '-c', 'echo $BATON_FENCE') for _ in range(4)]
    for process in waiting:
        guardian_of(process)
    assert done(holder, input='') == 0
    assert [done(w) for w in waiting] == [0] * 4
    fences = [holder.fence, *(int(w.out) for w in waiting)]
    assert len(set(fences)) == 5 and min(fences) == holder.fence


def test_never_do_two_commands_run_at_once(tmp_path):
    rounds = 200 if os.environ.get('BATON_SOAK') == '1' else 5
    script = (f'i=0; while [ $i -lt {rounds} ]; do "{BATON}" lock --cluster x "{WITNESS}" "$1" '
              'alone || exit; i=$((i + 1)); done')
    crowd = [subprocess.Popen(['sh', '-c', script, 'sh', str(tmp_path / 'file')]) for _ in range(6)]
    assert [c.wait(timeout=10 * BOUND) for c in crowd] == [0] * 6
    log = [line.split() for line in (tmp_path / 'file.log').read_text().splitlines()]
    fences = [int(fence) for what, fence in log if what == 'enter']
    assert len(fences) == len(log) == 6 * rounds
    assert all(a < b for a, b in zip(fences, fences[1:]))


def test_a_store_is_the_same_by_whatever_path(baton, lock, store, tmp_path):
    os.symlink(store, tmp_path / 'link.db')
    ways = [['--cluster', '--store', f'sqlite:{path}']
            for path in ('run/store.db', './run/../run/store.db', 'link.db', store)]
    holder = with_daemon(lock, 'x', *ways[0], then=GOES_ON, cwd=tmp_path)
    assert holder.stdout.readline() == 'on\n'
    for way in ways:
        result = baton('lock', '-n', 'x', *way, 'true', cwd=tmp_path)
        assert result.returncode == YIELDED and HELD.fullmatch(result.stderr)
    # So that only the latch is left.
    os.kill(guardian_of(holder), signal.SIGKILL)
    assert done(holder) == SOFTWARE
    for way in ways:
        result = baton('lock', '-n', 'x', *way, 'true', cwd=tmp_path)
        assert result.returncode == YIELDED and FORMER.fullmatch(result.stderr)
    assert len(os.listdir(f'{store}.locks')) == 1
    os.kill(holder.daemon, signal.SIGKILL)
    assert baton('lock', 'x', *ways[0], 'true', cwd=tmp_path).returncode == 0
    assert os.listdir(f'{store}.locks') == []


def test_verbose_says_fence_and_store_before_the_command(cluster):
    result = cluster('-v', 'x', 'sh', '-c', 'echo fence $BATON_FENCE >&2')
    where, said, fence = result.stderr.splitlines()
    assert where == f"baton: the store is '{os.environ['BATON_STORE']}'"
    assert said == f'baton: x is held with {fence}'


def test_a_dead_holder_is_replaced_at_once(cluster):
    holder = subprocess.Popen([LESSEE, os.environ['BATON_STORE'], 'somebody', 'lock/x'], text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    fence = int(holder.stdout.readline())
    assert HELD.fullmatch(cluster('-n', 'x', 'true').stderr).group(2) == 'somebody'
    holder.kill()
    holder.communicate(timeout=BOUND)
    result = cluster('x', '-c', 'echo $BATON_FENCE')
    assert result.returncode == 0 and int(result.stdout) > fence


def test_who_waits_for_a_holder_that_dies_goes_on(start):
    holder = subprocess.Popen([LESSEE, os.environ['BATON_STORE'], 'somebody', 'lock/x'], text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert int(holder.stdout.readline()) > 0
    waiting = start('x', 'echo', 'ran')
    guardian_of(waiting)
    holder.kill()
    holder.communicate(timeout=BOUND)
    assert (done(waiting), waiting.out) == (0, 'ran\n')


def test_the_lease_is_renewed_while_the_command_runs(start, cluster, store):
    holder = running(start, '--ttl', '3s', 'x')
    seen = {lease(store, 'lock/x')}
    wait_until(lambda: seen.add(lease(store, 'lock/x')) or len(seen) > 2)
    assert {fence for fence, _ in seen} == {holder.fence}
    assert cluster('-n', 'x', 'true').returncode == YIELDED
    assert done(holder, input='') == 0


def test_a_killed_patron_takes_the_command_and_its_daemons_with_it(start, cluster):
    process = with_daemon(start, 'x', then=GOES_ON)
    assert process.stdout.readline() == 'on\n'
    guardian, daemon = descriptor(guardian_of(process)), descriptor(process.daemon)
    process.kill()
    assert done(process) == -signal.SIGKILL
    # Whoever has the name next finds nothing alive.
    result = cluster('x', *says_if_alive(process.daemon))
    assert (result.stdout, result.stderr) == ('', '')
    ends(guardian)
    ends(daemon)


def test_a_killed_patron_gives_the_lease_back_only_when_all_have_ended(start):
    """To those who know nothing of latches, as on other hosts."""
    process = with_daemon(start, 'x', then=GOES_ON)
    assert process.stdout.readline() == 'on\n'
    process.kill()
    wait_until(lambda: others_hold_it('lock/x'))
    assert not lives(process.daemon)


def test_a_killed_patron_that_waits_leaves_nothing_behind(start, cluster):
    holder = running(start, 'x')
    waiting = start('x', 'echo', 'ran')
    guardian = descriptor(guardian_of(waiting))
    waiting.kill()
    ends(guardian)
    assert done(waiting) == -signal.SIGKILL and waiting.out == ''
    assert done(holder, input='') == 0
    assert cluster('-n', 'x', 'true').returncode == 0


def test_a_killed_guardian_takes_the_command_with_it_and_leaves_the_name_to_daemons(start, cluster):
    process = with_daemon(start, 'x', '--ttl', '1d', then=GOES_ON)
    assert process.stdout.readline() == 'on\n'
    guardian = guardian_of(process)
    [command] = [c for c in children(guardian) if c != process.daemon]
    command_ends = descriptor(command)
    os.kill(guardian, signal.SIGKILL)
    ends(command_ends)
    assert done(process) == SOFTWARE
    for options in (['-n'], ['-w', '50ms']):
        result = cluster(*options, 'x', 'echo', 'ran')
        assert (result.returncode, result.stdout) == (YIELDED, '')
        assert FORMER.fullmatch(result.stderr).groups() == ('x', str(process.daemon))
    waiting = start('x', *says_if_alive(process.daemon))
    guardian_of(waiting)
    os.kill(process.daemon, signal.SIGKILL)
    done(waiting)
    assert (waiting.out, waiting.err) == ('', '')


def test_who_waits_for_what_is_left_running_keeps_the_lease(start, store):
    process = with_daemon(start, 'x', then=GOES_ON)
    assert process.stdout.readline() == 'on\n'
    os.kill(guardian_of(process), signal.SIGKILL)
    assert done(process) == SOFTWARE
    old, _ = lease(store, 'lock/x')
    waiting = start('--ttl', '3s', 'x', *says_if_alive(process.daemon))
    seen = set()
    wait_until(lambda: seen.add(lease(store, 'lock/x')) or len(seen) > 2)
    assert len({fence for fence, _ in seen if fence != old}) == 1
    os.kill(process.daemon, signal.SIGKILL)
    done(waiting)
    assert (waiting.out, waiting.err) == ('', '')


def test_what_a_command_leaves_in_the_background_keeps_the_name(start, cluster):
    process = with_daemon(start, 'x', then='sys.exit(3)')
    assert done(process) == 3
    result = cluster('-n', 'x', 'true')
    assert result.returncode == YIELDED
    guardian = int(HELD.fullmatch(result.stderr).group(3))
    assert process.daemon in children(guardian)
    waiting = start('x', *says_if_alive(process.daemon))
    os.kill(process.daemon, signal.SIGTERM)
    done(waiting)
    assert waiting.out == ''


def test_who_is_stopped_when_it_gets_the_name_gives_it_to_others(start):
    holder = running(start, 'x')
    waiting = start('-v', 'x', *RUN, preexec_fn=lead_a_group)
    guardian_of(waiting)
    waiting.send_signal(signal.SIGSTOP)
    assert done(holder, input='') == 0
    # It gets the name, if it comes first, and does not answer; the name goes on to the next.
    other = running(start, '-w', f'{BOUND}s', 'x')
    waiting.send_signal(signal.SIGCONT)
    assert done(other, input='') == 0
    fence = int(waiting.stdout.readline())
    assert fence > other.fence > holder.fence
    assert done(waiting, input='') == 0


def test_a_name_is_kept_for_at_least_so_long(cluster, baton):
    assert cluster('--at-least', '1h', 'x', 'sh', '-c', 'exit 3').returncode == 3
    assert holders(baton) == ['lock/x']
    guardian = int(HELD.fullmatch(cluster('-n', 'x', 'true').stderr).group(3))
    pidfd = descriptor(guardian)
    os.kill(guardian, signal.SIGTERM)
    ends(pidfd)
    assert cluster('-n', 'x', 'true').returncode == 0


def test_a_name_that_is_kept_is_renewed(cluster, store):
    assert cluster('--at-least', '1h', '--ttl', '3s', 'x', 'true').returncode == 0
    seen = set()
    wait_until(lambda: seen.add(lease(store, 'lock/x')) or len(seen) > 2)
    guardian = int(HELD.fullmatch(cluster('-n', 'x', 'true').stderr).group(3))
    pidfd = descriptor(guardian)
    os.kill(guardian, signal.SIGTERM)
    ends(pidfd)


def test_force_ends_the_command(start, cluster, baton):
    process = with_daemon(start, 'x', '--ttl', '1d', then=GOES_ON)
    assert process.stdout.readline() == 'on\n'
    daemon, guardian = descriptor(process.daemon), guardian_of(process)
    result = baton('force-release', '--cluster', 'x')
    assert (result.returncode, result.stderr) == (0, '')
    assert re.fullmatch(rf'lock/x was held by \S+ \(pid {guardian}\), fence \d+, since \S+ \S+, '
                        r'until \S+ \S+\n', result.stdout)
    # On this host the next command starts when nothing of the last one is left.
    result = cluster('x', *says_if_alive(process.daemon))
    assert (result.stdout, result.stderr) == ('', '')
    assert done(process) == LOST
    assert process.err == ('baton: x was lost, so the command and all that it had started were '
                           'ended\n')
    ends(daemon)
    result = baton('force-release', '--cluster', 'x')
    assert (result.returncode, result.stdout, result.stderr) == (
        NO, '', "baton: nobody holds 'lock/x'\n")


def locked(store, guardian):
    """Another process has the store's lock, and keeps it."""
    db = sqlite3.connect(store, isolation_level=None, timeout=BOUND)
    db.execute('BEGIN IMMEDIATE')
    return db.close


def removed(store, guardian):
    for name in os.listdir(store.parent):
        if (store.parent / name).is_file():
            os.unlink(store.parent / name)
    return lambda: None


def unwritable(store, guardian):
    """For the guardian there is no room for one more byte."""
    resource.prlimit(guardian, resource.RLIMIT_FSIZE, (0, 0))
    return lambda: None


TROUBLES = [locked, removed, unwritable]


@pytest.mark.parametrize('trouble', TROUBLES)
@pytest.mark.parametrize('then', [GOES_ON, DEAF], ids=['heeds SIGTERM', 'is deaf'])
def test_a_store_that_fails_ends_the_command_and_its_daemons(start, cluster, store, trouble, then):
    process = with_daemon(start, '--ttl', '3s', 'x', then=then)
    assert process.stdout.readline() == 'on\n'
    guardian = guardian_of(process)
    [command] = [c for c in children(guardian) if c != process.daemon]
    pidfds = [descriptor(pid) for pid in (command, process.daemon)]
    mend = trouble(store, guardian)
    # It is still in trouble when they end.
    for pidfd in pidfds:
        ends(pidfd)
    assert done(process) == LOST
    assert re.fullmatch(r'baton: x was lost \(it could not be renewed in time(: .+)?\), so the '
                        r'command and all that it had started were ended\n', process.err)
    mend()
    assert cluster('x', 'true').returncode == 0


def test_why_it_could_not_be_renewed_is_said(start, store):
    process = running(start, '--ttl', '3s', 'x')
    removed(store, guardian_of(process))
    assert done(process) == LOST
    assert f'in time: store {store} was removed or replaced while it was open' in process.err


def test_a_command_has_ended_before_others_can_have_the_lease(start, store):
    """Those who know nothing of latches, as on other hosts, get it when its time is over."""
    process = with_daemon(start, '--ttl', '4s', 'x', then=GOES_ON)
    assert process.stdout.readline() == 'on\n'
    guardian = guardian_of(process)
    [command] = [c for c in children(guardian) if c != process.daemon]
    unwritable(store, guardian)
    wait_until(lambda: others_hold_it('lock/x'))
    assert not lives(command) and not lives(process.daemon)
    assert done(process) == LOST


def test_a_guardian_that_is_stopped_past_its_ttl_ends_the_command_when_it_wakes(start, cluster):
    holder = running(start, '--ttl', '3s', 'x')
    guardian = guardian_of(holder)
    os.kill(guardian, signal.SIGSTOP)

    def only_the_latch_keeps_it():
        result = cluster('-n', 'x', 'echo', 'ran')
        assert (result.returncode, result.stdout) == (YIELDED, '')
        return FORMER.fullmatch(result.stderr)
    wait_until(only_the_latch_keeps_it)
    os.kill(guardian, signal.SIGCONT)
    assert done(holder) == LOST
    assert holder.err.startswith('baton: x was lost')
    assert cluster('x', 'true').returncode == 0


def test_a_store_that_is_locked_when_the_command_ends_does_not_keep_its_status(start, cluster,
                                                                              store):
    process = running(start, '--ttl', '5s', 'x')
    mend = locked(store, None)
    assert done(process, input='') == 0
    mend()
    assert cluster('x', 'true').returncode == 0


@pytest.mark.parametrize('arguments, line', [
    (['x', '--fleet', '/f', 'true'],
     '--cluster and --fleet cannot be together: a store is no fleet'),
    (['x', '--ttl', '0', 'true'], '--ttl is 0: 1ms to 1d are allowed'),
    (['x', '--ttl', '25h', 'true'], '--ttl is 1d 1h: 1ms to 1d are allowed'),
    (['x', '--ttl', 'infinity', 'true'], '--ttl is infinity: 1ms to 1d are allowed'),
    (['x', '--store', 'jobs.db', 'true'],
     "'jobs.db' is no store: a file is given as 'sqlite:jobs.db'"),
    (['n' * 251, 'true'],
     'in a store, namespace and label have 255 bytes together: at most 254 are allowed'),
    (['a\tb', 'true'], None),
    (['b\udcff', 'true'], None),
    (['lane/q/a', 'true'], "the namespace 'lane' is for what the store keeps itself: use another"),
    (['pull/q', 'true'], "the namespace 'pull' is for what the store keeps itself: use another"),
])
def test_a_wrong_call_gets_one_clear_line(cluster, store, arguments, line):
    result = cluster(*arguments)
    assert (result.returncode, result.stdout) == (USAGE, '')
    assert re.fullmatch(r'baton: [^\n]+\n', result.stderr)
    assert line is None or result.stderr == f'baton: {line}\n'
    assert not store.exists()


@pytest.mark.parametrize('name, words', [
    ('x' * 300, 'in a store, namespace and label have 304 bytes together: at most 254 are allowed'),
    ('a\nb', 'the label has the control character U+000A at byte 1'),
    (b'\xff', 'the label is not valid UTF-8 at byte 0'),
    (b'a\xff/b', 'the namespace is not valid UTF-8 at byte 1'),
])
def test_a_name_that_no_lease_can_have_is_refused_before_the_store_is_opened(
        baton, store, name, words):
    for command in (['lock', '--cluster', name, 'true'], ['force-release', '--cluster', name]):
        result = baton(*command)
        assert (result.returncode, result.stdout, result.stderr) == (USAGE, '', f'baton: {words}\n')
    assert not store.exists()


def test_a_store_is_only_for_a_cluster(baton):
    for command in (['lock', 'x', '--store', 'sqlite:a', 'true'],
                    ['force-release', '--store', 'sqlite:a', 'x']):
        result = baton(*command)
        assert result.returncode == USAGE
        assert result.stderr == 'baton: --store is for --cluster: a fleet is a file of its own\n'
    result = baton('force-release', '--cluster', '--fleet', '/f', 'x')
    assert (result.returncode, result.stderr) == (
        USAGE, 'baton: --cluster and --fleet cannot be together: a store is no fleet\n')


def test_a_long_name_fits(cluster):
    assert cluster('n' * 250, 'true').returncode == 0


def test_what_is_no_store_is_left_alone_and_nothing_runs(cluster, store):
    store.write_text('This is a text, and nothing like a store.\n' * 50)
    result = cluster('x', 'echo', 'ran')
    assert (result.returncode, result.stdout, result.stderr) == (
        DATA, '', f'baton: {store} is no store: it is not an SQLite file\n')
    assert store.read_text().startswith('This')
    result = cluster('--store', 'sqlite:/nonexistent/store.db', 'x', 'echo', 'ran')
    assert (result.returncode, result.stdout, result.stderr) == (
        IO_ERROR, '', 'baton: cannot open store /nonexistent/store.db: No such file or directory\n')


def test_behind_a_locked_store_nothing_runs(start, cluster, store):
    assert cluster('x', 'true').returncode == 0
    mend = locked(store, None)
    result = cluster('-n', 'x', 'echo', 'ran')
    assert (result.returncode, result.stdout) == (YIELDED, '')
    assert 'has kept store' in result.stderr
    result = cluster('-w', '100ms', 'x', 'echo', 'ran')
    assert (result.returncode, result.stdout) == (YIELDED, '')
    assert 'locked for more than 1000 ms' in result.stderr
    waiting = start('x', 'echo', 'ran')
    guardian_of(waiting)
    mend()
    assert (done(waiting), waiting.out) == (0, 'ran\n')


def test_a_signal_while_it_waits_ends_the_wait(start, cluster):
    holder = running(start, 'x')
    waiting = start('x', 'echo', 'ran')
    guardian = descriptor(guardian_of(waiting))
    waiting.send_signal(signal.SIGTERM)
    assert done(waiting) == -signal.SIGTERM and waiting.out == ''
    ends(guardian)
    assert done(holder, input='') == 0


def test_two_names_can_be_held_one_within_the_other(cluster):
    result = cluster('x', BATON, 'lock', '--cluster', 'y', 'echo', 'both')
    assert (result.returncode, result.stdout, result.stderr) == (0, 'both\n', '')
