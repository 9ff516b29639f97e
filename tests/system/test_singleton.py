"""Singletons and the ticker: one instance, whoever of those that offer it is killed or frozen."""
import datetime
import json
import os
import signal

import pytest

from handlers import PATIENCE, Pipe, is_gone

OK, USAGE = 0, 64
TIMES = ['--ttl', '1s', '--beat', '100ms', '--margin', '500ms']


@pytest.fixture
def pipe(tmp_path):
    return Pipe(tmp_path / 'pipe')


def held(shop, subject):
    """Who has the lease."""
    for hold in shop.objects('holders', '--cluster'):
        if f"{hold['namespace']}/{hold['label']}" == subject:
            return hold
    return None


def is_stopped_in_a_write(shop):
    """Then it keeps everybody from writing, and so from taking its place."""
    return shop.run('put', 'other', 'x').returncode != OK


class Troupe:
    """Runners that offer the same, by name."""

    def __init__(self, shop, *arguments):
        self.shop, self.arguments, self.runners = shop, arguments, {}

    def start(self, name):
        self.runners[name] = self.shop.start('work', *TIMES, '--name', name, *self.arguments,
                                             stderr=None)

    def kill(self, name):
        self.runners[name].kill()
        self.runners.pop(name).wait()

    def end(self):
        for process in self.runners.values():
            process.send_signal(signal.SIGTERM)
        for process in self.runners.values():
            assert process.wait(PATIENCE) == OK


class Clockwork:
    """A schedule for every second, and two runners that may tick it."""

    def __init__(self, shop):
        self.shop, self.claimed = shop, 0
        shop.ok('schedule', 'set', 's', '* * * * * *', '--queue', 'q', '--missed', 'all', 'x')
        self.first = self.moment('next')
        self.troupe = Troupe(shop, 'none', '--', 'true')
        for name in 'ab':
            self.troupe.start(name)

    def moment(self, field):
        text = self.shop.object('schedule', 'show', 's')[field]
        return datetime.datetime.fromisoformat(text.replace('Z', '+00:00')).timestamp()

    def hear(self, count=1):
        """Waits for so many ticks."""
        for _ in range(count):
            self.shop.claim('q', '--wait', f'{PATIENCE}s', '--ttl', '1h')
            self.claimed += 1

    def ticker(self):
        return held(self.shop, 'singleton/schedule')['owner']

    def check(self):
        """Every moment was put once: who puts it again is told so."""
        self.troupe.end()
        last = self.moment('last')
        keys = [f'schedule s {moment * 1000}' for moment in range(int(self.first), int(last) + 1)]
        lines = ''.join(json.dumps({'payload': 'x', 'idempotency_key': key}) + '\n' for key in keys)
        jobs = self.shop.objects('put', 'q', '--file', '-', input=lines.encode())
        assert all(job['existing'] for job in jobs)
        assert len({job['id'] for job in jobs}) == len(keys) == len(self.shop.states('q'))
        assert self.claimed <= len(keys)


def test_no_tick_is_lost_or_put_twice_when_the_ticker_is_killed(shop):
    clockwork = Clockwork(shop)
    for _ in range(3):
        clockwork.hear()
        name = clockwork.ticker()
        clockwork.troupe.kill(name)
        clockwork.troupe.start(name)
    clockwork.hear(2)
    clockwork.check()


def test_no_tick_is_lost_or_put_twice_when_the_ticker_is_frozen_beyond_its_time(shop):
    clockwork = Clockwork(shop)
    clockwork.hear()
    name = clockwork.ticker()
    process = clockwork.troupe.runners[name]
    os.kill(process.pid, signal.SIGSTOP)
    while is_stopped_in_a_write(shop):
        os.kill(process.pid, signal.SIGCONT)
        os.kill(process.pid, signal.SIGSTOP)
    # What it had put before, and then what only the other one can have put.
    while clockwork.ticker() == name:
        clockwork.hear()
    clockwork.hear()
    os.kill(process.pid, signal.SIGCONT)
    clockwork.hear(2)
    clockwork.check()


def test_a_schedule_is_paused_and_resumed_under_a_ticker(shop):
    clockwork = Clockwork(shop)
    clockwork.hear()
    shop.ok('schedule', 'pause', 's')
    shown = shop.object('schedule', 'show', 's')
    assert shown['paused']
    shop.ok('schedule', 'set', 't', '* * * * * *', '--queue', 'other', 'x')
    for _ in range(2):
        shop.claim('other', '--wait', f'{PATIENCE}s')
    assert shop.object('schedule', 'show', 's') | {'ticks': []} == shown | {'ticks': []}
    waiting = len(shop.states('q'))
    shop.ok('schedule', 'resume', 's')
    clockwork.hear(waiting - clockwork.claimed + 1)
    clockwork.troupe.end()


def test_who_ends_by_itself_does_not_tick(shop):
    shop.put('q', 'x')
    assert shop.run('work', 'q', '--until-empty', '--', 'true').returncode == OK
    with_fences = shop.objects('holders', '--cluster')
    assert with_fences == []
    shop.put('q', 'x')
    assert shop.run('work', 'q', '--once', '--', 'true').returncode == OK


@pytest.fixture
def troupe(shop, pipe):
    """The command says who it is, and whether another one is there, and ends when it is told to."""
    script = (f'exec 9>> {shop.folder}/witness; flock -n 9 || echo overlap > {pipe.path}; '
              f'trap "echo end $BATON_FENCE > {pipe.path}; exit 0" TERM; '
              f'echo $BATON_SINGLETON $BATON_FENCE $$ > {pipe.path}; '
              'while :; do sleep 1000 & wait; done')
    return Troupe(shop, '--singleton', 'leader', '--', 'sh', '-c', script)


