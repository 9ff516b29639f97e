"""The commands about a fleet: who holds what, what happens, taking away, making and removing."""
import calendar
import json
import os
import tempfile
import shutil
import pathlib
import pwd
import re
import select
import signal
import stat
import subprocess
import time

import pytest

OK, NO, USAGE, DATA, UNAVAILABLE, SYSTEM, IO_ERROR, BUSY, PERMISSION = (
    0, 1, 64, 65, 69, 71, 74, 75, 77)
COMMANDS = [['holders'], ['watch'], ['force-release', 'x'], ['fleet'], ['fleet', '--create'],
            ['fleet', '--reset']]
PATIENCE = 60       # seconds that something may take that is certain to happen


class Lines:
    """The lines that a process writes, each waited for."""
    def __init__(self, process):
        self.process = process
        self.rest = b''

    def next(self):
        end = time.monotonic() + PATIENCE
        while b'\n' not in self.rest:
            left = end - time.monotonic()
            assert select.select([self.process.stdout], [], [], max(left, 0))[0], 'silence'
            got = os.read(self.process.stdout.fileno(), 65536)
            assert got, f'ended after {self.rest}'
            self.rest += got
        line, self.rest = self.rest.split(b'\n', 1)
        return line.decode()


class Mate:
    """A member of a fleet that does what it is told."""
    def __init__(self, path, owner, *limits):
        self.process = subprocess.Popen(
            [os.environ['BATON_MATE'], path, owner, *map(str, limits)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE)
        self.lines = Lines(self.process)
        self.pid = self.process.pid
        assert self.lines.next() == 'joined'

    def tell(self, *words):
        hexed = [w.hex() if isinstance(w, bytes) else str(w) for w in words]
        self.process.stdin.write(' '.join(hexed).encode() + b'\n')
        self.process.stdin.flush()

    def ask(self, *words):
        self.tell(*words)
        return self.lines.next()

    def hold(self, space, label, ttl_ms=0):
        return int(self.ask('try', space, label, ttl_ms))

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        self.process.stdin.close()
        self.process.wait(PATIENCE)
        self.process.stdout.close()


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / 'fleet')


@pytest.fixture
def mate(path):
    """Starts members, and ends them with the test."""
    mates = []

    def start(owner='ada', *limits, at=path):
        mates.append(Mate(at, owner, *limits))
        return mates[-1]
    yield start
    for m in mates:
        m.process.kill()
        m.end()


@pytest.fixture
def watcher(path):
    """Starts `baton watch`, and ends it with the test."""
    started = []

    def start(*arguments, **options):
        process = subprocess.Popen([os.environ['BATON_BIN'], 'watch', '--fleet', path, *arguments],
                                   **{'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE,
                                      **options})
        started.append(process)
        return process, Lines(process)
    yield start
    for process in started:
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream:
                stream.close()


def objects(result):
    assert (result.returncode, result.stderr) == (OK, '')
    return [json.loads(line) for line in result.stdout.splitlines()]


def events(lines, until):
    """What a watch with --json says, up to and with the first event for which `until` holds."""
    told = []
    while not told or not until(told[-1]):
        told.append(json.loads(lines.next()))
    return told


def is_event(name):
    return lambda e: e['event'] == name


def synced(lines):
    return events(lines, is_event('synced'))


def complaint(result, status):
    """The one line of a command that failed."""
    assert (result.returncode, result.stdout) == (status, ''), result.stderr
    line = re.fullmatch(r'baton: ([^\n]+)\n', result.stderr)
    assert line, result.stderr
    return line.group(1)


def test_holders_are_listed_by_namespace_and_label(baton, mate, path):
    ada, ben = mate('ada'), mate('ben')
    fences = [ada.hold(b'lock', b'b'), ben.hold(b'lock', b'a', 3600000), ada.hold(b'jobs', b'z'),
              ben.hold(b'lock', b'ab')]
    rows = baton('holders', '--fleet', path).stdout.splitlines()
    assert rows[0].split() == ['SUBJECT', 'OWNER', 'PID', 'FENCE', 'SINCE', 'HELD', 'EXPIRES',
                               'LEFT']
    assert [r.split()[:4] for r in rows[1:]] == [
        ['jobs/z', 'ada', str(ada.pid), str(fences[2])],
        ['lock/a', 'ben', str(ben.pid), str(fences[1])],
        ['lock/ab', 'ben', str(ben.pid), str(fences[3])],
        ['lock/b', 'ada', str(ada.pid), str(fences[0])],
    ]
    assert rows[1].endswith(' -') and ' never ' in rows[1]
    assert re.search(r'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d +5\dmin \d+s$|  1h$', rows[2])


def test_the_columns_are_aligned_and_have_no_blanks_at_their_end(baton, mate, path):
    ada = mate('ada')
    ada.hold(b'lock', '\u20ac'.encode() * 30)
    ada.hold(b'lock', b'x')
    rows = baton('holders', '--fleet', path).stdout.splitlines()
    assert len({r.index('ada') for r in rows[1:]} | {rows[0].index('OWNER')}) == 1
    assert len({len(r) for r in rows}) == 1
    assert all(r == r.rstrip() for r in rows)


