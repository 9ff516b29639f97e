"""baton backup and check."""
import os
import sqlite3

import pytest

OK, NO, USAGE, DATA, CANNOT_CREATE, IO_ERROR, PERMISSION = 0, 1, 64, 65, 73, 74, 77


@pytest.fixture
def copy(shop):
    return str(shop.folder / 'copy.db')


def fill(shop, count, payload='x'):
    line = b'{"payload": "%s"}\n' % payload.encode()
    shop.ok('put', 'q', '--file', '-', input=line * count)


def test_a_copy_has_everything(shop, copy):
    fill(shop, 1500)
    shop.claim('q')
    line = shop.run('backup', copy).stdout.decode()
    assert line.endswith(f' pages copied to {copy}\n') and int(line.split()[0]) > 0
    found = {**shop.env, 'BATON_STORE': f'sqlite:{copy}'}
    assert shop.ok('check', env=found) == 'no faults\n'
    assert shop.object('queue', 'show', 'q', env=found)['ready'] == 1499
    assert shop.object('queue', 'show', 'q', env=found)['running'] == 1


def test_fences_of_a_copy_are_higher(shop, copy):
    shop.put('q', 'x')
    shop.put('q', 'y')
    first = shop.claim('q')
    shop.ok('backup', copy)
    later = shop.claim('q')     # handed out after the copy was made
    found = {'BATON_STORE': f'sqlite:{copy}'}
    claim = shop.object('claim', 'q', env=found)
    assert claim['fence'] > later['fence'] > first['fence']


def test_a_copy_replaces_nothing(shop, copy):
    shop.put('q', 'x')
    shop.ok('backup', copy)
    before = open(copy, 'rb').read()
    assert shop.refused(CANNOT_CREATE, 'backup', copy) == (
        f'{copy} is there already: a copy replaces nothing')
    assert open(copy, 'rb').read() == before
    assert shop.refused(CANNOT_CREATE, 'backup', shop.path).endswith('a copy replaces nothing')


def test_a_copy_that_cannot_be_made_is_named(shop):
    shop.put('q', 'x')
    assert shop.refused(IO_ERROR, 'backup', '/nonexistent/copy.db') == (
        'cannot make /nonexistent/copy.db: No such file or directory')
    assert shop.refused(USAGE, 'backup') == "'backup' needs the path of the copy"
    assert shop.refused(USAGE, 'backup', 'a', 'b') == "'backup' takes one argument, but got 'b' too"
    for path in ('', 'x' * 4001):
        assert shop.refused(USAGE, 'backup', path) == (
            f'the path of the copy has {len(path)} bytes: 1 to 4000 are allowed')


def test_a_full_disk_leaves_nothing_behind(shop):
    fill(shop, 10)
    limit = 65536       # bytes that one file may have
    result = shop.run('backup', str(shop.folder / 'copy.db'), preexec_fn=lambda: limited(limit))
    assert result.returncode == IO_ERROR
    assert result.stderr.startswith(b'baton: cannot copy to')
    assert sorted(f for f in os.listdir(shop.folder) if f.startswith('copy')) == []


def limited(size):
    import resource
    import signal
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_a_copy_is_described_for_programs(shop, copy):
    shop.put('q', 'x')
    found = shop.object('backup', copy)
    assert found['file'] == copy and found['pages'] > 0


def test_progress_is_shown(shop, copy):
    fill(shop, 10000, 'x' * 1000)
    told = shop.run('backup', copy).stderr.decode().splitlines()
    assert told and all(' pages, ' in line and line.endswith(' %') for line in told)
    result, bar = shop.at_terminal('backup', copy + '2')
    assert result.returncode == OK
    assert b'[' + b'#' * 40 + b'] 100 %' in bar and bar.endswith(b'\r\x1b[K')


def test_a_sound_store_has_no_faults(shop):
    shop.put('q', 'x')
    assert shop.ok('check') == 'no faults\n'
    assert shop.objects('check') == []


def test_faults_are_told_and_counted(shop):
    shop.put('q', '--lane', 'l', 'x')
    with sqlite3.connect(shop.path) as store:
        store.execute('DELETE FROM batch')
    store.close()
    result = shop.run('check')
    faults = result.stdout.decode().splitlines()
    assert result.returncode == NO and faults
    assert result.stderr.decode() == (
        f"baton: {len(faults)} faults in '{shop.store}'; a copy made by 'baton backup' can take "
        'its place\n')
    result = shop.run('check', '--json')
    assert result.returncode == NO
    assert len(result.stdout.splitlines()) == len(faults)
    assert result.stdout.startswith(b'{"fault":"')


def test_check_takes_no_argument(shop):
    assert shop.refused(USAGE, 'check', 'x') == "'check' takes no argument, but got 'x'"


def test_with_a_closed_output_no_copy_is_made(shop, copy):
    shop.put('q', 'x')
    result = shop.run('backup', copy, stdout=None, preexec_fn=lambda: os.close(1))
    assert result.returncode == IO_ERROR
    assert result.stderr == b'baton: cannot write to standard output: Bad file descriptor\n'
    assert not os.path.exists(copy)


def test_a_copy_beside_the_log_of_another_store_is_refused(shop, copy):
    shop.put('q', 'x')
    shop.ok('backup', copy)
    with open(f'{copy}-wal', 'wb') as log:
        log.write(b'of another one')
    assert shop.refused(DATA, 'check', env={'BATON_STORE': f'sqlite:{copy}'}) == (
        f'{copy} is a copy, but {copy}-wal is of the store that was there before: remove it first, '
        'or put back that store')
    os.unlink(copy)
    assert shop.refused(CANNOT_CREATE, 'backup', copy) == (
        f'{copy}-wal is there already: a copy replaces nothing')
