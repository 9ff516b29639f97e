"""A standby that takes over, and lacks what the server before it has committed last."""
import subprocess
import time

import pytest

import databases
from conftest import PATIENCE, Shop

pytestmark = pytest.mark.skipif(not databases.tools(), reason='no PostgreSQL server is installed')


def ask(database, sql):
    result = subprocess.run([databases.tools() / 'psql', '-X', '-A', '-t', '-h', database.folder,
                             '-U', 'baton', '-d', f't{database.names}', '-c', sql], check=True,
                            text=True, stdout=subprocess.PIPE, timeout=PATIENCE)
    return result.stdout.strip()


def wait_until(database, sql):
    deadline = time.monotonic() + PATIENCE
    while ask(database, sql) != 't':
        assert time.monotonic() < deadline, (database.folder / 'log').read_text()


class Standby(databases.Database):
    """Has what the other one has, until it is stopped."""

    def __init__(self, primary):
        self.primary = primary
        super().__init__()
        self.names = primary.names

    def make_files(self):
        self.run('pg_basebackup', '-D', 'data', '-R', '-X', 'stream', '-c', 'fast', '-h',
                 self.primary.folder, '-U', 'baton')

    def promote(self):
        self.run('pg_ctl', 'promote', '-D', 'data')
        wait_until(self, 'SELECT NOT pg_is_in_recovery()')


@pytest.fixture
def pair():
    primary = databases.Database()
    primary.renew()
    standby = Standby(primary)
    yield primary, standby
    standby.done()
    primary.done()


def fences(shop):
    """Of a lease, of a claim in a lane, and of one without."""
    shop.put('q', 'x')
    shop.put('q', 'x', '--lane', 'l')
    given = [int(shop.ok('lock', '--cluster', 'subject', 'sh', '-c', 'echo $BATON_FENCE'))]
    for _ in range(2):
        claim = shop.claim('q')
        shop.ok('complete', env=claim['env'])
        given.append(claim['fence'])
    return given


def test_no_fence_comes_again_though_the_standby_does_not_know_it(tmp_path, pair):
    tmp_path.chmod(0o700)
    primary, standby = pair
    hosts = f'host={primary.folder},{standby.folder} target_session_attrs=read-write'
    shop = Shop(tmp_path, primary.info(hosts))
    first = fences(shop)
    lsn = ask(primary, 'SELECT pg_current_wal_lsn()')
    wait_until(standby, f"SELECT pg_last_wal_replay_lsn() >= '{lsn}'")
    standby.stop()
    for _ in range(3):
        last = fences(shop)
        assert all(a < b for a, b in zip(first, last))
    lost = shop.put('q', 'lost')
    primary.stop()
    standby.start()
    wait_until(standby, 'SELECT pg_is_in_recovery()')
    assert 'cannot connect' in shop.refused(74, 'ls')
    standby.promote()
    assert lost not in shop.states()
    after = fences(shop)
    assert all(a < b for a, b in zip(last, after)), (last, after)
    shop.ok('check')
