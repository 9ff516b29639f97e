"""baton work --conn: connections for lanes are served by the runner that owns them, whoever is
killed, stopped, drained or joined meanwhile, and by nobody else."""
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest

BATON, VISITOR = os.environ['BATON_BIN'], os.environ['BATON_VISITOR']
BUILD = os.environ['BATON_BUILD']
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / 'examples'
SOAK = os.environ.get('BATON_SOAK') == '1'
PATIENCE = 120
WAIT = '100s'       # of a client, for something that is certain to happen
USAGE, TEMPFAIL = 64, 75
QUEUE = 'rooms'
LANES = [f'room-{number}' for number in range(8)]      # in all of the shards
SHARDS = 4


class House:
    """A broker, a store, runners and their visitors, in a folder with a short name."""

    def __init__(self):
        self.top = pathlib.Path(tempfile.mkdtemp(prefix='baton-'))
        self.notes = self.top / 'notes'
        self.notes.mkdir()
        self.env = {k: v for k, v in os.environ.items() if k != 'XDG_RUNTIME_DIR'}
        self.env.update(BATON_BROKER=f'{self.top}/b', BATON_STORE=f'sqlite:{self.top}/store.db',
                        BATON_FLEET=f'{self.top}/fleet')
        self.started = []
        self.run('queue', 'set', QUEUE, f'shards={SHARDS}', 'mode=runner')

    def run(self, *arguments, status=0, **options):
        result = subprocess.run([BATON, *arguments], env=self.env, check=False, text=True,
                                timeout=PATIENCE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                **options)
        assert status is None or result.returncode == status, result
        return result

    def start(self, name, *arguments, **options):
        """Beside the test; what it says is in a file of that name."""
        with open(self.top / f'{name}.log', 'a', encoding='utf-8') as log:
            self.started.append(subprocess.Popen([BATON, *arguments], env=self.env, stderr=log,
                                                 **options))
        return self.started[-1]

    def log(self, name):
        return (self.top / f'{name}.log').read_text(encoding='utf-8')

    def serve(self, *arguments):
        before = self.log('serve').count('msg=serving') if (self.top / 'serve.log').exists() else 0
        broker = self.start('serve', 'serve', '--store', self.env['BATON_STORE'], *arguments)
        self.wait(lambda: self.log('serve').count('msg=serving') > before)
        return broker

    def work(self, name, *options, command=None):
        return self.start(name, 'work', QUEUE, '--conn', '--name', name, *options, '--',
                          *(command or [VISITOR, str(self.notes)]))

    def wait(self, is_so):
        end = time.monotonic() + PATIENCE
        while not is_so():
            assert time.monotonic() < end, {p.name: p.read_text()[-2000:]
                                            for p in self.top.glob('*.log')}

    def where(self, lane):
        return json.loads(self.run('where', QUEUE, lane, '--json', status=None).stdout)

    def owner(self, lane):
        """The runner that has the lane now, and its fence; None: nobody has."""
        found = self.where(lane)
        return (found['runner'], int(found['fence'])) if found.get('runner') else None

    def settle(self, *names):
        """Until these, and nobody else, own all shards, each its share: nothing moves then."""
        def is_settled():
            owners = {found['shard']: found['runner'] for found in map(self.where, LANES)}
            shares = [list(owners.values()).count(name) for name in names]
            return (len(owners) == SHARDS == sum(shares) and min(shares) > 0 and
                    max(shares) - min(shares) <= 1)
        self.wait(is_settled)

    def freeze(self, process):
        """Not in the middle of a write, which would keep everybody else from writing."""
        process.send_signal(signal.SIGSTOP)
        while self.run('put', 'other', 'x', status=None).returncode == TEMPFAIL:
            process.send_signal(signal.SIGCONT)
            process.send_signal(signal.SIGSTOP)

    def visit(self, lane, *options):
        visit = Visit(self, lane, *options)
        assert visit.greeting, self.log('connect')
        return visit

    def come_back(self, lane):
        """As a client does whose connection may end at any moment, because lanes move."""
        end = time.monotonic() + PATIENCE
        while not (visit := Visit(self, lane)).greeting or not visit.echo('hi'):
            visit.client.kill()
            assert time.monotonic() < end, self.log('connect')
        return visit

    def verdict(self):
        """What is wrong: lanes that were served under two fences at once, or under a lower one."""
        lines = (self.notes / 'notes').read_text(encoding='utf-8').splitlines()
        assert any(line.startswith('B') for line in lines)
        return [line for line in lines if line.startswith('X')]

    def end(self):
        for process in self.started:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream:
                    with contextlib.suppress(BrokenPipeError):
                        stream.close()
        shutil.rmtree(self.top, ignore_errors=True)