def test_holders_as_json_have_times_that_fit(baton, mate, path):
    ada = mate('ada')
    before = time.time()
    fence = ada.hold(b'lock', b'x', 3600000)
    (found,) = objects(baton('holders', '--json', '--fleet', path))
    after = time.time()
    assert {k: found[k] for k in ('namespace', 'label', 'owner', 'pid', 'fence')} == {
        'namespace': 'lock', 'label': 'x', 'owner': 'ada', 'pid': ada.pid, 'fence': fence}
    assert re.fullmatch('[0-9a-f]{32}', found['incarnation'])
    # `since` is to a few milliseconds, and both clocks are read one after the other.
    assert before - 1 <= moment(found['since']) <= after + 1
    assert before + 3599 <= moment(found['expires']) <= after + 3601
    assert 0 <= found['held_ms'] <= (after - before) * 1000 + 1000
    assert 3600000 - (after - before) * 1000 - 1000 <= found['left_ms'] <= 3600000


def moment(text):
    """Seconds since 1970 of an RFC 3339 time in UTC."""
    seconds, ms = re.fullmatch(r'(.*)\.(\d{3})Z', text).groups()
    return calendar.timegm(time.strptime(seconds, '%Y-%m-%dT%H:%M:%S')) + int(ms) / 1000


def test_times_for_people_are_in_their_zone(baton, mate, path):
    mate().hold(b'lock', b'x')
    east = baton('holders', '--fleet', path, env={'TZ': 'EAST-5'}).stdout
    utc = baton('holders', '--fleet', path, env={'TZ': 'UTC0'}).stdout
    times = [time.strptime(re.search(r'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d', t).group(),
                           '%Y-%m-%d %H:%M:%S') for t in (east, utc)]
    assert time.mktime(times[0]) - time.mktime(times[1]) == 5 * 3600


def test_a_hold_without_an_end_has_none_in_json(baton, mate, path):
    mate().hold(b'lock', b'x')
    (found,) = objects(baton('holders', '--json', '--fleet', path))
    assert (found['expires'], found['left_ms']) == (None, None)


@pytest.mark.parametrize('which, labels', [
    ('lock', ['a', 'a/b']), ('jobs', ['a']), ('lock/a', ['a']), ('lock/a/b', ['a/b']),
    ('none', []), ('lock/none', []), ('loc', []),
])
def test_holders_can_be_chosen(baton, mate, path, which, labels):
    ada = mate()
    for space, label in ((b'lock', b'a'), (b'lock', b'a/b'), (b'jobs', b'a')):
        ada.hold(space, label)
    for arguments in ([which, '--json'], ['--json', which], ['--json', '--', which]):
        found = objects(baton('holders', '--fleet', path, *arguments))
        assert [f['label'] for f in found] == labels


def test_what_is_released_or_expired_or_whose_holder_died_is_not_held(baton, mate, path):
    ada, ben, cleo = mate('ada'), mate('ben'), mate('cleo')
    ada.hold(b'lock', b'released')
    ben.hold(b'lock', b'died')
    cleo.hold(b'lock', b'expired', 1)
    assert ada.ask('release') == 'BATON_OK'
    ben.kill()
    while cleo.ask('check') == 'BATON_OK':
        pass
    result = baton('holders', '--fleet', path)
    assert (result.returncode, result.stdout, result.stderr) == (OK, '', '')


NAMES = [
    (b'lock', b'a\nb\x1b[1m', r'lock/a\x0ab\x1b[1m'),
    (b'lock', b'\x00', r'lock/\x00'),
    (b'lock', b'back\\slash', r'lock/back\\slash'),
    (b'lock', b'\\x41', r'lock/\\x41'),
    (b'lock', '\u20ac\U0001f600'.encode(), 'lock/\u20ac\U0001f600'),
    (b'lock', '\u009b\u202e\u200bx'.encode(), r'lock/\xc2\x9b\xe2\x80\xae\xe2\x80\x8bx'),
    (b'lock', b'\xff\xc0\x80\xe2\x82', r'lock/\xff\xc0\x80\xe2\x82'),
    (b'lock', '\ufffd'.encode(), 'lock/\ufffd'),
    (b'lock', b'\xff\x00\x0f', r'lock/\xff\x00\x0f'),
    (b'lock', b'"quoted"', 'lock/"quoted"'),
    (b'a/b', b'c', r'a\x2fb/c'),
    (b'\xfe' * 31, b'\xfd' * 479, '\\xfe' * 31 + '/' + '\\xfd' * 479),
]


@pytest.mark.parametrize('space, label, shown', NAMES)
def test_any_bytes_can_be_shown_and_read_back(baton, mate, watcher, path, space, label, shown):
    mate('a').hold(space, label)
    rows = baton('holders', '--fleet', path).stdout.split('\n')
    assert len(rows) == 3 and rows[2] == ''
    assert rows[1].startswith(shown + '  ')
    listed = objects(baton('holders', '--fleet', path, '--json'))
    _, lines = watcher('--json')
    told = synced(lines)[:-1]
    for found in (listed, told):
        assert [name_of(f, 'namespace') for f in found] == [space]
        assert [name_of(f, 'label') for f in found] == [label]


