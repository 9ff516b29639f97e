"""Runners that share queues while they, or their guardians, are killed, and while they are frozen,
asked to end and started again: a witness that sees only effects and fences finds no job lost, no
lane out of order or in two places, no fence going back, and nothing accepted under an old one."""
import contextlib
import json
import os
import random
import signal
import time

import pytest

from witness import Witness

PATIENCE = 120
TRY_AGAIN = 75
NO_STORE = 74
ENDED = (0, NO_STORE)     # the latter of who was detached in that moment, and waits for nobody
SOAK = os.environ.get('BATON_SOAK') == '1'
LANES, JOBS, ACTIONS = 20, (400 if SOAK else 40), (120 if SOAK else 12)
RUNNERS = 4
HALF = 12     # in so many actions one thing happens to the store
TIMES = ['--ttl', '3s', '--beat', '500ms', '--margin', '1s']


def descendants(pid):
    try:
        with open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as file:
            children = [int(child) for child in file.read().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []
    return children + [pid for child in children for pid in descendants(child)]


def comm_of(pid):
    try:
        with open(f'/proc/{pid}/comm', encoding='utf-8', errors='replace') as file:
            return file.read().strip()
    except (FileNotFoundError, ProcessLookupError):
        return None


class Crew:
    """Runners, and who starts one again that found no database when it was started."""

    def __init__(self, shop, witness, rng):
        self.shop, self.witness, self.rng = shop, witness, rng
        self.running, self.names, self.frozen = {}, 0, set()
        for _ in range(RUNNERS):
            self.start()

    def start(self):
        self.names += 1
        name = f'r{self.names}'
        command = [os.environ['BATON_EFFECT'], str(self.witness.folder),
                   str(self.rng.randrange(30)), *self.rng.choice([[], ['daemon']])]
        self.running[name] = self.shop.start('work', 'q', '-j', '6', '--name', name, *TIMES,
                                             '--', *command, stderr=None, stdout=None)
        return self.running[name]

    def mend(self):
        for name in [name for name, process in self.running.items() if process.poll() is not None]:
            # One that is frozen in the middle of a write is ended by its guardian.
            ended = {NO_STORE, -signal.SIGKILL} if name in self.frozen else {NO_STORE}
            assert self.running.pop(name).returncode in ended
            self.start()

    def registered(self):
        return {r['runner'] for r in self.shop.objects('runner')}

    def pick(self):
        return self.rng.choice(sorted(self.running))

    def kill(self):
        self.running.pop(self.pick()).kill()
        self.start()

    def bereave(self):
        """Its guardian is killed, or what stands between that and a command."""
        helpers = [pid for pid in descendants(self.running[self.pick()].pid)
                   if comm_of(pid) in ('baton-guardian', 'baton-nanny')]
        if helpers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.rng.choice(helpers), signal.SIGKILL)

    def end(self):
        name = self.pick()
        if name not in self.registered():
            return
        process = self.running.pop(name)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) in ENDED
        self.start()

    def freeze(self):
        """Until others have taken its place; then it goes on, and finds out."""
        name = self.pick()
        process = self.running[name]
        if name not in self.registered():
            return
        self.frozen.add(name)
        os.kill(process.pid, signal.SIGSTOP)
        try:
            # One that is frozen in the middle of a write keeps everybody from writing.
            if self.shop.run('put', 'other', 'x').returncode == TRY_AGAIN:
                return
            deadline = time.monotonic() + PATIENCE
            while name in self.registered():
                assert time.monotonic() < deadline, f'{name} was not taken over'
        finally:
            os.kill(process.pid, signal.SIGCONT)

    def pause(self):
        """For less than its ttl: nothing happens to it."""
        process = self.running[self.pick()]
        os.kill(process.pid, signal.SIGSTOP)
        os.kill(process.pid, signal.SIGCONT)

    def done(self):
        deadline = time.monotonic() + PATIENCE
        while not set(self.running) <= self.registered():
            self.mend()
            assert time.monotonic() < deadline, 'not all of them are attached'
        for process in self.running.values():
            process.send_signal(signal.SIGTERM)
        for process in self.running.values():
            assert process.wait(PATIENCE) in ENDED


def put_jobs(shop, rng):
    lanes = [rng.randrange(LANES) for _ in range(LANES * JOBS)]
    lines = ''.join(json.dumps({'payload': 'x', 'lane': f'l{lane}'}) + '\n' for lane in lanes)
    put = {f'l{lane}': [] for lane in lanes}
    for job in shop.objects('put', 'q', '--file', '-', input=lines.encode()):
        put[f'l{lanes[int(job["id"]) - 1]}'].append(int(job['id']))
    return put