class Visit:
    """A connection to whoever owns a lane, greeted."""

    def __init__(self, house, lane, *options):
        self.client = house.start('connect', 'connect', '--queue', QUEUE, '--lane', lane, '--wait',
                                  WAIT, *options, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  text=True)
        self.greeting = self.client.stdout.readline()
        if not self.greeting:
            return
        self.lane, fence, pid, _ = self.greeting.split()
        self.fence, self.pid = int(fence), int(pid)
        assert self.lane == lane

    def echo(self, text):
        with contextlib.suppress(BrokenPipeError):
            self.client.stdin.write(f'{text}\n')
            self.client.stdin.flush()
        return self.client.stdout.readline() == f'{text}\n'

    def ends(self):
        """Waits until the other side has ended it."""
        return self.client.stdout.read() == '' and self.client.wait(PATIENCE) == 0

    def leave(self):
        self.client.stdin.close()
        return self.client.wait(PATIENCE) == 0


@pytest.fixture
def house():
    house = House()
    yield house
    house.end()


def parent_of(pid):
    """The nanny of a command, or the guardian of a nanny."""
    with open(f'/proc/{pid}/status', encoding='utf-8') as status:
        return int(next(line.split()[1] for line in status if line.startswith('PPid:')))


def test_a_connection_is_served_by_a_process_of_its_own_under_the_lanes_fence(house):
    house.serve()
    house.work('one')
    house.settle('one')
    first, second, other = house.visit('room-1'), house.visit('room-1'), house.visit('room-2')
    for visit in (first, second, other):
        assert visit.fence == house.owner(visit.lane)[1]
        assert visit.echo('hi') and visit.echo('ho')
    assert len({first.pid, second.pid, other.pid}) == 3
    assert parent_of(first.pid) != os.getpid()
    shown = house.run('services', '--json').stdout
    assert json.loads(shown)['service'] == 'lanes' and json.loads(shown)['owner'] == 'one'
    assert all(visit.leave() for visit in (first, second, other))
    assert house.verdict() == []


def test_the_command_still_has_the_jobs(house):
    house.serve()
    command = ['sh', '-c', 'if [ -n "$BATON_CONNECTION" ]; then '
               'echo $BATON_LANE $BATON_FENCE $$ $BATON_CLIENT_UID >&3; cat <&3 >&3; '
               f'else cat >> {house.top}/jobs; fi']
    house.work('one', command=command)
    house.settle('one')
    visit = house.visit('room-1')
    house.run('put', QUEUE, 'a job', '--lane', 'room-1')
    house.wait(lambda: (house.top / 'jobs').exists() and
               (house.top / 'jobs').read_text() == 'a job')
    # What serves a connection is in nobody's way.
    assert visit.echo('still here')
    assert visit.leave()


def test_connections_of_a_lane_land_on_its_owner_by_handoff_and_by_reconnecting(house):
    house.serve()
    house.work('one')
    house.settle('one')
    house.work('two')
    house.settle('one', 'two')
    for lane in LANES:
        visits = [house.visit(lane), house.visit(lane, '--no-handoff')]
        assert {visit.fence for visit in visits} == {house.owner(lane)[1]}
        assert all(visit.echo('hi') and visit.leave() for visit in visits)
    assert house.verdict() == []


def test_when_the_owner_is_killed_the_next_connection_finds_another_one(house):
    house.serve()
    one = house.work('one')
    house.settle('one')
    house.work('two', '--weight', '1')
    house.settle('one', 'two')
    visits = [house.visit(lane) for lane in LANES]
    owners = {visit.lane: house.owner(visit.lane)[0] for visit in visits}
    one.kill()
    for visit in visits:
        if owners[visit.lane] == 'two':
            assert visit.echo('I stay')
            continue
        assert visit.ends()
        again = house.visit(visit.lane)
        assert again.fence > visit.fence and again.echo('hi')
        assert house.owner(visit.lane) == ('two', again.fence)
    assert set(owners.values()) == {'one', 'two'}
    assert house.verdict() == []


@pytest.mark.parametrize('helpers', [False, True], ids=['alone', 'with its helpers'])
def test_a_frozen_owner_serves_nobody_once_another_one_has_its_lanes(house, helpers):
    house.serve('--ack-timeout', '100ms')
    times = ('--ttl', '4s', '--beat', '200ms', '--margin', '1s')
    one, two = house.work('one', *times), house.work('two', *times)
    house.settle('one', 'two')
    lane = next(lane for lane in LANES if house.owner(lane)[0] == 'one')
    visit = house.visit(lane)
    stopped = [parent_of(visit.pid), parent_of(parent_of(visit.pid))] if helpers else []
    for helper in stopped:
        os.kill(helper, signal.SIGSTOP)
    house.freeze(one)
    # Its guardian ends the handler, though it does nothing any more.
    assert visit.ends()
    house.settle('two')
    again = house.come_back(lane)
    assert again.fence > visit.fence
    one.send_signal(signal.SIGCONT)
    house.settle('one', 'two')
    for lane in LANES:
        house.come_back(lane)
    assert two.poll() is None and one.poll() is None
    assert house.verdict() == []