def name_of(found, key):
    """The bytes of a name, as the manual says."""
    assert (key + '_hex' in found) == ('\ufffd' in found[key] and found[key] != '\ufffd')
    if key + '_hex' in found:
        return bytes.fromhex(found[key + '_hex'])
    return found[key].encode()


def test_json_has_no_control_characters(baton, mate, path):
    mate().hold(b'lock', '\x00\x1b\x7f\u0085\u009b'.encode())
    written = baton('holders', '--fleet', path, '--json').stdout
    assert all(c.isprintable() for c in written.rstrip('\n'))
    assert json.loads(written)['label'] == '\x00\x1b\x7f\u0085\u009b'


@pytest.mark.parametrize('arguments', [[], ['lock'], ['lock/x'], ['--json']])
def test_in_a_fleet_that_is_not_there_nobody_holds_anything(baton, path, tmp_path, arguments):
    result = baton('holders', '--fleet', path, *arguments)
    assert (result.returncode, result.stdout, result.stderr) == (OK, '', '')
    assert not os.listdir(tmp_path)


def test_verbose_says_which_fleet_it_is(baton, mate, path):
    result = baton('holders', '-v', '--fleet', path)
    assert result.stderr.splitlines() == [
        f"baton: the fleet is '{path}'",
        'baton: there is no such fleet, so nobody holds anything']
    ada = mate()
    result = baton('holders', '--verbose', env={'BATON_FLEET': path})
    assert result.stderr.splitlines() == [f"baton: the fleet is '{path}'",
                                          'baton: nobody holds anything']
    ada.hold(b'lock', b'x')
    for command in (['holders'], ['fleet'], ['force-release', 'x']):
        result = baton(*command, '-v', '--fleet', path)
        assert result.stderr == f"baton: the fleet is '{path}'\n"


def test_the_option_comes_before_the_environment(baton, mate, path, tmp_path):
    mate().hold(b'lock', b'x')
    other = {'BATON_FLEET': str(tmp_path / 'other')}
    assert objects(baton('holders', '--json', '--fleet', path, env=other))
    assert not objects(baton('holders', '--json', env=other))


def test_a_watch_begins_with_what_is_held_and_goes_on_with_what_happens(mate, watcher, path):
    ada = mate('ada')
    first = ada.hold(b'lock', b'x')
    _, lines = watcher('--json')
    held, sync = synced(lines)
    assert (held['event'], held['label'], held['fence'], held['pid']) == ('held', 'x', first,
                                                                         ada.pid)
    assert sync['held'] == 1
    assert ada.ask('release') == 'BATON_OK'
    second = ada.hold(b'jobs', b'y')
    told = events(lines, is_event('claimed'))
    assert [(e['event'], e['namespace'], e['label'], e['fence'], e['owner'], e['pid'])
            for e in told] == [('released', 'lock', 'x', first, 'ada', ada.pid),
                               ('claimed', 'jobs', 'y', second, 'ada', ada.pid)]
    assert all(abs(moment(e['time']) - time.time()) < PATIENCE for e in told)


def test_a_watch_tells_expiry_death_and_force(baton, mate, watcher, path):
    ada, ben = mate('ada'), mate('ben')
    _, lines = watcher('--json')
    synced(lines)
    expired = ada.hold(b'lock', b'x', 1)
    taken = int(ben.ask('wait', b'lock', b'x', 0))
    told = events(lines, lambda e: e['event'] == 'claimed' and e['owner'] == 'ben')
    assert [(e['event'], e['fence'], e['owner']) for e in told] == [
        ('claimed', expired, 'ada'), ('expired', expired, 'ada'), ('claimed', taken, 'ben')]
    assert baton('force-release', 'x', '--fleet', path).returncode == OK
    assert [(e['event'], e['fence'], e['owner']) for e in events(lines, is_event('forced'))] == [
        ('forced', taken, 'ben')]
    last = ben.hold(b'lock', b'x')
    ben.kill()
    told = events(lines, is_event('died'))
    assert [(e['event'], e['fence'], e['pid']) for e in told] == [('claimed', last, ben.pid),
                                                                  ('died', last, ben.pid)]


def test_a_watch_can_be_told_what_to_watch(mate, watcher, path):
    ada = mate()
    ada.hold(b'jobs', b'y')
    _, lines = watcher('--json', 'lock/x')
    (sync,) = synced(lines)
    assert sync['held'] == 0
    ada.hold(b'lock', b'xx')
    ada.hold(b'jobs', b'x')
    fence = ada.hold(b'lock', b'x')
    (event,) = events(lines, is_event('claimed'))
    assert (event['label'], event['fence']) == ('x', fence)


