"""Processes claim the same subjects while they are killed and stopped at random, and none of them
ever holds what another holds."""
import mmap
import os
import random
import select
import signal
import struct
import subprocess
import time

import pytest

WORKERS = 8
STOPPED_MAX = 2
GRANTS, VIOLATIONS, TAKEOVERS, DOOMED = 0, 8, 16, 4096

# Longer than anything takes on any machine.
PATIENCE = 60


class Storm:
    """The workers, and what the witness has seen."""

    def __init__(self, folder, rng):
        self.fleet, self.witness = str(folder / 'fleet'), str(folder / 'witness')
        self.rng = rng
        self.started = 0
        self.workers, self.stopped = {}, []
        self.kills = self.stops = 0
        self.pipe, self.note = os.pipe()
        os.set_blocking(self.pipe, False)
        os.set_blocking(self.note, False)
        self.start()
        self.await_grants(0)
        with open(self.witness, 'r+b') as file:
            self.memory = mmap.mmap(file.fileno(), 0)
        while len(self.workers) < WORKERS:
            self.start()

    def start(self):
        self.started += 1
        command = [os.environ['BATON_STORM'], 'work', self.fleet, self.witness, self.started,
                   self.rng.getrandbits(63), self.note]
        self.workers[self.started] = subprocess.Popen(
            [str(word) for word in command], pass_fds=[self.note], stderr=subprocess.PIPE)

    def count(self, offset):
        return struct.unpack_from('<Q', self.memory, offset)[0]

    def await_note(self):
        """Returns when somebody has been granted something since the last note."""
        ready, _, _ = select.select([self.pipe], [], [], PATIENCE)
        assert ready, f'nobody was granted anything for {PATIENCE} s'
        os.read(self.pipe, 65536)

    def await_grants(self, more):
        """Returns when there have been so many grants more. 0: the witness is there."""
        if more == 0:
            self.await_note()
            return
        wanted = self.count(GRANTS) + more
        while self.count(GRANTS) < wanted:
            self.await_note()
            self.check()

    def check(self):
        """Nobody has ended but those who were killed."""
        for number, worker in self.workers.items():
            if worker.poll() is not None:
                pytest.fail(f'worker {number} ended with {worker.returncode}: '
                            f'{worker.stderr.read().decode()}')
        assert self.count(VIOLATIONS) == 0

    def kill(self, number):
        worker = self.workers.pop(number)
        if number in self.stopped:
            self.stopped.remove(number)
        self.memory[DOOMED + number] = 1
        worker.send_signal(signal.SIGKILL)
        said = worker.communicate()[1].decode()
        assert worker.returncode == -signal.SIGKILL, said
        self.kills += 1

    def stop(self, number):
        self.workers[number].send_signal(signal.SIGSTOP)
        self.stopped.append(number)
        self.stops += 1

    def go_on(self):
        number = self.stopped.pop(self.rng.randrange(len(self.stopped)))
        self.workers[number].send_signal(signal.SIGCONT)

    def strike(self):
        """One thing that happens to somebody."""
        number = self.rng.choice(sorted(self.workers))
        what = self.rng.random()
        if what < 0.5:
            self.kill(number)
            self.start()
        elif what < 0.75 and len(self.stopped) < STOPPED_MAX and number not in self.stopped:
            self.stop(number)
        elif self.stopped:
            self.go_on()

    def end(self):
        for number in list(self.workers):
            self.kill(number)
        os.close(self.pipe)
        os.close(self.note)


@pytest.fixture
def storm(tmp_path):
    seed = int(os.environ.get('BATON_SEED', 0)) or time.time_ns()
    print(f'seed {seed}; BATON_SEED={seed} plays it again')
    storm = Storm(tmp_path, random.Random(seed))
    yield storm
    for worker in storm.workers.values():
        worker.kill()
        worker.communicate()


def test_nobody_holds_what_another_holds_while_they_are_killed_and_stopped(storm):
    seconds = 30 if os.environ.get('BATON_SOAK') == '1' else 4
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        storm.strike()
        storm.await_grants(storm.rng.randrange(1, 200))
    grants, takeovers = storm.count(GRANTS), storm.count(TAKEOVERS)
    storm.check()
    storm.end()
    assert storm.count(VIOLATIONS) == 0
    print(f'{storm.kills} kills, {storm.stops} stops, {grants} grants, {takeovers} takeovers')
    assert storm.kills > WORKERS and storm.stops > 0 and takeovers > 0
    result = subprocess.run([os.environ['BATON_STORM'], 'end', storm.fleet, storm.witness],
                            capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert (result.returncode, result.stderr) == (0, '')