def test_who_joins_gets_connections_and_others_stay(house):
    house.serve()
    # Handlers that do not hear SIGTERM: their lanes move when they are dead.
    house.work('one', '--grace', '1s', command=[VISITOR, str(house.notes), 'stubborn'])
    house.settle('one')
    visits = [house.visit(lane) for lane in LANES]
    house.work('two')
    # Who comes while a lane is about to move is served by its next owner.
    while 'two' not in [house.where(lane)['runner'] for lane in LANES]:
        for lane in LANES:
            assert house.come_back(lane).leave()
    house.settle('one', 'two')
    moved = 0
    for visit in visits:
        owner, fence = house.owner(visit.lane)
        if owner == 'one':
            assert fence == visit.fence and visit.echo('I stay')
            continue
        moved += 1
        assert visit.ends()
        again = house.visit(visit.lane)
        assert again.fence == fence > visit.fence and again.echo('hi')
    assert 0 < moved < len(LANES)
    assert house.verdict() == []


def test_a_runner_that_is_stopped_closes_its_connections_and_leaves(house):
    house.serve()
    one = house.work('one', '--grace', '100ms', '--drain', '1h',
                     command=[VISITOR, str(house.notes), 'stubborn'])
    house.settle('one')
    visits = [house.visit(lane) for lane in LANES]
    house.work('two')
    house.wait(lambda: 'two' in house.run('runner').stdout)
    one.send_signal(signal.SIGTERM)
    assert one.wait(PATIENCE) == 0
    house.settle('two')
    for visit in visits:
        assert visit.ends()
        assert not os.path.exists(f'/proc/{visit.pid}')
        assert house.visit(visit.lane).fence > visit.fence
    assert house.verdict() == []


def test_a_runner_that_is_detached_serves_nobody_until_it_is_attached(house):
    house.serve()
    house.work('one')
    house.settle('one')
    visit = house.visit('room-1')
    house.run('runner', 'detach', 'one')
    assert visit.ends()
    house.wait(lambda: house.owner('room-1') is None)
    late = house.run('connect', '--queue', QUEUE, '--lane', 'room-1', '--wait', '50ms',
                     status=TEMPFAIL, input='')
    assert late.stdout == ''
    house.run('runner', 'attach', 'one')
    again = house.visit('room-1')
    assert again.fence > visit.fence and again.echo('hi')
    assert house.verdict() == []


def test_a_broker_may_come_late_and_go(house):
    house.work('one')
    house.settle('one')
    house.work('two')
    house.settle('one', 'two')
    broker = house.serve()
    visits = [house.visit(lane) for lane in LANES]
    broker.kill()
    broker.wait()
    assert all(visit.echo('without it') for visit in visits)
    # Both register again, the older one too.
    house.serve()
    house.wait(lambda: house.run('services').stdout.count('lanes') == 2)
    for visit in visits:
        again = house.visit(visit.lane)
        assert again.fence == visit.fence and again.echo('hi') and visit.echo('hi')
    assert house.verdict() == []


def test_a_broker_that_hangs_is_in_nobodys_way(house):
    broker = house.serve()
    one = house.work('one', command=['sh', '-c', f'cat >> {house.top}/jobs'])
    house.settle('one')
    house.wait(lambda: 'lanes' in house.run('services').stdout)
    broker.kill()
    broker.wait()
    # One that takes connections, and says nothing.
    broker = house.serve()
    broker.send_signal(signal.SIGSTOP)
    house.run('put', QUEUE, 'a job')
    house.wait(lambda: (house.top / 'jobs').exists() and
               (house.top / 'jobs').read_text() == 'a job')
    one.send_signal(signal.SIGTERM)
    assert one.wait(PATIENCE) == 0


def test_who_is_one_too_many_waits_for_a_place(house):
    house.serve()
    house.work('one', '--conn-max', '1')
    house.settle('one')
    first = house.visit('room-1')
    full = house.run('connect', '--queue', QUEUE, '--lane', 'room-2', '--wait', '100ms',
                     status=TEMPFAIL, input='')
    assert full.stdout == ''
    assert first.echo('hi') and first.leave()
    assert house.visit('room-2').echo('hi')


def test_a_runner_takes_nobody_who_wants_no_lane_of_its_own(house):
    house.serve()
    house.run('queue', 'set', 'other', 'mode=runner')
    house.work('one')
    house.settle('one')
    house.wait(lambda: 'lanes' in house.run('services').stdout)
    for arguments in (['lanes'], ['lanes', '--queue', 'other', '--lane', 'room-1']):
        result = house.run('connect', *arguments, '--wait', '100ms', status=TEMPFAIL, input='')
        assert result.stdout == ''
    assert house.visit('room-1').echo('hi')