def begun(pipe):
    """The fence and the pid of an instance that has begun."""
    name, fence, pid = pipe.line().split()
    assert name == 'leader'
    return int(fence), int(pid)


def start_both(shop, troupe, pipe):
    """The first has it, and the second is there."""
    troupe.start('a')
    fence, pid = begun(pipe)
    troupe.start('b')
    while len(shop.objects('runner')) < 2:
        pass
    assert held(shop, 'singleton/leader')['owner'] == 'a'
    return fence, pid


def test_who_is_killed_is_replaced_when_all_of_its_instance_is_gone(shop, troupe, pipe):
    fence, pid = start_both(shop, troupe, pipe)
    for name, other in ('ab', 'ba', 'ab'):
        troupe.kill(name)
        later, successor = begun(pipe)
        assert later > fence and is_gone(pid)
        assert held(shop, 'singleton/leader')['owner'] == other
        fence, pid = later, successor
        troupe.start(name)
        while len(shop.objects('runner')) < 2:
            pass
    troupe.end()


def test_who_is_asked_to_end_stops_it_and_then_it_is_elsewhere(shop, troupe, pipe):
    fence, pid = start_both(shop, troupe, pipe)
    runner = troupe.runners.pop('a')
    runner.send_signal(signal.SIGTERM)
    assert pipe.line() == f'end {fence}'
    later, _ = begun(pipe)
    assert later > fence and is_gone(pid)
    assert runner.wait(PATIENCE) == OK
    troupe.end()
    assert held(shop, 'singleton/leader') is None


def test_who_drains_moves_it_and_who_attaches_may_have_it_again(shop, troupe, pipe):
    fence, _ = start_both(shop, troupe, pipe)
    shop.ok('runner', 'drain', 'a')
    assert pipe.line() == f'end {fence}'
    fence, _ = begun(pipe)
    shop.ok('runner', 'attach', 'a')
    shop.ok('runner', 'detach', 'b')
    assert pipe.line() == f'end {fence}'
    assert begun(pipe)[0] > fence
    assert held(shop, 'singleton/leader')['owner'] == 'a'


def test_who_is_frozen_has_it_killed_before_another_one_begins(shop, troupe, pipe):
    fence, pid = start_both(shop, troupe, pipe)
    frozen = troupe.runners['a']
    os.kill(frozen.pid, signal.SIGSTOP)
    while is_stopped_in_a_write(shop):
        os.kill(frozen.pid, signal.SIGCONT)
        os.kill(frozen.pid, signal.SIGSTOP)
    later, _ = begun(pipe)
    assert later > fence and is_gone(pid)
    os.kill(frozen.pid, signal.SIGCONT)
    troupe.kill('b')
    last, _ = begun(pipe)
    assert last > later
    assert held(shop, 'singleton/leader')['owner'] == 'a'


def test_an_instance_that_ends_is_started_again(shop, pipe):
    troupe = Troupe(shop, '--singleton', 'leader', '--', 'sh', '-c',
                    f'echo leader $BATON_FENCE $$ > {pipe.path}; exit 3')
    troupe.start('a')
    found = [begun(pipe) for _ in range(3)]
    assert len({fence for fence, _ in found}) == 1 and len({pid for _, pid in found}) == 3
    troupe.end()


def test_whoever_kills_its_guardian_has_it_started_again(shop, troupe, pipe):
    troupe.start('a')
    fence, pid = begun(pipe)
    with open(f'/proc/{pid}/status', encoding='ascii') as file:
        nanny = int(next(line for line in file if line.startswith('PPid:')).split()[1])
    with open(f'/proc/{nanny}/status', encoding='ascii') as file:
        guardian = int(next(line for line in file if line.startswith('PPid:')).split()[1])
    os.kill(guardian, signal.SIGKILL)
    line = pipe.line()
    if line == f'end {fence}':
        line = pipe.line()
    assert line.split()[:2] == ['leader', str(fence)] and is_gone(pid)
    troupe.end()


def test_what_it_says_goes_to_the_log(shop):
    runner = shop.start('work', '--singleton', 'leader', *TIMES, '--', 'sh', '-c',
                        'echo out; echo err >&2; exec sleep 1000')
    said = set()
    for line in runner.stderr:
        said |= {word for word in (b'line=out', b'line=err') if word in line}
        if len(said) == 2:
            break
    runner.send_signal(signal.SIGTERM)
    assert runner.wait(PATIENCE) == OK


@pytest.mark.parametrize('arguments, line', [
    (['--singleton', 'x', 'q', '--', 'true'], "--singleton has no queue, and got 'q'"),
    (['--singleton', 'x'],
     "work needs a command behind '--', such as: baton work mail -- ./send"),
    (['--singleton', '', '--', 'true'],
     "the singleton's name is empty: 1 to 255 bytes are allowed"),
    (['--singleton', 'x', '-j', '2', '--', 'true'], '--jobs is for jobs, and --singleton has none'),
    (['--singleton', 'x', '--once', '--', 'true'], '--once is for jobs, and --singleton has none'),
    (['--singleton', 'x', '--timeout', '1s', '--', 'true'],
     '--timeout is for jobs, and --singleton has none'),
    (['--singleton', 'x', '--stream', '--', 'true'],
     '--stream is for jobs, and --singleton has none'),
])
def test_a_wrong_call_gets_one_clear_line(shop, arguments, line):
    assert shop.refused(USAGE, 'work', *arguments) == line
    assert list(shop.folder.iterdir()) == []


def test_the_ticker_s_name_is_taken(shop):
    assert shop.refused(USAGE, 'work', '--singleton', 'schedule', '--', 'true') == (
        "the singleton 'schedule' is the one that puts what schedules have due")
