"""Steps of the wall clock, of a runner's host or of the database server, change no ownership."""
import os
import select
import signal
import struct
import time

import pytest

import databases
from conftest import Shop
from handlers import PATIENCE, Pipe, until_log

OK = 0
HOUR = 3600
TIMES = ['--ttl', '1s', '--beat', '100ms', '--margin', '500ms']
STAYS = 2       # seconds for which nothing happens: more than a ttl


class Clock:
    """A wall clock that is put forward and back."""

    def __init__(self, folder):
        self.path = folder / 'clock'
        self.path.write_bytes(bytes(8))
        self.path.chmod(0o644)
        self.env = {'LD_PRELOAD': os.environ['BATON_CLOCK'], 'BATON_TEST_CLOCK': str(self.path)}

    def step(self, seconds):
        """To so much before or after what is right, at once."""
        with open(self.path, 'r+b', buffering=0) as file:
            file.write(struct.pack('=q', seconds))


class Owner:
    """A runner that has a lane, with a handler in it that stays."""

    def __init__(self, shop, name, **options):
        self.shop = shop
        self.gate = Pipe(shop.folder / 'gate')
        begun = Pipe(shop.folder / 'begun')
        self.runner = shop.start('work', 'q', '--name', name, *TIMES, '--', 'sh', '-c',
                                 f'[ "$BATON_LANE" != a ] || {{ echo $$ > {begun.path}; '
                                 f'read x < {self.gate.path}; }}; echo was here >&2', **options)
        shop.put('q', '--lane', 'a', 'x')
        self.handle = os.pidfd_open(int(begun.line()))
        self.fence = self.where()['fence']

    def where(self):
        return self.shop.object('where', 'q', 'a')

    def stays(self):
        """Whether it keeps the lane, and its handler lives."""
        ready, _, _ = select.select([self.handle], [], [], STAYS)
        return not ready and self.where()['fence'] == self.fence

    def done(self):
        self.gate.file.write(b'go\n')
        self.runner.send_signal(signal.SIGTERM)
        assert self.runner.wait(PATIENCE) == OK
        assert b'detached' not in self.runner.stderr.read()
        os.close(self.handle)


@pytest.mark.parametrize('seconds', [HOUR, -HOUR])
def test_a_step_of_a_runners_clock_changes_no_owner(shop, seconds):
    clock = Clock(shop.folder)
    owner = Owner(shop, 'stepped', env=clock.env)
    hour = until_hour(owner)
    watched(shop)
    clock.step(seconds)
    assert until_hour(owner) != hour
    assert owner.stays()
    owner.done()


def watched(shop):
    """By somebody who takes no shards, but would take the place of one who is silent."""
    shop.start('work', 'q', '--name', 'other', '--weight', '0', *TIMES, '--', 'true', stderr=None)
    deadline = time.monotonic() + PATIENCE
    while len(shop.objects('runner')) < 2:
        assert time.monotonic() < deadline, shop.ok('runner')


def until_hour(owner):
    """The hour that it writes in its log, once it has done another job."""
    owner.shop.put('q', 'y')
    return until_log(owner.runner, 'was here').split('T')[1].split(':')[0]


def test_a_step_of_the_servers_clock_changes_no_owner(tmp_path):
    if not databases.tools():
        pytest.skip('no PostgreSQL server is installed')
    database = databases.Database(clock=Clock)
    try:
        database.renew()
        tmp_path.chmod(0o700)
        shop = Shop(tmp_path, database.info())
        owner = Owner(shop, 'owner')
        watched(shop)
        for seconds in (HOUR, -HOUR):
            before = shop.object('show', shop.put('q', '--delay', '1d', 'x'))['put']
            database.clock.step(seconds)
            after = shop.object('show', shop.put('q', '--delay', '1d', 'x'))['put']
            assert before[:13] != after[:13]
            assert owner.stays()
        owner.done()
        shop.end()
    finally:
        database.done()