@pytest.mark.parametrize('options, said', [
    (['--once'], '--conn and --once cannot be together'),
    (['--until-empty'], '--conn and --until-empty cannot be together'),
    (['--conn-max', '2000'], 'at once: at most 1024 are allowed together'),
    (['--broker', 'here'], "'here' is no folder of a broker: an absolute path is needed"),
])
def test_what_does_not_go_with_connections_is_refused(house, options, said):
    result = house.run('work', QUEUE, '--conn', *options, '--', 'true', status=USAGE)
    assert said in result.stderr and result.stderr.count('\n') == 1


@pytest.mark.parametrize('option', ['--conn-max', '--broker'])
def test_what_is_for_connections_needs_them(house, option):
    result = house.run('work', QUEUE, option, '1', '--', 'true', status=USAGE)
    assert result.stderr == f'baton: {option} needs --conn\n'


# Functions instead of commands: the example.

def test_the_example_of_a_chat_goes_on_when_its_process_is_killed():
    result = subprocess.run([sys.executable, EXAMPLES / 'chat/demo.py', BUILD], check=False,
                            text=True, timeout=PATIENCE, stdout=subprocess.PIPE)
    assert result.returncode == 0, result.stdout
    assert result.stdout.splitlines()[-1] == 'each has heard all 48 messages once, in one order'


class Chat:
    """Two processes with rooms, and somebody in one of these."""

    def __init__(self, house):
        self.house = house
        (house.top / 'rooms').mkdir()
        house.serve()
        self.rooms = {name: self.start('room', name, str(house.top / 'rooms'))
                      for name in ('left', 'right')}
        house.settle(*self.rooms)
        self.ada = self.start('client', 'room-1', 'ada', stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)

    def start(self, what, *arguments, **options):
        command = [f'{BUILD}/examples/example-chat-{what}', *arguments]
        self.house.started.append(subprocess.Popen(command, env=self.house.env, **options))
        return self.house.started[-1]

    def says(self, text):
        self.ada.stdin.write(f'{text}\n')
        self.ada.stdin.flush()
        return self.ada.stdout.readline().split(maxsplit=2)[2] == f'{text}\n'


def test_functions_are_told_when_their_lane_goes(house):
    chat = Chat(house)
    assert chat.says('one') and chat.says('two')
    name, fence = house.owner('room-1')
    house.run('runner', 'detach', name)
    house.wait(lambda: house.where('room-1')['runner'] not in (name, None))
    assert chat.says('three')
    assert house.owner('room-1')[1] > fence
    house.run('runner', 'attach', name)
    house.settle(*chat.rooms)
    name, _ = house.owner('room-1')
    chat.rooms[name].send_signal(signal.SIGTERM)
    assert chat.rooms[name].wait(PATIENCE) == 0
    assert chat.says('four')


def test_functions_serve_nobody_who_speaks_nonsense(house):
    chat = Chat(house)
    for nonsense in ('nonsense\n', 'SAY x y\n', 'HELLO 1\nHELLO 1\n', 'HELLO 0\nSAY x\n',
                     'x' * 5000):
        result = house.run('connect', '--queue', QUEUE, '--lane', 'room-1', '--wait', WAIT,
                           input=nonsense, status=None)
        assert result.stdout == ''
    assert chat.says('still here')
    # Who goes in the middle of something leaves nothing behind.
    house.run('connect', '--queue', QUEUE, '--lane', 'room-1', '--wait', WAIT, input='HEL')
    assert chat.says('me too')


def test_whoever_is_killed_no_lane_is_served_twice(house):
    """Runners are killed, frozen and drained while clients come back again and again."""
    dice = random.Random(8)
    house.serve('--ack-timeout', '100ms')
    times = ('--ttl', '1s', '--beat', '100ms', '--margin', '500ms', '--grace', '100ms')
    runners = {name: house.work(name, *times) for name in ('one', 'two', 'three')}
    house.settle(*runners)
    for _ in range(200 if SOAK else 6):
        visits = [house.come_back(lane) for lane in LANES]
        name = dice.choice(sorted(runners))
        how = dice.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP])
        if how != signal.SIGSTOP:
            runners[name].send_signal(how)
        else:
            house.freeze(runners[name])
            house.wait(lambda gone=name: all((house.owner(lane) or ('',))[0] != gone
                                             for lane in LANES))
            runners[name].kill()
        runners[name].wait(PATIENCE)
        runners[name] = house.work(name, *times)
        for visit in visits:
            visit.client.kill()
    for lane in LANES:
        house.come_back(lane)
    assert house.verdict() == []
