"""baton demo: it shows what happens, its witness notices what must not be, and nothing is left."""
import os
import pathlib
import pty
import re
import select
import signal
import subprocess

import pytest

PATIENCE = 240      # seconds that something may take that is certain to happen
PUT = '2000 jobs are put, in 50 lanes'
SANITIZED = os.environ.get('BATON_SANITIZED') == '1'
full = pytest.mark.skipif(SANITIZED, reason='the whole demo runs without sanitizers')


def environment(folder, **more):
    """The folder for temporary files marks all processes of a demo."""
    given = {k: v for k, v in os.environ.items() if k not in ('NO_COLOR', 'BATON_STORE')}
    return {**given, 'TMPDIR': str(folder), **more}


def processes(folder):
    """Those that live of the demo in the folder, as pidfds."""
    mark = f'TMPDIR={folder}'.encode()
    found = []
    for entry in pathlib.Path('/proc').iterdir():
        if not entry.name.isdigit():
            continue
        try:
            handle = os.pidfd_open(int(entry.name))
        except OSError:
            continue
        try:
            marked = mark in (entry / 'environ').read_bytes().split(b'\0')
        except OSError:
            marked = False
        if marked:
            found.append(handle)
        else:
            os.close(handle)
    return found


def all_ended(folder):
    """Waits until none of them lives."""
    while alive := processes(folder):
        for handle in alive:
            ready, _, _ = select.select([handle], [], [], PATIENCE)
            os.close(handle)
            assert ready, f'a process of the demo still lives after {PATIENCE} s'


class Demo:
    """One that runs beside the test."""

    def __init__(self, folder, **more):
        self.folder = folder
        folder.mkdir()
        self.process = subprocess.Popen(
            [os.environ['BATON_BIN'], 'demo'], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env=environment(folder, **more))
        self.lines = []

    def until(self, text):
        """Reads on to the line with that in it."""
        for line in self.process.stdout:
            self.lines.append(line.rstrip('\n'))
            if text in line:
                return
        raise AssertionError(f'it never says {text!r}: {self.lines}, {self.process.stderr.read()}')

    def end(self):
        """Its status, once it has ended."""
        out, self.errors = self.process.communicate(timeout=PATIENCE)
        self.lines += out.splitlines()
        return self.process.returncode

    def is_gone(self):
        all_ended(self.folder)
        assert os.listdir(self.folder) == []

    def stage(self):
        """Its folder."""
        found, = self.folder.iterdir()
        return found

    def player(self):
        """The process that plays it."""
        pid = self.process.pid
        children = pathlib.Path(f'/proc/{pid}/task/{pid}/children').read_text().split()
        return int(children[0])


@pytest.fixture
def demo(tmp_path):
    started = []

    def start(**more):
        started.append(Demo(tmp_path / f'demo{len(started)}', **more))
        return started[-1]
    yield start
    for each in started:
        each.process.kill()
        each.process.wait()
        each.process.stdout.close()
        each.process.stderr.close()
        all_ended(each.folder)


@pytest.fixture(scope='module')
def whole(tmp_path_factory):
    """Two demos at the same time, to their ends: one as it is, and one whose witness is told what
    must not be."""
    folder = tmp_path_factory.mktemp('whole')
    good, bad = Demo(folder / 'good'), Demo(folder / 'bad')
    bad.until(PUT)
    inbox = os.open(bad.stage() / 'inbox', os.O_WRONLY)
    # A handler that lives all the time, of a job whose turn it is not; and nonsense.
    os.write(inbox, f'begin 7 39 0 {os.getpid()}\nnonsense\n'.encode())
    os.close(inbox)
    good.status, bad.status = good.end(), bad.end()
    return good, bad


@full
def test_the_verdict_is_good(whole):
    demo, _ = whole
    assert (demo.status, demo.errors) == (0, ''), demo.lines
    assert demo.lines[-1] == 'verdict: good, after a crash and a freeze'
    assert [line[:6] for line in demo.lines if line[:6] in ('  yes ', '  NO  ')] == ['  yes '] * 6
    text = '\n'.join(demo.lines)
    assert 'every effect was accepted exactly once: 2000 of 2000' in text
    assert re.search(r'^  \d+ late writes refused by fence, \d+ repeats', text, re.MULTILINE)


