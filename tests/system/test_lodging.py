"""baton work --conn --stream: connections for lanes are passed to persistent workers, and end with
these, with the lane, and with the runner."""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest

import test_lanes
from test_lanes import LANES, PATIENCE, QUEUE, TEMPFAIL, WAIT

house = test_lanes.house
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / 'examples/stream'
SOAK = os.environ.get('BATON_SOAK') == '1'

# Workers that greet, and echo, with the single files; {rest} is for the arguments of serve().
PYTHON = '''
import os, sys
sys.path.insert(0, {folder!r})
import baton_worker

def talk(visit):
    visit.socket.sendall(f'{{visit.lane}} {{visit.fence}} {{os.getpid()}} 0\\n'.encode())
    while data := visit.socket.recv(1000):
        visit.socket.sendall(data)

def handle(claim):
    with open({jobs!r}, 'a') as file:
        file.writelines(f'{{payload}}\\n' for payload in claim.payloads())

baton_worker.serve(handle, talk=talk{rest})
'''
PHP = '''<?php
require '{folder}/baton_worker.php';
baton_serve(function (BatonClaim $claim) {{
    foreach ($claim->payloads() as $payload) {{
        file_put_contents('{jobs}', "$payload\\n", FILE_APPEND);
    }}
}}, function (BatonVisit $visit, string $bytes): bool {{
    $greeting = "{{$visit->lane}} {{$visit->fence}} " . getmypid() . " 0\\n";
    return $visit->write($bytes === '' ? $greeting : $bytes);
}});
'''
NODE = '''
import {{ appendFileSync }} from 'node:fs';
import {{ serve }} from '{folder}/baton-worker.mjs';
serve((claim) => {{
  for (const payload of claim.payloads()) appendFileSync('{jobs}', `${{payload}}\\n`);
}});
'''
# One without a helper: meet() waits for a connection.
BARE = '''
import json, os, signal, socket, sys
channel = socket.socket(fileno=3)
rest, connections = b'', []

def say(what):
    channel.sendall(json.dumps(what).encode() + b'\\n')

def take():
    global rest
    while b'\\n' not in rest:
        data, fds, _, _ = socket.recv_fds(channel, 7, 1)
        connections.extend(fds)
        if not data:
            sys.exit(0)
        rest += data
    line, rest = rest.split(b'\\n', 1)
    return json.loads(line)

def meet():
    visit = take()
    client = socket.socket(fileno=connections.pop(0))
    client.sendall(f"{visit['lane']} {visit['fence']} {os.getpid()} 0\\n".encode())
    return visit['visit'], client

'''


class Workers:
    def __init__(self, house):
        self.house = house
        self.jobs = house.top / 'jobs'

    def command(self, name, text, **fields):
        interpreter = shutil.which(name) if name != 'python3' else sys.executable
        if not interpreter:
            pytest.skip(f'{name} is not installed')
        path = self.house.top / f"worker{len(list(self.house.top.glob('worker*')))}.mjs"
        fields = {'folder': str(EXAMPLES), 'jobs': str(self.jobs), 'rest': '', **fields}
        path.write_text(text.format(**fields) if text in (PYTHON, PHP, NODE) else text)
        return [interpreter, str(path)]

    def work(self, name, command, *options):
        return self.house.work(name, '--stream', *options, command=command)

    def python(self, name, *options, rest=''):
        return self.work(name, self.command('python3', PYTHON, rest=rest), *options)

    def bare(self, name, text, *options):
        return self.work(name, self.command('python3', BARE + text), *options)

    def job(self, text):
        self.house.run('put', QUEUE, text, '--lane', 'room-1')
        self.house.wait(lambda: self.jobs.exists() and text in self.jobs.read_text().split())


@pytest.fixture
def workers(house):
    house.serve()
    return Workers(house)


@pytest.mark.parametrize('name, text', [('python3', PYTHON), ('php', PHP)], ids=['python', 'php'])
def test_a_worker_has_several_connections_and_jobs_beside_them(house, workers, name, text):
    workers.work('one', workers.command(name, text), '-j', '1')
    house.settle('one')
    visits = [house.visit('room-1'), house.visit('room-1', '--no-handoff'), house.visit('room-2')]
    for visit in visits:
        assert visit.fence == house.owner(visit.lane)[1]
        assert visit.echo('hi') and visit.echo('ho')
    assert len({visit.pid for visit in visits}) == 1
    workers.job('one')
    # One goes, and the others notice nothing.
    assert visits.pop().leave()
    workers.job('two')
    assert all(visit.echo('still here') and visit.leave() for visit in visits)
    assert house.visit('room-3').echo('the next')


def test_a_worker_that_takes_no_connections_gets_none_and_has_its_jobs(house, workers):
    workers.work('one', workers.command('node', NODE), '-j', '2')
    house.settle('one')
    result = house.run('connect', '--queue', QUEUE, '--lane', 'room-1', '--wait', '300ms',
                       status=TEMPFAIL, input='')
    assert result.stdout == ''
    workers.job('one')
    house.wait(lambda: 'no worker takes connections' in house.log('one'))


def test_when_a_worker_is_killed_its_connections_end_and_no_others(house, workers):
    workers.python('one', '-j', '2', rest=', visits=2')
    house.settle('one')
    visits = [house.visit('room-1') for _ in range(4)]
    pids = {visit.pid for visit in visits}
    assert len(pids) == 2
    os.kill(visits[0].pid, signal.SIGKILL)
    for visit in visits:
        assert visit.ends() if visit.pid == visits[0].pid else visit.echo('I stay')
    again = house.visit('room-1')
    assert again.pid not in pids and again.echo('hi')
    # Its shard did not go anywhere meanwhile.
    assert again.fence == visits[0].fence