def test_a_watch_for_people_has_one_line_for_each_event(mate, watcher, path):
    ada = mate('ada')
    first = ada.hold(b'lock', b'x\n')
    _, lines = watcher()
    when = r'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}  '
    assert re.fullmatch(when + rf'held      {first}  lock/x\\x0a  ada \(pid {ada.pid}\)',
                        lines.next())
    assert re.fullmatch(when + r'synced +1  held', lines.next())
    ada.ask('release')
    assert re.fullmatch(when + rf'released  {first}  lock/x\\x0a  ada \(pid {ada.pid}\)',
                        lines.next())


def test_a_watch_that_does_not_keep_up_is_told_how_much_it_lost_and_begins_anew(mate, watcher,
                                                                                path):
    ada = mate('ada', 64, 4)
    kept = ada.hold(b'lock', b'kept')
    process, lines = watcher('--json')
    synced(lines)
    process.send_signal(signal.SIGSTOP)
    os.waitpid(process.pid, os.WUNTRACED)
    last = int(ada.ask('churn', b'lock', b'x', 1000))
    process.send_signal(signal.SIGCONT)
    told = synced(lines)
    lost = [e for e in told if e['event'] == 'lost']
    seen = [e for e in told if e['event'] in ('claimed', 'released')]
    # It is told of each event, or that it has lost it.
    assert sum(e['lost'] for e in lost) + len(seen) == 2000
    assert [e['fence'] for e in told if e['event'] == 'held'] == [kept]
    assert (told[-1]['event'], told[-1]['held']) == ('synced', 1)
    assert seen[-1]['fence'] == last


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_watch_well(mate, watcher, number):
    mate()
    # Whoever runs the tests may ignore it, as nohup(1) does.
    process, lines = watcher('--json', preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
    synced(lines)
    process.send_signal(number)
    assert process.wait(PATIENCE) == OK
    assert process.stderr.read() == b''


def test_a_signal_that_was_ignored_from_the_start_is_ignored(mate, watcher):
    ada = mate()
    process, lines = watcher('--json', preexec_fn=lambda: signal.signal(signal.SIGHUP,
                                                                        signal.SIG_IGN))
    synced(lines)
    process.send_signal(signal.SIGHUP)
    ada.hold(b'lock', b'x')
    events(lines, is_event('claimed'))
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == OK


def test_a_signal_ends_a_watch_whose_reader_does_not_read(mate, watcher, path):
    ada = mate()
    process, _ = watcher('--json')
    stop = time.monotonic() + PATIENCE
    while state_of(process.pid) != 'pipe_write':    # the pipe is full
        assert time.monotonic() < stop
        ada.ask('churn', b'lock', b'x', 100)
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == OK
    assert process.stderr.read() == b''


def state_of(pid):
    """Where in the kernel the process sleeps, if it can be known."""
    with open(f'/proc/{pid}/wchan') as file:
        found = file.read()
    if found in ('', '0'):
        with open(f'/proc/{pid}/syscall') as file:
            found = 'pipe_write' if file.read().split()[0] == '1' else ''
    return found.replace('anon_', '')


def test_a_watch_ends_when_its_reader_leaves(mate, watcher):
    mate()
    process, lines = watcher('--json')
    synced(lines)
    process.stdout.close()
    process.stdout = None
    assert process.wait(PATIENCE) == OK
    assert process.stderr.read() == b''


def test_a_watch_ends_when_its_reader_leaves_while_much_happens(mate, watcher):
    ada = mate()
    process, lines = watcher('--json')
    synced(lines)
    process.stdout.close()
    process.stdout = None
    ada.ask('churn', b'lock', b'x', 100)
    assert process.wait(PATIENCE) == OK
    assert process.stderr.read() == b''


def test_a_watch_that_cannot_write_says_so(baton, mate, path):
    mate()
    with open('/dev/full', 'w') as full:
        result = baton('watch', '--fleet', path, stdout=full)
    assert result.returncode == IO_ERROR
    assert result.stderr == 'baton: cannot write to standard output: No space left on device\n'
    result = baton('watch', '--fleet', path, preexec_fn=lambda: os.close(1), stdout=None)
    assert result.returncode == IO_ERROR


def test_a_watch_ends_with_its_fleet(mate, watcher, path):
    mate()
    process, lines = watcher('--json')
    synced(lines)
    os.unlink(path)
    assert process.wait(PATIENCE) == UNAVAILABLE
    assert process.stderr.read().decode() == \
        f"baton: the fleet's file '{path}' was removed or replaced\n"


def test_a_watch_needs_a_fleet(baton, path, tmp_path):
    assert complaint(baton('watch', '--fleet', path), UNAVAILABLE) == \
        f"there is no fleet at '{path}'; 'baton fleet --create' makes one"
    assert not os.listdir(tmp_path)


def test_a_watch_is_no_member_and_leaves_nothing_behind(baton, mate, watcher, path, tmp_path):
    mate('ada')
    before = sorted(os.listdir(tmp_path))
    process, lines = watcher('--json')
    synced(lines)
    (fleet,) = objects(baton('fleet', '--json', '--fleet', path))
    assert [m['owner'] for m in fleet['members']] == ['ada']
    process.kill()
    process.wait()
    assert sorted(os.listdir(tmp_path)) == before


def test_what_is_forced_is_free_and_its_holder_learns_it(baton, mate, path):
    ada, ben = mate('ada'), mate('ben')
    fence = ada.hold(b'lock', b'x', 3600000)
    result = baton('force-release', 'x', '--fleet', path)
    assert (result.returncode, result.stderr) == (OK, '')
    when = r'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d'
    assert re.fullmatch(rf'lock/x was held by ada \(pid {ada.pid}\), fence {fence}, since {when},'
                        rf' until {when}\n', result.stdout)
    assert ada.ask('check') == 'BATON_NOT_HELD'
    assert ben.hold(b'lock', b'x') > fence
    (fleet,) = objects(baton('fleet', '--json', '--fleet', path))
    assert sorted(m['owner'] for m in fleet['members']) == ['ada', 'ben']


def test_without_an_output_nothing_is_forced(baton, mate, path):
    ada = mate()
    ada.hold(b'lock', b'x')
    result = baton('force-release', 'x', '--fleet', path, preexec_fn=lambda: os.close(1),
                   stdout=None)
    assert result.returncode == IO_ERROR
    assert result.stderr == 'baton: cannot write to standard output: Bad file descriptor\n'
    with open('/dev/null') as unwritable:
        assert baton('force-release', 'x', '--fleet', path, stdout=unwritable).returncode == \
            IO_ERROR
    assert ada.ask('check') == 'BATON_OK'


def test_what_is_forced_before_the_output_fails_is_said_to_be(baton, mate, path):
    ada = mate()
    ada.hold(b'lock', b'x')
    with open('/dev/full', 'w') as full:
        result = baton('force-release', 'x', '--fleet', path, stdout=full)
    assert result.returncode == IO_ERROR
    assert result.stderr == ("baton: 'lock/x' was released all the same\n"
                             'baton: cannot write to standard output: No space left on device\n')
    assert ada.ask('check') == 'BATON_NOT_HELD'


def test_force_gives_a_name_to_the_first_in_line(baton, mate, path):
    ada, ben = mate('ada'), mate('ben')
    fence = ada.hold(b'jobs', b'a/b')
    ben.tell('wait', b'jobs', b'a/b', 0)
    in_line(baton, path, 'ben')
    assert baton('force-release', '--fleet', path, 'jobs/a/b').returncode == OK
    assert int(ben.lines.next()) > fence


def in_line(baton, path, owner):
    """Waits until a member waits in line, and gives the fleet then."""
    stop = time.monotonic() + PATIENCE
    while time.monotonic() < stop:
        (fleet,) = objects(baton('fleet', '--json', '--fleet', path))
        if [m['waiting'] for m in fleet['members'] if m['owner'] == owner] == [1]:
            return fleet
    raise AssertionError('nobody waits')


def test_the_longest_label_can_be_forced(baton, mate, path):
    mate('a').hold(b'lock', b'x' * 479)
    assert baton('force-release', 'x' * 479, '--fleet', path).returncode == OK


@pytest.mark.parametrize('there', [True, False])
def test_nobody_to_take_from_is_no(baton, mate, path, tmp_path, there):
    if there:
        mate().hold(b'other', b'x')
    assert complaint(baton('force-release', 'x', '--fleet', path), NO) == "nobody holds 'lock/x'"
    assert there or not os.listdir(tmp_path)


def test_a_fleet_is_made_as_it_is_wanted(baton, path, tmp_path):
    result = baton('fleet', '--create', '--fleet', path, '--members', '5', '--subjects', '7',
                   '--waiters', '9', '--events', '16', '--wakeups', '32')
    assert (result.returncode, result.stdout, result.stderr) == (OK, f"made '{path}'\n", '')
    (fleet,) = objects(baton('fleet', '--json', '--fleet', path))
    assert fleet['limits'] == {'members': 5, 'subjects': 7, 'waiters': 9, 'events': 16,
                               'wakeups': 32}
    assert fleet['usage'] == {'members': 0, 'departed': 0, 'subjects': 0, 'known': 0, 'waiters': 0}
    assert (fleet['path'], fleet['members']) == (path, [])
    assert fleet['bytes'] == os.stat(path).st_size
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert sorted(os.listdir(tmp_path)) == ['fleet', 'fleet.mark']


def test_a_fleet_can_be_for_a_group(baton, path):
    assert baton('fleet', '--create', '--group', '--fleet', path).returncode == OK
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o660
    assert baton('fleet', '--create', '--group', '--fleet', path).returncode == OK


def test_a_fleet_that_is_there_is_fine_if_it_is_as_wanted(baton, path):
    create = ['fleet', '--create', '--fleet', path, '--subjects', '7']
    baton(*create)
    (before,) = objects(baton('fleet', '--json', '--fleet', path))
    for arguments in (create, create[:-2]):
        result = baton(*arguments)
        assert (result.returncode, result.stdout) == (OK, f"there is already '{path}'\n")
    for option, line in (('--subjects=8', '7 subjects and not 8'),
                         ('--events=2', '256 events and not 2')):
        assert complaint(baton(*create[:-2], option), NO) == \
            f"the fleet '{path}' is there already, with {line}"
    assert complaint(baton(*create, '--group'), NO) == \
        f"the fleet '{path}' is there already, and is not for a group"
    (after,) = objects(baton('fleet', '--json', '--fleet', path))
    assert after == before


def test_a_fleet_shows_its_members_and_how_full_it_is(baton, mate, path):
    ben, ada, cleo = mate('ben', 64, 16), mate('ada'), mate('cleo')
    for label in (b'x', b'y', b'z'):
        ada.hold(b'lock', label)
    ada.ask('release')
    ben.tell('wait', b'lock', b'x', 0)
    fleet = in_line(baton, path, 'ben')
    assert [(m['owner'], m['pid'], m['held'], m['waiting']) for m in fleet['members']] == [
        ('ada', ada.pid, 2, 0), ('ben', ben.pid, 0, 1), ('cleo', cleo.pid, 0, 0)]
    assert fleet['usage'] == {'members': 3, 'departed': 0, 'subjects': 2, 'known': 3, 'waiters': 1}
    shown = baton('fleet', '--fleet', path).stdout
    for line in (f'fleet     {path}', f'id        {fleet["id"]}',
                 f'size      {fleet["bytes"]} bytes',
                 f'fences    up to {fleet["mark"]}', 'members   3 of 1024; 0 more have died',
                 'subjects  2 held of 64; 3 known', 'waiters   1 of 4096',
                 'events    16 kept for each member', 'wakeups   4096 kept'):
        assert line in shown.splitlines()
    rows = [line.split() for line in shown.splitlines()[-4:]]
    assert rows[0] == ['MEMBER', 'PID', 'HELD', 'WAITING', 'SINCE', 'FOR']
    assert [r[:4] for r in rows[1:]] == [['ada', str(ada.pid), '2', '0'],
                                         ['ben', str(ben.pid), '0', '1'],
                                         ['cleo', str(cleo.pid), '0', '0']]
    cleo.kill()
    (fleet,) = objects(baton('fleet', '--json', '--fleet', path))
    assert (fleet['usage']['members'], fleet['usage']['departed']) == (2, 1)


def test_with_a_closed_output_no_fleet_is_made_or_removed(baton, path):
    closed = {'stdout': None, 'preexec_fn': lambda: os.close(1)}
    assert baton('fleet', '--create', '--fleet', path, **closed).returncode == IO_ERROR
    assert not os.path.exists(path)
    assert baton('fleet', '--create', '--fleet', path).returncode == OK
    assert baton('fleet', '--reset', '--fleet', path, **closed).returncode == IO_ERROR
    assert os.path.exists(path)


def test_fences_stay_below_the_mark_and_grow_over_a_reset(baton, mate, path):
    ada = mate()
    fence = ada.hold(b'lock', b'x')
    (fleet,) = objects(baton('fleet', '--json', '--fleet', path))
    assert fence <= fleet['mark']
    refused = complaint(baton('fleet', '--reset', '--fleet', path), NO)
    assert f'ada (pid {ada.pid})' in refused
    assert ada.ask('check') == 'BATON_OK'
    ada.kill()
    result = baton('fleet', '--reset', '--fleet', path)
    assert (result.returncode, result.stdout, result.stderr) == (OK, f"removed '{path}'\n", '')
    assert not os.path.exists(path)
    assert complaint(baton('fleet', '--reset', '--fleet', path), UNAVAILABLE)
    assert mate().hold(b'lock', b'x') > fence


@pytest.mark.parametrize('arguments', [[], ['--json'], ['--reset']])
def test_a_fleet_that_is_not_there_cannot_be_shown_or_removed(baton, path, tmp_path, arguments):
    assert complaint(baton('fleet', '--fleet', path, *arguments), UNAVAILABLE) == \
        f"there is no fleet at '{path}'; 'baton fleet --create' makes one"
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize('arguments, line', [
    (['holders', 'a', 'b'], "'holders' takes one argument, but got 'b' too"),
    (['holders', 'a', '--json', 'b'], "'holders' takes one argument, but got 'b' too"),
    (['holders', '--', 'a', '--json'], "'holders' takes one argument, but got '--json' too"),
    (['holders', ''], "the namespace of '' is empty; a name is LABEL or NAMESPACE/LABEL"),
    (['holders', 'lock/'], "the label of 'lock/' is empty; a name is LABEL or NAMESPACE/LABEL"),
    (['watch', '/x'], "the namespace of '/x' is empty; a name is LABEL or NAMESPACE/LABEL"),
    (['watch', 'n' * 32], f"the namespace of '{'n' * 32}' has 32 bytes; 31 are allowed"),
    (['watch', 'n/' + 'l' * 480], f"the label of 'n/{'l' * 74}...' has 480 bytes; 479 are allowed"),
    (['watch', '--jsno'], "unknown option '--jsno'; did you mean '--json'?"),
    (['watch', '-j'], "unknown option '-j'; 'baton watch --help' says more"),
    (['holders', 'lock', '--jsno'], "unknown option '--jsno'; did you mean '--json'?"),
    (['force-release'], "'force-release' needs the name of what is to be released"),
    (['force-release', ''], "the label of '' is empty; a name is LABEL or NAMESPACE/LABEL"),
    (['force-release', 'a', 'b'], "'force-release' takes one argument, but got 'b' too"),
    (['force-release', 'l' * 480], f"the label of '{'l' * 76}...' has 480 bytes; 479 are allowed"),
    (['force-release', 'x', '--json'],
     "unknown option '--json'; 'baton force-release --help' says more"),
    (['fleet', 'x'], "'fleet' takes no argument, but got 'x'"),
    (['fleet', '--create', '--reset'],
     "only one of '--create', '--reset' and '--json' can be done at once"),
    (['fleet', '--members', '3'], "limits and '--group' are for '--create'"),
    (['fleet', '--reset', '--group'], "limits and '--group' are for '--create'"),
    (['fleet', '--create', '--members'], "option '--members' needs a value"),
    (['fleet', '--create', '--members', '0'],
     "'--members' takes a number from 1 to 65000, not '0'"),
    (['fleet', '--create', '--members', '65001'],
     "'--members' takes a number from 1 to 65000, not '65001'"),
    (['fleet', '--create', '--members', '4294967297'],
     "'--members' takes a number from 1 to 65000, not '4294967297'"),
    (['fleet', '--create', '--subjects', '-1'],
     "'--subjects' takes a number from 1 to 4194304, not '-1'"),
    (['fleet', '--create', '--waiters', '1k'],
     "'--waiters' takes a number from 1 to 1048576, not '1k'"),
    (['fleet', '--create', '--waiters', ''],
     "'--waiters' takes a number from 1 to 1048576, not ''"),
    (['fleet', '--create', '--events', '3'], "'--events' takes a power of 2, not 3"),
    (['fleet', '--create', '--wakeups', '100'], "'--wakeups' takes a power of 2, not 100"),
])
def test_a_wrong_call_gets_one_clear_line(baton, path, tmp_path, arguments, line):
    assert complaint(baton(*arguments, env={'BATON_FLEET': path}), USAGE) == line
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize('command', COMMANDS)
@pytest.mark.parametrize('where, line', [
    ('fleet', "'fleet' is no path of a fleet; it must be the absolute path of a file"),
    ('', "'' is no path of a fleet; it must be the absolute path of a file"),
    ('/tmp/', "'/tmp/' is no path of a fleet; it must be the absolute path of a file"),
    ('/' + 'x' * 4000, 'the path of the fleet has 4001 bytes; 4000 are allowed'),
])
def test_a_fleet_has_an_absolute_path(baton, command, where, line):
    assert complaint(baton(*command, '--fleet', where), USAGE) == line


@pytest.mark.parametrize('command', COMMANDS)
def test_a_bad_environment_is_a_wrong_call(baton, command):
    assert 'BATON_FLEET' in complaint(baton(*command, env={'BATON_FLEET': 'here/fleet'}), USAGE)


def foreign(path):
    with open(path, 'w') as file:
        file.write('my thesis\n' * 1000)
    os.chmod(path, 0o600)


def short(path):
    subprocess.run([os.environ['BATON_BIN'], 'fleet', '--create', '--fleet', path], check=True,
                   stdout=subprocess.DEVNULL)
    os.truncate(path, 100000)


def headless(path):
    short(path)
    with open(path, 'r+b') as file:
        file.write(b'\xff' * 4096)


def open_to_all(path):
    short(path)
    os.chmod(path, 0o666)


def folder(path):
    os.mkdir(path)


def link(path):
    os.symlink('/etc/passwd', path)


@pytest.mark.parametrize('command', COMMANDS)
@pytest.mark.parametrize('make', [foreign, short, headless, open_to_all])
def test_what_is_no_fleet_is_refused_and_left_alone(baton, path, command, make):
    make(path)
    with open(path, 'rb') as file:
        before = file.read()
    assert path in complaint(baton(*command, '--fleet', path), DATA)
    with open(path, 'rb') as file:
        assert file.read() == before


@pytest.mark.parametrize('command', COMMANDS)
@pytest.mark.parametrize('mode, why', [(0o000, 'not all who share it have permission to use it'),
                                       (0o400, 'not all who share it have permission to use it'),
                                       (0o666, 'anybody may have written to it')])
def test_a_fleet_of_another_mode_is_refused_for_what_that_means(baton, path, command, mode, why):
    short(path)
    os.chmod(path, mode)
    result = baton(*command, '--fleet', path)
    if result.returncode == PERMISSION:     # who is not root cannot look at its mode
        assert complaint(result, PERMISSION) == f"'{path}' cannot be opened: Permission denied"
    else:
        assert complaint(result, DATA) == (f"'{path}' has mode {mode:03o} instead of 600 or 660, "
                                           f'so {why}; it was left as it is')


@pytest.mark.parametrize('command', COMMANDS)
@pytest.mark.parametrize('make', [folder, link])
def test_what_is_no_file_is_refused(baton, path, command, make):
    make(path)
    result = baton(*command, '--fleet', path)
    assert result.returncode in (DATA, SYSTEM)
    assert complaint(result, result.returncode).startswith(f"'{path}' ")


@pytest.mark.parametrize('command', COMMANDS)
def test_a_path_with_a_line_feed_makes_no_second_line(baton, path, command):
    foreign(path + '\n\033[1m')
    complaint(baton(*command, '--fleet', path + '\n\033[1m'), DATA)


@pytest.mark.parametrize('command', COMMANDS)
def test_a_folder_that_is_not_there_is_said_to_be_missing(baton, tmp_path, command):
    line = complaint(baton(*command, '--fleet', str(tmp_path / 'none/fleet')), SYSTEM)
    assert line == f"the folder '{tmp_path}/none' cannot be opened: No such file or directory"
    assert not os.listdir(tmp_path)


@pytest.fixture
def nobody():
    """What makes a command run as a user without rights."""
    if os.geteuid() != 0:
        pytest.skip('only root can become somebody else')
    user = pwd.getpwnam('nobody')

    def become():
        os.setgroups([])
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)
    return become