@full
def test_it_says_what_happens_when(whole):
    demo, _ = whole
    happened = [re.sub(r'\d+(\.\d+)?', 'N', line[9:]) for line in demo.lines
                if re.match(r' *\d+\.\d s  ', line) and ' jobs; shards:' not in line]
    assert happened == [
        'three runners: ada (pid N), ben (N), cleo (N)',
        'N jobs are put, in N lanes',
        'ada (pid N) is killed: SIGKILL',
        'its N lanes go on elsewhere after N to N s: its death is proved',
        'ben (pid N) is frozen, with its line to the witness: SIGSTOP',
        'its N lanes go on elsewhere after N to N s: its ttl is over',
        'ben goes on, and does not know yet: SIGCONT',
        'ben is attached again, and has N shards']


@full
def test_its_lines_are_plain_and_fit(whole):
    for line in whole[0].lines:
        assert line == line.rstrip() and len(line) <= 80 and '\033' not in line


@full
def test_nothing_is_left_of_it(whole):
    for demo in whole:
        demo.is_gone()


@full
def test_what_must_not_be_is_found_out(whole):
    _, demo = whole
    assert (demo.status, demo.errors) == (1, ''), demo.lines
    found = [line for line in demo.lines if line.startswith('  NO ')]
    assert '  NO   every lane was in order: 1 jobs before their turn' in found
    assert '  NO   no lane had two handlers at a time' in '\n'.join(found)
    assert '  NO   nothing else was said: 1 lines were' in found
    assert demo.lines[-1] == f'verdict: BAD, in {len(found)} respects'


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_it_leaves_nothing_behind(demo, number):
    it = demo()
    it.until(PUT)
    it.process.send_signal(number)
    assert it.end() == -number
    assert it.errors == ''
    it.is_gone()


def test_killed_it_leaves_nothing_behind(demo):
    it = demo()
    it.until(PUT)
    it.process.kill()
    it.process.wait(PATIENCE)
    it.is_gone()


def test_killed_in_its_other_half_it_leaves_nothing_behind(demo):
    it = demo()
    it.until(PUT)
    os.kill(it.player(), signal.SIGKILL)
    assert it.end() == 71
    assert it.errors == 'baton: the demo was ended by signal 9\n'
    it.is_gone()


def test_a_reader_who_leaves_ends_it(demo):
    it = demo()
    it.until(PUT)
    it.process.stdout.close()
    assert it.process.wait(PATIENCE) == -signal.SIGPIPE
    it.is_gone()


def test_a_runner_that_cannot_work_is_said(demo):
    it = demo(BATON_GUARDIAN='/nowhere/guardian')
    assert it.end() == 71
    line, = it.errors.splitlines()
    assert re.match('baton: (ada|ben|cleo) has ended: .*', line)
    assert "'/nowhere/guardian' cannot be started" in line
    it.is_gone()


def test_a_folder_that_is_missing_is_said(baton):
    result = baton('demo', env={'TMPDIR': '/nowhere'})
    assert result.returncode == 73
    assert result.stderr == "baton: there is no folder '/nowhere' for temporary files; " \
                            'TMPDIR names another one\n'


def on_a_terminal(folder, text, **more):
    """What it writes to a terminal until it has written that."""
    try:
        leader, follower = pty.openpty()
    except OSError as error:
        pytest.skip(f'no terminal to be had here: {error}')
    given = environment(folder, **{'TERM': 'xterm', **more})
    process = subprocess.Popen([os.environ['BATON_BIN'], 'demo'], stdin=subprocess.DEVNULL,
                               stdout=follower, env=given)
    os.close(follower)
    written = ''
    while text not in written:
        ready, _, _ = select.select([leader], [], [], PATIENCE)
        assert ready, f'{text!r} is not in {written!r}'
        written += os.read(leader, 65536).decode()
    os.close(leader)
    process.terminate()
    process.wait(PATIENCE)
    all_ended(folder)
    assert os.listdir(folder) == []
    return written


def test_on_a_terminal_it_draws_a_picture(tmp_path):
    # Up to the line where the picture begins, to draw it again.
    written = on_a_terminal(tmp_path, '\033[6A\r\033[K')
    assert re.search(r'jobs    \[[# ]{40}\] \d+ of 2000, \d+ a second', written)
    assert re.search(r'cleo +\033\[0m +\d+ shards, ', written)


@pytest.mark.parametrize('more', [{'NO_COLOR': '1'}, {'TERM': 'dumb'}, {'TERM': ''}])
def test_a_terminal_can_have_plain_lines(tmp_path, more):
    written = on_a_terminal(tmp_path, 'jobs; shards:', **more)
    assert '\033' not in written


def test_an_empty_refusal_is_none(tmp_path):
    assert '\033[' in on_a_terminal(tmp_path, PUT, NO_COLOR='')
