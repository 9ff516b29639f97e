"""Runners that are stopped together with who looks after their commands, in whatever order: nothing
lives of a handler when the lane's next one, or the next instance of a singleton, begins."""
import contextlib
import os
import select
import signal
import time

import pytest

from handlers import PATIENCE, Pipe, is_gone

OK = 0
TIMES = ['--ttl', '1s', '--beat', '100ms', '--margin', '500ms']
LONGER = ['--ttl', '4s', '--beat', '200ms', '--margin', '1s']    # nobody is that slow
STOP, KILL = signal.SIGSTOP, signal.SIGKILL
PLAIN, STREAM, SINGLETON = 'plain', 'stream', 'singleton'

# Who began, and what he has left behind in a session of its own; he says so if there is anybody
# else, and all of them have a lock while they live.
BEGIN = '''
exec 9>> {folder}/witness
flock -n 9 || echo overlap > {folder}/pipe
daemon=$(setsid sh -c 'echo $$; exec sleep {life} > /dev/null' &)
echo begun $$ $PPID $daemon > {folder}/pipe
'''
SCRIPTS = {
    PLAIN: BEGIN + '[ -e {folder}/go ] || read x < {folder}/gate',
    SINGLETON: BEGIN + 'sleep 1000; :',
    STREAM: '''while read -r line <&3; do''' + BEGIN + '''
        [ -e {folder}/go ] || read x < {folder}/gate
        claim=$(printf %s "$line" | sed 's/.*"claim":\\("[^"]*"\\|[0-9]*\\).*/\\1/')
        printf '{{"claim":%s,"ok":true}}\\n' "$claim" >&3
    done''',
}


def field_of(pid, number):
    """Of /proc/PID/stat, counted from its state."""
    with open(f'/proc/{pid}/stat', encoding='ascii') as file:
        return file.read().rsplit(')', 1)[1].split()[number]


class Stage:
    """Two runners, the first of which has the one shard, or the singleton, and works."""

    def __init__(self, shop, kind, times, life=1000):
        self.shop, self.kind, self.times, self.life, self.runners = shop, kind, times, life, {}
        self.pipe, self.gate = Pipe(shop.folder / 'pipe'), Pipe(shop.folder / 'gate')
        shop.ok('queue', 'set', 'q', 'shards=1', 'mode=runner', 'lane-backoff=none', 'keep=1h')
        self.start('a')
        if kind != SINGLETON:
            shop.put('q', '--lane', 'l', 'x')
        self.pids = self.begun()
        self.pids['runner'] = self.runners['a'].pid
        self.pids['guardian'] = int(field_of(self.pids['nanny'], 1))
        self.start('b')
        deadline = time.monotonic() + PATIENCE
        while len(shop.objects('runner')) < 2:
            assert time.monotonic() < deadline
        self.pidfds = {who: os.pidfd_open(pid) for who, pid in self.pids.items()}

    def start(self, name):
        what = {PLAIN: ['q'], STREAM: ['q', '--stream', '-j', '1'],
                SINGLETON: ['--singleton', 'leader']}[self.kind]
        script = SCRIPTS[self.kind].format(folder=self.shop.folder, life=self.life)
        self.runners[name] = self.shop.start('work', *what, '--name', name, *self.times, '--',
                                             'sh', '-c', script, stderr=None)

    def begun(self):
        what, *pids = self.pipe.line().split()
        assert what == 'begun'
        return dict(zip(('command', 'nanny', 'daemon'), map(int, pids)))

    def act(self, *steps):
        """Whoever of them has gone by then has gone."""
        (self.shop.folder / 'go').touch()
        for sig, who in steps:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.pidfds[who], sig)

    def ends(self, who):
        assert select.select([self.pidfds[who]], [], [], PATIENCE)[0], f'the {who} lives on'

    def is_taken_over(self):
        """The next one, which says so, has not found the one before."""
        later = self.begun()
        assert is_gone(self.pids['command']) and is_gone(self.pids['daemon'])
        assert later['nanny'] != self.pids['nanny']
        if self.kind != SINGLETON:
            deadline = time.monotonic() + PATIENCE
            while (job := self.shop.object('show', '1'))['state'] != 'done':
                assert time.monotonic() < deadline, job
            assert job['attempt'] > 1

    def is_attached(self, name):
        return any(runner['runner'] == name and runner['state'] == 'attached'
                   for runner in self.shop.objects('runner'))

    def leave(self, *names):
        for name in names:
            self.runners[name].send_signal(signal.SIGTERM)
        for name in names:
            assert self.runners[name].wait(PATIENCE) == OK
        assert not {runner['runner'] for runner in self.shop.objects('runner')} & set(names)
        assert self.shop.ok('check').strip() != ''