@pytest.fixture
def public():
    """A folder that everybody can reach; not below pytest's own, which it keeps to itself."""
    below = pathlib.Path(tempfile.mkdtemp())
    below.chmod(0o755)
    yield below
    shutil.rmtree(below)


@pytest.mark.parametrize('command', COMMANDS)
def test_somebody_else_s_fleet_is_refused(baton, public, nobody, command):
    path = str(public / 'fleet')
    assert baton('fleet', '--create', '--fleet', path).returncode == OK
    line = complaint(baton(*command, '--fleet', path, preexec_fn=nobody), PERMISSION)
    assert line == f"'{path}' cannot be opened: Permission denied"


def test_without_permission_no_fleet_is_made(baton, public, nobody):
    path = str(public / 'fleet')
    line = complaint(baton('fleet', '--create', '--fleet', path, preexec_fn=nobody), PERMISSION)
    assert line.endswith('Permission denied')
    assert not os.listdir(public)


@pytest.mark.parametrize('command', COMMANDS)
def test_a_folder_of_somebody_else_is_refused(baton, public, nobody, command):
    user = pwd.getpwnam('nobody')
    mine = public / 'mine'
    mine.mkdir()
    os.chown(mine, user.pw_uid, user.pw_gid)
    line = complaint(baton(*command, '--fleet', str(mine / 'fleet')), DATA)
    assert line.startswith(f"the folder '{mine}' belongs to uid {user.pw_uid}; ")
    assert not os.listdir(mine)


