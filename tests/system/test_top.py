"""baton top: what it shows on a terminal, and what its keys do to the store."""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

import pytest

PATIENCE = 120      # seconds that something may take that is certain to happen


class Screen:
    """A terminal with a program on it: what was written, a character in each place."""

    def __init__(self, shop, rows, columns, before, *arguments):
        self.rows, self.columns = rows, columns
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))
        self.before = termios.tcgetattr(self.slave)
        self.cells = [[' '] * columns for _ in range(rows)]
        self.row = self.column = 0
        self.left = b''
        self.seen = b''
        self.process = subprocess.Popen(
            [*before, os.environ['BATON_BIN'], 'top', *arguments],
            stdin=self.slave, stdout=self.slave,
            stderr=subprocess.PIPE, env={**shop.env, 'TERM': 'xterm'})

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stderr.close()
        os.close(self.master)
        os.close(self.slave)

    def sequence(self, text):
        """An escape sequence at the beginning of the text: its length, once it is whole."""
        end = next((i for i in range(2, len(text)) if 0x40 <= text[i] <= 0x7e), None)
        if end is None:
            return 0
        if text[end:end + 1] == b'H':
            self.row = self.column = 0
        elif text[end:end + 1] in b'KJ':
            last = self.rows if text[end:end + 1] == b'J' else self.row + 1
            self.cells[self.row][self.column:] = [' '] * (self.columns - self.column)
            for row in range(self.row + 1, last):
                self.cells[row] = [' '] * self.columns
        return end + 1

    def write(self, data):
        self.seen += data
        text = self.left + data
        while text:
            if text[:1] == b'\x1b':
                length = self.sequence(text)
                if length == 0:
                    break
                text = text[length:]
                continue
            if text[:1] == b'\r':
                self.column = 0
            elif text[:1] == b'\n':
                self.row += 1
            else:
                assert self.row < self.rows and self.column < self.columns, 'outside'
                self.cells[self.row][self.column] = chr(text[0])
                self.column += 1
            text = text[1:]
        self.left = text

    def lines(self):
        return [''.join(row).rstrip() for row in self.cells]

    def until(self, found):
        """Reads until that is true of the lines."""
        limit = time.monotonic() + PATIENCE
        while not found(self.lines()):
            ready, _, _ = select.select([self.master], [], [], max(0, limit - time.monotonic()))
            assert ready, '\n'.join(self.lines())
            self.write(os.read(self.master, 65536))
        return self.lines()

    def until_line(self, *parts):
        return self.until(lambda lines: any(all(p in line for p in parts) for line in lines))

    def press(self, keys):
        os.write(self.master, keys)

    def ends(self):
        """The status, once the terminal is as it was."""
        os.set_blocking(self.master, False)
        while self.process.poll() is None:
            if select.select([self.master], [], [], 0.1)[0]:
                self.seen += os.read(self.master, 65536)
        while select.select([self.master], [], [], 0)[0]:
            self.seen += os.read(self.master, 65536)
        assert termios.tcgetattr(self.slave) == self.before
        assert self.seen.endswith(b'\x1b[?25h\x1b[?1049l')
        assert self.process.stderr.read() == b''
        return self.process.returncode


@pytest.fixture
def screen(shop):
    opened = []

    def start(*arguments, rows=24, columns=80, before=()):
        opened.append(Screen(shop, rows, columns, before, *arguments))
        return opened[-1]
    yield start
    for one in opened:
        one.close()


@pytest.fixture
def dead(shop):
    """A store with a queue in which two jobs are dead."""
    shop.ok('queue', 'set', 'mail', 'attempts=1', 'lane-attempts=1')
    ids = []
    for lane in 'ada', 'bob':
        shop.ok('put', 'mail', '--lane', lane, 'x')
        claim = shop.claim('mail')
        shop.ok('fail', '--error', f'no {lane}', env=claim['env'])
        ids.append(claim['jobs'][0]['id'])
    return ids


@pytest.fixture
def keyed(shop):
    """A key that a claim holds, for which three wait, and one for which nobody does."""
    shop.ok('queue', 'set', 'mail', 'keep=1h')
    ids = [shop.put('mail', '--concurrency-key', key, 'x') for key in ('hot', 'hot', 'hot', 'hot')]
    claim = shop.claim('mail', '--owner', 'ada')
    assert claim['jobs'][0]['id'] == ids[0]
    shop.put('mail', '--concurrency-key', 'free', 'x')
    return claim