def test_when_the_runner_is_killed_the_next_connection_finds_another_one(house, workers):
    one = workers.python('one')
    house.settle('one')
    workers.python('two')
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
    assert set(owners.values()) == {'one', 'two'}


def test_who_is_in_a_lane_that_moves_is_sent_away_and_comes_back(house, workers):
    workers.python('one', '--grace', '1h')
    house.settle('one')
    visits = [house.visit(lane) for lane in LANES]
    workers.python('two', '--grace', '1h')
    house.settle('one', 'two')
    moved = 0
    for visit in visits:
        owner, fence = house.owner(visit.lane)
        if owner == 'one':
            assert fence == visit.fence and visit.echo('I stay')
            continue
        moved += 1
        assert visit.ends()
        assert house.visit(visit.lane).fence == fence > visit.fence
    assert 0 < moved < len(LANES)
    # The worker lives: it was told, and has ended those by itself.
    assert 'in time, and is ended' not in house.log('one')


@pytest.mark.parametrize('how', ['stop', 'detach'])
def test_a_runner_that_ends_or_is_detached_sends_all_away(house, workers, how):
    one = workers.python('one', '--grace', '1h', '--drain', '1h')
    house.settle('one')
    visits = [house.visit(lane) for lane in LANES]
    if how == 'stop':
        one.send_signal(signal.SIGTERM)
    else:
        house.run('runner', 'detach', 'one')
    assert all(visit.ends() for visit in visits)
    if how == 'stop':
        assert one.wait(PATIENCE) == 0
        return
    house.wait(lambda: house.owner('room-1') is None)
    house.run('runner', 'attach', 'one')
    assert house.visit('room-1').fence > visits[0].fence


def test_a_worker_that_sends_nobody_away_is_killed(house, workers):
    one = workers.bare('one', '''
signal.signal(signal.SIGTERM, signal.SIG_IGN)
say({'visits': 2})
kept = [meet(), meet()]
assert 'leave' in take()
signal.pause()
''', '--grace', '100ms', '-j', '1')
    house.settle('one')
    visits = [house.visit('room-1'), house.visit('room-2')]
    house.run('runner', 'detach', 'one')
    assert all(visit.ends() for visit in visits)
    house.wait(lambda: 'a worker did not end a connection in time, and is ended' in
               house.log('one'))
    one.send_signal(signal.SIGTERM)
    assert one.wait(PATIENCE) == 0


@pytest.mark.parametrize('text, said', [
    ("say({'visit': meet()[0] + 1, 'done': True})", 'is not one that it has'),
    ("n, _ = meet(); say({'visit': n, 'done': True}); say({'visit': n, 'done': True})",
     'is not one that it has'),
    ("meet(); say({'visits': 1})", 'it has said before how many connections it takes'),
    ("say({'visit': meet()[0], 'done': False})", "'done' takes true"),
    ("say({'visit': meet()[0]})", "about connections it has either"),
])
def test_a_worker_that_speaks_nonsense_about_connections_is_killed(house, workers, text, said):
    workers.bare('one', f"say({{'visits': 1}})\n{text}\nsignal.pause()\n", '-j', '1')
    house.settle('one')
    visit = house.visit('room-1')
    assert visit.ends()
    house.wait(lambda: 'a worker wrote nonsense' in house.log('one') and said in house.log('one'))


def test_without_connections_nobody_may_speak_of_them(house, workers):
    command = workers.command('python3', BARE + "say({'visits': 1})\nsignal.pause()\n")
    house.run('queue', 'set', 'plain', 'mode=runner')
    house.start('plain', 'work', 'plain', '--stream', '-j', '1', '--', *command)
    house.run('put', 'plain', 'a job')
    house.wait(lambda: 'there are no connections here' in house.log('plain'))


def test_who_is_one_too_many_waits_for_a_place(house, workers):
    workers.python('one', '-j', '1', rest=', visits=1')
    house.settle('one')
    first = house.visit('room-1')
    full = house.run('connect', '--queue', QUEUE, '--lane', 'room-2', '--wait', '100ms',
                     status=TEMPFAIL, input='')
    assert full.stdout == ''
    assert first.echo('hi') and first.leave()
    assert house.visit('room-2').echo('hi')


def test_a_worker_that_says_nothing_gets_no_connection(house, workers):
    # It reads as one does who knows nothing of descriptors.
    workers.bare('one', 'while channel.recv(1000):\n    pass\n', '-j', '1')
    house.settle('one')
    result = house.run('connect', '--queue', QUEUE, '--lane', 'room-1', '--wait', '300ms',
                       status=TEMPFAIL, input='')
    assert result.stdout == ''


def descriptors(process):
    return len(os.listdir(f'/proc/{process.pid}/fd'))


def test_workers_that_are_killed_all_the_time_leave_nothing_behind(house, workers):
    one = workers.python('one', '-j', '2', rest=', visits=4')
    house.settle('one')
    visit = house.visit('room-1')
    assert visit.leave()
    before = descriptors(one)
    for _ in range(300 if SOAK else 5):
        # Somebody is served, somebody is on the way, and some of their workers are killed.
        visit = house.come_back('room-1')
        others = [house.start('connect', 'connect', '--queue', QUEUE, '--lane', lane, '--wait',
                              WAIT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                  for lane in LANES[:3]]
        with contextlib.suppress(ProcessLookupError):
            os.kill(visit.pid, signal.SIGKILL)
        assert visit.ends()
        for other in others:
            other.stdout.readline()
            other.stdin.close()
            assert other.wait(PATIENCE) in (0, TEMPFAIL)
    assert house.visit('room-1').leave()
    house.wait(lambda: descriptors(one) <= before)