@pytest.fixture(params=[PLAIN, STREAM, SINGLETON])
def kind(request):
    return request.param


@pytest.fixture
def stage(shop, kind):
    return Stage(shop, kind, TIMES)


@pytest.mark.parametrize('steps', [
    [(STOP, 'runner'), (STOP, 'guardian')],
    [(STOP, 'guardian'), (STOP, 'runner')],
    [(STOP, 'runner'), (STOP, 'guardian'), (STOP, 'nanny')],
    [(STOP, 'nanny'), (STOP, 'guardian'), (STOP, 'runner')],
    [(STOP, 'runner'), (KILL, 'guardian')],
    [(STOP, 'runner'), (STOP, 'nanny'), (KILL, 'guardian')],
    [(STOP, 'runner'), (STOP, 'guardian'), (KILL, 'nanny')],
], ids=lambda steps: ','.join(f'{sig.name[3:].lower()}-{who}' for sig, who in steps))
def test_nothing_lives_of_a_handler_when_the_next_one_begins(stage, steps):
    stage.act(*steps)
    stage.is_taken_over()
    # It may have been stopped in the middle of a write: then its guardian has killed it.
    runner = stage.runners['a']
    runner.kill()
    runner.wait(PATIENCE)
    for who in ('guardian', 'nanny'):
        stage.ends(who)
    stage.leave('b')


@pytest.mark.parametrize('steps', [
    [(STOP, 'guardian'), (KILL, 'runner')],
    [(STOP, 'guardian'), (STOP, 'nanny'), (KILL, 'runner')],
], ids=['stop-guardian', 'stop-guardian,stop-nanny'])
def test_nor_of_a_killed_runner_whose_helpers_were_stopped(stage, steps):
    stage.act(*steps)
    stage.is_taken_over()
    for who in ('guardian', 'nanny', 'daemon'):
        stage.ends(who)
    stage.leave('b')


@pytest.mark.parametrize('kind', [PLAIN, STREAM])
def test_nor_while_that_lives_which_nobody_is_left_to_end(shop, kind):
    # Three times as long as others wait for a runner of which they know nothing.
    stage = Stage(shop, kind, TIMES, life=3)
    helpers = ('nanny', 'guardian', 'runner')
    stage.act(*((STOP, who) for who in helpers), *((KILL, who) for who in helpers))
    stage.is_taken_over()
    stage.leave('b')


def test_who_was_stopped_with_its_guardian_goes_on_and_works(stage):
    stage.act((STOP, 'runner'), (STOP, 'guardian'), (STOP, 'nanny'))
    stage.is_taken_over()
    stage.act((signal.SIGCONT, 'runner'), (signal.SIGCONT, 'guardian'))
    if stage.kind == SINGLETON:
        stage.shop.ok('runner', 'drain', 'b')
        stage.begun()
    stage.ends('nanny')
    # Who is asked to end before that has a call under way that it does not wait for.
    deadline = time.monotonic() + PATIENCE
    while (status := stage.runners['a'].poll()) is None and not stage.is_attached('a'):
        assert time.monotonic() < deadline
    assert status in (None, -KILL)
    stage.leave(*('ab' if status is None else 'b'))


def test_a_guardian_that_is_stopped_beside_a_healthy_runner_disturbs_nobody(shop, kind):
    stage = Stage(shop, kind, LONGER)
    guardian = stage.pids['guardian']
    signal.pidfd_send_signal(stage.pidfds['guardian'], STOP)
    # It goes on by itself at what was the deadline, which has moved on by then.
    deadline = time.monotonic() + PATIENCE
    while field_of(guardian, 0) == 'T':
        assert time.monotonic() < deadline
    assert not is_gone(stage.pids['command']) and not is_gone(stage.pids['daemon'])
    if kind != SINGLETON:
        stage.gate.file.write(b'go\n')
        while (job := shop.object('show', '1'))['state'] != 'done':
            assert time.monotonic() < deadline, job
        assert job['attempt'] == 1
    stage.leave('b', 'a')
    assert stage.pipe.rest == b''