def test_a_fleet_that_is_full_is_unavailable(baton, mate, path):
    baton('fleet', '--create', '--members', '1', '--fleet', path)
    ada = mate()
    ada.hold(b'lock', b'x')
    line = complaint(baton('force-release', 'x', '--fleet', path), UNAVAILABLE)
    assert line == f"the fleet '{path}' has 1 members, which is its limit"
    assert ada.ask('check') == 'BATON_OK'


# A library that answers one call with a number, and is loaded before the real one.
ANSWER = '''
int baton_claim_force(void *fleet, void *subject, void *holder);
int baton_claim_force(void *fleet, void *subject, void *holder)
{
	(void)fleet; (void)subject; (void)holder;
	return %d;
}
'''


@pytest.mark.parametrize('number, status', [
    (1, NO), (2, NO), (3, BUSY), (4, BUSY), (5, DATA), (6, UNAVAILABLE), (7, SYSTEM), (8, SYSTEM),
    (9, BUSY), (10, UNAVAILABLE), (11, NO), (99, 70),
])
def test_every_error_has_its_status(baton, path, tmp_path, number, status):
    baton('fleet', '--create', '--fleet', path)
    (tmp_path / 'answer.c').write_text(ANSWER % number)
    library = str(tmp_path / 'answer.so')
    subprocess.run(['cc', '-shared', '-fPIC', str(tmp_path / 'answer.c'), '-o', library],
                   check=True)
    complaint(baton('force-release', 'x', '--fleet', path, env={'LD_PRELOAD': library}), status)


@pytest.mark.parametrize('command', [['holders'], ['holders', '--json'], ['fleet'],
                                     ['fleet', '--json'], ['fleet', '--create']])
def test_a_full_output_is_reported(baton, mate, path, command):
    mate().hold(b'lock', b'x')
    with open('/dev/full', 'w') as full:
        result = baton(*command, '--fleet', path, stdout=full)
    assert result.returncode == IO_ERROR
    assert result.stderr == 'baton: cannot write to standard output: No space left on device\n'


def test_many_holders_are_all_listed(baton, mate, path):
    ada = mate()
    labels = sorted(f'{i:x}-{"y" * (i % 50)}' for i in range(1000))
    for label in labels:
        ada.hold(b'lock', label.encode())
    assert [f['label'] for f in objects(baton('holders', '--json', '--fleet', path))] == labels
    rows = baton('holders', '--fleet', path).stdout.splitlines()
    assert [r.split()[0] for r in rows[1:]] == ['lock/' + label for label in labels]