def test_keys_that_hold_others_up_are_shown_until_they_do_not(shop, screen, keyed):
    top = screen('--interval', '100ms')
    lines = top.until_line('hot', 'mail', '3', 'ada')
    title = next(line for line in lines if line.startswith(' KEY'))
    assert title.split() == ['KEY', 'QUEUE', 'WAITING', 'HELD', 'BY', 'OWNER', 'FOR']
    row = next(line for line in lines if line.startswith(' hot '))
    assert row.split()[:5] == ['hot', 'mail', '3', keyed['jobs'][0]['id'], 'ada']
    assert not any(line.startswith(' free') for line in lines)
    shop.ok('complete', env=keyed['env'])
    top.until(lambda lines: not any(line.startswith((' KEY', ' hot')) for line in lines))
    top.press(b'q')
    assert top.ends() == 0


def test_many_keys_leave_room_for_the_rest(shop, screen, dead, keyed):
    lines = ''.join(json.dumps({'payload': 'x', 'concurrency_key': f'key{i}'}) + '\n'
                    for i in range(4) for _ in 'ab')
    shop.ok('put', 'many', '--file', '-', input=lines.encode())
    for _ in range(4):
        shop.claim('many')
    top = screen(rows=15)
    lines = top.until(lambda lines: lines[14].startswith('q quit'))
    assert lines[3].startswith('>mail') and any('no ada' in line for line in lines)
    assert any(line.startswith(' hot ') for line in lines)
    assert 0 < sum(line.startswith(' key') for line in lines) < 4
    top.press(b'q')
    assert top.ends() == 0


def test_once_names_the_keys_that_hold_others_up(shop, keyed):
    job = keyed['jobs'][0]['id']
    assert re.search(rf'^key: hot of mail holds up 3: job {job} has it, claimed by ada \S+ ago$',
                     shop.ok('top', '--once'), re.MULTILINE)
    _, key = shop.objects('top', '--once')
    assert key.pop('claimed') == shop.object('show', job)['claim']['claimed']
    assert key == {'concurrency_key': 'hot', 'queue': 'mail', 'waiting': 3, 'holder': job,
                   'owner': 'ada', 'due': None}


def test_a_key_is_shown_though_its_first_waiter_names_another_one(shop):
    """One with several keys waits for the first of them that is full; the others are held, too."""
    both = ['--concurrency-key', 'a', '--concurrency-key', 'b']
    first, _ = [shop.put('mail', *both, 'x') for _ in 'xy']
    third = shop.put('mail', '--lane', 'l', '--concurrency-key', 'b', '--concurrency-key', 'c', 'x')
    shop.claim('mail', '--owner', 'ada')
    assert shop.object('why', third)['key'] == 'b'
    shown = {key['concurrency_key']: key for key in shop.objects('top', '--once')[1:]}
    assert {name: (key['waiting'], key['holder']) for name, key in shown.items()} == {
        'a': (1, first), 'b': (2, first)}


def test_a_key_of_several_that_may_be_held_more_often_holds_up_nobody(shop):
    shop.ok('queue', 'set', 'mail', 'key-limit=2')
    both = ['--concurrency-key', 'a', '--concurrency-key', 'b']
    for keys in (both, ['--concurrency-key', 'a', '--lane', 'l'], both):
        shop.put('mail', *keys, 'x')
    shop.claim('mail', '--owner', 'ada')
    shop.claim('mail', '--owner', 'bob')
    assert [key['concurrency_key'] for key in shop.objects('top', '--once')[1:]] == ['a']


def test_a_key_that_is_kept_for_a_retry_is_told_so(shop):
    shop.ok('queue', 'set', 'mail', 'hold-on-retry=keep', 'base=1h', 'cap=1h')
    first, _ = [shop.put('mail', '--concurrency-key', 'k', 'x') for _ in 'ab']
    shop.ok('fail', '--error', 'no', env=shop.claim('mail')['env'])
    assert (f'key: k of mail holds up 1: job {first} has it, and keeps it for its next attempt\n'
            in shop.ok('top', '--once'))
    _, key = shop.objects('top', '--once')
    assert (key['owner'], key['claimed']) == (None, None)
    assert key['due'] == shop.object('show', first)['due']


def test_queues_runners_and_dead_jobs_are_shown_on_80_columns(shop, screen, dead):
    shop.ok('queue', 'set', 'a-queue-with-a-name-that-is-too-long-for-its-column', 'shards=200')
    top = screen()
    lines = top.until(lambda lines: lines[23].startswith('q quit'))
    assert lines[0].startswith('baton top  ') and lines[0].endswith('2 queues, 0 runners, 2 dead')
    assert lines[2].split() == ['QUEUE', 'READY', 'ON-KEY', 'DELAYED', 'RUNNING', 'DEAD', 'DONE/S',
                                'FAILED/S', 'OLDEST']
    assert lines[3].startswith('>a-queue-with-a-n ')
    assert lines[4].startswith(' mail ') and lines[4].split()[1:6] == ['0', '0', '0', '0', '2']
    assert any('no ada' in line for line in lines)
    assert not any(len(line) > 80 for line in lines)
    top.press(b'q')
    assert top.ends() == 0