def storm(shop, halfway=None):
    """Of all that may happen to runners; and what is to be done halfway."""
    seed = int(os.environ.get('BATON_SEED', '0')) or random.randrange(1 << 32)
    print(f'BATON_SEED={seed}')
    rng = random.Random(seed)
    shop.ok('queue', 'set', 'q', 'lane-attempts=100000', 'lane-backoff=none', 'keep=1h')
    put = put_jobs(shop, rng)
    witness = Witness(shop.folder)
    crew = Crew(shop, witness, rng)
    for action in range(ACTIONS):
        if halfway and action % HALF == HALF // 2:
            halfway(crew)
        witness.await_effects(rng.randrange(1, 2 * LANES * JOBS // ACTIONS // 3))
        crew.mend()
        rng.choice([crew.kill, crew.kill, crew.bereave, crew.end, crew.freeze, crew.pause])()
    done, deadline = 0, time.monotonic() + PATIENCE
    while done < sum(map(len, put.values())):
        now = shop.object('queue', 'show', 'q')
        if now['done'] > done:
            done, deadline = now['done'], time.monotonic() + PATIENCE
        assert time.monotonic() < deadline, now
    crew.done()
    assert witness.verdict(put) == []
    assert witness.stale(lambda job: int(shop.object('show', str(job))['result'])) == []
    assert shop.object('queue', 'show', 'q')['done'] == sum(map(len, put.values()))
    assert shop.ok('check').strip() != ''


def test_whoever_is_killed_or_frozen_no_job_is_lost_or_out_of_order(shop):
    storm(shop)


def test_nor_with_a_database_that_crashes_meanwhile(far_shop, database):
    def crash(crew):
        database.stop()
        assert crew.start().wait(PATIENCE) == NO_STORE
        database.start()
    storm(far_shop, halfway=crash)


@pytest.mark.parametrize('kind', ['shop', 'far_shop'])
def test_a_job_that_kills_its_runner_each_time_ends_in_the_dead_letters(request, kind):
    shop = request.getfixturevalue(kind)
    shop.ok('queue', 'set', 'q', 'attempts=2', 'backoff=none')
    shop.put('q', 'poison')
    script = 'kill -9 $(ps -o ppid= $(ps -o ppid= $PPID))'
    for _ in range(2):
        runner = shop.start('work', 'q', *TIMES, '--', 'sh', '-c', script, stderr=None)
        assert runner.wait(PATIENCE) == -signal.SIGKILL
    harmless = shop.start('work', 'q', *TIMES, '--', 'true', stderr=None)
    deadline = time.monotonic() + PATIENCE
    while shop.object('show', '1')['state'] != 'dead':
        assert time.monotonic() < deadline, shop.object('show', '1')
    harmless.send_signal(signal.SIGTERM)
    assert harmless.wait(PATIENCE) == 0
    assert shop.object('show', '1')['attempt'] == 2


@pytest.mark.parametrize('notes, fault', [
    ('E a 1 5 1\nX a 2 5 1', 'job 2 found another one in lane a'),
    ('E a 2 5 1\nL a 2 5 1\nE a 1 5 1\nL a 1 5 1', 'lane a: job 1 began after job 2'),
    ('E a 1 6 1\nL a 1 6 1\nE a 2 5 1\nL a 2 5 1', 'lane a: fence 5 after fence 6'),
    ('E a 1 5 1\nL a 1 5 1\nE a 2 5 1', 'lane a: job 2 was never done'),
])
def test_the_witness_sees_what_is_wrong(tmp_path, notes, fault):
    witness = Witness(tmp_path)
    (tmp_path / 'notes').write_text(notes + '\n')
    assert fault in witness.verdict({'a': [1, 2]})


@pytest.mark.parametrize('notes, accepted, stale', [
    ('E a 1 5 1\nL a 1 5 1', 4, False),        # it was begun once: there is nothing to choose from
    ('E a 1 5 1\nE a 1 6 2\nL a 1 6 2', 6, False),
    ('E a 1 5 1\nL a 1 5 1\nE a 1 6 2\nL a 1 6 2', 5, True),
    ('E a 1 5 1\nL a 1 5 1\nE a 1 6 2', 6, True),
])
def test_the_witness_sees_what_was_accepted_under_an_old_fence(tmp_path, notes, accepted, stale):
    witness = Witness(tmp_path)
    (tmp_path / 'notes').write_text(notes + '\n')
    assert bool(witness.stale(lambda job: accepted)) == stale