def test_a_queue_is_paused_and_resumed(shop, screen):
    for queue in 'one', 'two':
        shop.ok('put', queue, 'x')
    top = screen('--interval', '1h')
    top.until_line('>one')
    top.press(b'\x1b[B')
    top.until_line('>two')
    top.press(b'p')
    top.until_line('two is paused')
    assert [q['paused'] for q in shop.objects('queue', 'list')] == [False, True]
    top.until_line('>two', 'paused')
    top.press(b'p')
    top.until_line('two is resumed')
    assert [q['paused'] for q in shop.objects('queue', 'list')] == [False, False]
    top.press(b'k')
    top.until_line('>one')


def test_a_dead_job_is_brought_back_and_another_cancelled(shop, screen, dead):
    top = screen('--interval', '1h')
    top.until_line('>mail')
    top.press(b'\t')
    lines = top.until_line('>', 'no ')
    first = next(line for line in lines if line.startswith('>')).split()[0][1:]
    other, = set(dead) - {first}
    top.press(b'r')
    top.until_line(f'job {first} is ready')
    assert shop.object('show', first)['state'] == 'ready'
    top.press(b'c')
    top.until_line(f'cancel job {other}')
    top.press(b'n')
    top.until(lambda lines: lines[23].startswith('q quit'))
    assert shop.object('show', other)['state'] == 'dead'
    top.press(b'cy')
    top.until_line(f'job {other} is cancelled')
    assert shop.run('show', other).returncode == 1


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_and_the_terminal_is_as_it_was(shop, screen, number):
    shop.ok('put', 'q', 'x')
    top = screen()
    top.until_line('>q')
    top.process.send_signal(number)
    assert top.ends() == 0


@pytest.mark.parametrize('rows, columns', [(1, 1), (3, 10), (8, 20), (50, 300)])
def test_any_size_will_do(shop, screen, dead, rows, columns):
    top = screen(rows=rows, columns=columns)
    top.until(lambda lines: any(line for line in lines))
    top.press(b'\t\x1b[B\x1b[A\x1b[5~q')
    assert top.ends() == 0


def test_it_looks_at_once_on_a_machine_that_has_just_started(shop, screen):
    uptime = int(time.clock_gettime(time.CLOCK_BOOTTIME))
    before = ['unshare', '--time', '--boottime', str(-uptime), '--']
    if subprocess.run([*before, 'true'], check=False, stderr=subprocess.DEVNULL).returncode != 0:
        pytest.skip('no clock of the boot can be set here')
    shop.ok('put', 'q', 'x')
    top = screen('--interval', '1h', before=before)
    top.until_line('>q')
    top.press(b'q')
    assert top.ends() == 0


def test_a_store_that_goes_away_is_said_to_be(shop, screen):
    shop.ok('put', 'q', 'x')
    top = screen('--interval', '100ms')
    top.until_line('>q')
    os.rename(shop.path, shop.path + '.away')
    top.until(lambda lines: shop.path in lines[23] or 'store' in lines[23])
    assert any(line.startswith('>q') for line in top.lines())
    os.rename(shop.path + '.away', shop.path)
    top.press(b'q')
    assert top.ends() == 0


def test_once_prints_it_without_a_terminal(shop, dead):
    text = shop.ok('top', '--once')
    assert 'QUEUE' in text.splitlines()[0] and f'dead: job {dead[0]} of mail, lane ada' in text
    queue, *jobs = shop.objects('top', '--once')
    assert queue['queue'] == 'mail' and queue['dead'] == 2
    assert sorted((j['job'], j['error']) for j in jobs) == [
        (dead[0], 'no ada'), (dead[1], 'no bob')]


@pytest.mark.parametrize('arguments, line', [
    ([], "top needs a terminal; 'baton top --once' prints how things are"),
    (['--json'], '--json is for --once'),
    (['--interval', '0'], "--interval is '0': a time from 100ms to 1h is needed"),
    (['--interval', 'soon'], "--interval is 'soon': a time from 100ms to 1h is needed"),
    (['mail'], None),
])
def test_a_wrong_call_gets_one_clear_line(shop, arguments, line):
    shop.ok('put', 'q', 'x')
    assert line in (None, shop.refused(64, 'top', *arguments))
