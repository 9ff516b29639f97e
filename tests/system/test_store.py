"""Which store a command is about, what is wrong with it, and who holds what in it."""
import contextlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import tempfile

import pytest

OK, NO, USAGE, DATA, UNAVAILABLE, SYSTEM, IO_ERROR, TEMPORARY, PERMISSION = (
    0, 1, 64, 65, 69, 71, 74, 75, 77)
CLAIM = ['1-2', '0' * 32]
LOOKING = [['ls'], ['show', '1'], ['why', '1'], ['queue'], ['queue', 'show', 'q'], ['check'],
           ['backup', 'copy.db'], ['holders', '--cluster'], ['schedule'],
           ['schedule', 'show', 's']]
CHANGING = [['claim', 'q'], ['renew', *CLAIM], ['complete', *CLAIM],
            ['fail', '--error', 'e', *CLAIM], ['abandon', *CLAIM], ['snooze', '1', *CLAIM],
            ['cancel', '1'], ['retry', '1'], ['queue', 'pause', 'q'], ['queue', 'resume', 'q'],
            ['schedule', 'remove', 's'], ['schedule', 'tick'], ['force-release', '--cluster', 'x']]
MAKING = [['put', 'q', 'x'], ['queue', 'set', 'q', 'keep=1h'],
          ['schedule', 'set', 's', '@daily', '--queue', 'q']]
ALL = LOOKING + CHANGING + MAKING


def names(commands):
    return [' '.join(c[:2]) for c in commands]


@pytest.mark.parametrize('command', LOOKING + CHANGING, ids=names(LOOKING + CHANGING))
def test_only_what_puts_something_makes_a_store(shop, command):
    line = f"there is no store '{shop.store}'; 'baton put' makes one"
    assert shop.refused(UNAVAILABLE, *command, cwd=shop.folder) == line
    assert os.listdir(shop.folder) == []
    open(shop.path, 'w').close()    # as left behind by somebody who was about to make it
    assert shop.refused(UNAVAILABLE, *command, cwd=shop.folder) == line
    assert os.path.getsize(shop.path) == 0


@pytest.mark.parametrize('command', MAKING, ids=names(MAKING))
def test_what_puts_something_makes_a_store(shop, command):
    shop.ok(*command)
    shop.ok('check')


@pytest.mark.parametrize('where, line', [
    ('jobs.db', "'jobs.db' is no store: a file is given as 'sqlite:jobs.db'"),
    ('/tmp/a:b', "'/tmp/a:b' is no store: a file is given as 'sqlite:/tmp/a:b'"),
    ('memory:', 'a store in memory ends with the command: use sqlite:PATH'),
    ('mysql://ada:secret@host/db',
     "'mysql:' is no kind of store that is known: use sqlite:PATH or postgresql://HOST/DATABASE"),
    ('sqlite:', 'the path of the store has 0 bytes: 1 to 4000 are allowed'),
    ('sqlite:/' + 'x' * 4000, 'the path of the store has 4001 bytes: 1 to 4000 are allowed'),
], ids=range(6))
@pytest.mark.parametrize('command', ALL, ids=names(ALL))
def test_a_bad_name_is_explained(shop, command, where, line):
    assert shop.refused(USAGE, *command, '--store', where) == line
    assert shop.refused(USAGE, *command, env={'BATON_STORE': where}) == line


def test_an_empty_name_is_explained(shop):
    assert shop.refused(USAGE, 'ls', '--store', '') == (
        "'' is no store: a file is given as 'sqlite:PATH'")
@pytest.mark.parametrize('where', [
    'postgresql://ada:secret@/db?host=/nowhere',
    'postgres:host=/nowhere password=secret',
    'postgres:host=/nowhere pass word=secret',
])
def test_a_password_is_shown_by_nothing(shop, where):
    for given in [['--store', where], ['-v', '--store', where]]:
        result = shop.run('ls', *given)
        assert result.returncode != 0
        assert b'secret' not in result.stdout + result.stderr


def test_an_option_comes_before_the_environment(shop):
    other = f'sqlite:{shop.folder}/other.db'
    shop.ok('put', 'q', 'x', '--store', other)
    assert not os.path.exists(shop.path)
    result = shop.run('ls', '-v', '--store', other)
    assert result.stderr.decode() == f"baton: the store is '{other}'\n"
    assert result.stdout.count(b'\n') == 2


@pytest.mark.parametrize('variable, below', [
    ('XDG_STATE_HOME', 'state/baton/baton.db'), ('HOME', '.local/state/baton/baton.db')])
def test_a_user_has_a_store_of_his_own(shop, as_other, variable, below):
    if variable == 'HOME' and not as_other and os.geteuid() == 0:
        pytest.skip('root has no store at home')
    home = tempfile.mkdtemp()
    os.chmod(home, 0o777)
    env = {'BATON_STORE': '', 'XDG_STATE_HOME': '', 'HOME': '/nonexistent',
           variable: home + ('/state' if variable == 'XDG_STATE_HOME' else '')}
    try:
        result = shop.run('put', 'q', 'x', '-v', env=env, **as_other)
        path = os.path.join(home, below)
        assert result.stderr.decode() == f"baton: the store is 'sqlite:{path}'\n"
        assert os.path.exists(path)
        assert os.stat(os.path.dirname(path)).st_mode & 0o777 == 0o700
        assert shop.run('put', 'q', 'y', env=env, **as_other).stdout == b'2\n'
        assert len(shop.run('ls', env=env, **as_other).stdout.splitlines()) == 3
    finally:
        shutil.rmtree(home)


def test_without_a_home_there_is_no_store(shop, as_other):
    if os.geteuid() == 0 and not as_other:
        pytest.skip('root needs no home')
    env = {'BATON_STORE': '', 'XDG_STATE_HOME': 'relative', 'HOME': ''}
    assert shop.refused(USAGE, 'put', 'q', 'x', env=env, **as_other) == (
        'there is no folder for a store: set HOME, or give --store sqlite:PATH')


def test_a_folder_that_cannot_be_made_is_named(shop):
    env = {'BATON_STORE': '', 'XDG_STATE_HOME': str(shop.folder / 'a')}
    (shop.folder / 'a').write_text('')
    assert shop.refused(SYSTEM, 'put', 'q', 'x', env=env) == (
        f"cannot make the folder '{shop.folder}/a/baton' for the store: Not a directory")


def text_file(path):
    path.write_text('This is a text, and nothing like a store.\n' * 50)
    return f'{path} is no store: it is not an SQLite file'


def foreign_file(path):
    with sqlite3.connect(path) as other:
        other.execute('CREATE TABLE t (x)')
    other.close()
    return f'{path} is no store: it is an SQLite file of another program'


def folder(path):
    path.mkdir()
    return f'{path} is no store: it is not a file'


def newer_file(path):
    subprocess.run([os.environ['BATON_BIN'], 'put', 'q', 'x', '--store', f'sqlite:{path}'],
                   check=True, capture_output=True, timeout=60)
    with sqlite3.connect(path) as store:
        known, = store.execute('PRAGMA user_version').fetchone()
        store.execute('PRAGMA user_version=99')
    store.close()
    return (f'store {path} has version 99 of its tables, and this program knows them up to '
            f'{known}: a newer baton has to open it')


@pytest.mark.parametrize('make', [text_file, foreign_file, folder, newer_file])
@pytest.mark.parametrize('command', ALL, ids=names(ALL))
def test_what_is_no_store_is_left_alone(shop, command, make):
    path = shop.folder / 'store.db'
    line = make(path)
    before = path.read_bytes() if path.is_file() else None
    assert shop.refused(DATA, *command, cwd=shop.folder) == line
    assert before is None or path.read_bytes() == before


def test_a_store_that_cannot_be_made_is_named(shop):
    where = 'sqlite:/nonexistent/store.db'
    assert shop.refused(IO_ERROR, 'put', 'q', 'x', '--store', where) == (
        'cannot open store /nonexistent/store.db: No such file or directory')


@pytest.fixture
def public(shop, as_other):
    """A folder that anybody can see into, where only its owner may write."""
    if not as_other:
        pytest.skip('needs root to be somebody else')
    path = tempfile.mkdtemp()
    os.chmod(path, 0o755)
    yield path
    shutil.rmtree(path)


@pytest.mark.parametrize('command', ALL, ids=names(ALL))
def test_a_store_that_may_only_be_read_is_no_use(shop, public, as_other, command):
    where = f'sqlite:{public}/store.db'
    shop.ok('put', 'q', 'x', '--store', where)
    line = shop.refused(PERMISSION, *command, '--store', where, **as_other)
    assert line.endswith('; this user may not use it'), line
    assert f'store {public}/store.db' in line


def test_a_folder_of_locked_files_that_is_of_somebody_else_is_named(shop, public, as_other):
    where = f'sqlite:{public}/store.db'
    shop.ok('lock', '--cluster', '--store', where, 'x', 'true')
    os.chmod(public, 0o777)
    os.chmod(f'{public}/store.db', 0o666)
    os.chmod(f'{public}/store.db.locks', 0o700)
    assert shop.refused(PERMISSION, 'lock', '--cluster', '--store', where, 'x', 'true',
                        **as_other) == (
        f"the folder '{public}/store.db.locks' cannot be opened: Permission denied; "
        'this user may not use it')
    assert shop.ok('holders', '--cluster', '--store', where) == ''


def test_a_folder_that_may_not_be_written_is_named(shop, public, as_other):
    env = {'BATON_STORE': '', 'XDG_STATE_HOME': public}
    assert shop.refused(PERMISSION, 'put', 'q', 'x', env=env, **as_other) == (
        f"cannot make the folder '{public}/baton' for the store: Permission denied")
    where = f'sqlite:{public}/store.db'
    assert shop.refused(PERMISSION, 'put', 'q', 'x', '--store', where, **as_other) == (
        f'cannot open store {public}/store.db: Permission denied; this user may not use it')


@pytest.mark.parametrize('command', ALL, ids=names(ALL))
def test_a_store_whose_folder_may_not_be_written_is_no_use(shop, public, as_other, command):
    where = f'sqlite:{public}/store.db'
    shop.ok('put', 'q', 'x', '--store', where)
    os.chmod(f'{public}/store.db', 0o666)
    line = shop.refused(PERMISSION, *command, '--store', where, **as_other)
    assert line.endswith(f'store {public}/store.db: its file and its folder have to be writable '
                         '(Permission denied); this user may not use it'), line


def test_a_store_that_is_locked_for_long_is_busy(shop):
    shop.put('q', 'x')
    other = sqlite3.connect(shop.path, isolation_level=None)
    other.execute('BEGIN IMMEDIATE')
    line = shop.refused(TEMPORARY, 'put', 'q', 'y')
    assert re.match(rf'process [0-9]+ has kept store {shop.path} locked for more than', line)
    assert list(shop.states()) == ['1']         # looking goes on meanwhile
    other.execute('ROLLBACK')
    other.close()
    shop.put('q', 'y')


def test_a_damaged_store_is_reported(shop):
    shop.ok('put', 'q', '--file', '-', input=b'{"payload": "x"}\n' * 1000)
    with open(shop.path, 'r+b') as file:
        for page in range(3, 20):
            file.seek(4096 * page)
            file.write(b'\xff' * 4096)
    result = shop.run('ls')
    assert result.returncode == IO_ERROR
    assert b'the file is damaged; baton check says more' in result.stderr
    result = shop.run('check')
    assert result.returncode in (NO, IO_ERROR)
    assert b'Page 4' in result.stdout


def change(shop, sql):
    with contextlib.closing(sqlite3.connect(shop.path)) as file, file:
        file.execute(sql)


@pytest.mark.parametrize('command', [('queue', 'list', '--json'), ('ls',), ('put', 'q', 'x'),
                                     ('claim', 'q')])
def test_a_queue_that_cannot_be_is_named(shop, command):
    shop.ok('put', 'q', 'x')
    change(shop, 'UPDATE queue SET mode = 9')
    why = b'queue 1 cannot be: mode is 9: 1 to 4 are allowed'
    result = shop.run(*command)
    assert result.returncode == IO_ERROR
    assert why + b'; baton check says more\n' in result.stderr
    result = shop.run('check')
    assert result.returncode == NO and why in result.stdout


def test_keys_that_are_no_text_are_shown_as_json(shop):
    shop.ok('put', 'q', '--concurrency-key', 'k', '--concurrency-key', 'l', 'x')
    change(shop, "UPDATE batch SET lane = CAST(CAST(lane AS BLOB) || x'ff' AS BLOB)")
    job = json.loads(shop.ok('ls', '--json'))
    assert '\ufffd' in ''.join(job['concurrency_key'])


@pytest.fixture
def lessee(shop):
    """Holds leases, and gives their fences."""
    started = []

    def start(owner, *subjects):
        process = subprocess.Popen([os.environ['BATON_LESSEE'], shop.store, owner, *subjects],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        started.append(process)
        return process, [int(process.stdout.readline()) for _ in subjects]
    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def holders(shop, *arguments):
    return [(h['namespace'], h['label'], h['owner'])
            for h in shop.objects('holders', '--cluster', *arguments)]


def test_who_holds_what_in_a_store_is_listed(shop, lessee):
    process, fences = lessee('ada', 'lock/backup', 'lock/a/b', 'bare', '/x', 's' * 32 + '/y')
    assert all(fences)
    assert holders(shop) == [('', '/x', 'ada'), ('', 'bare', 'ada'), ('', 's' * 32 + '/y', 'ada'),
                             ('lock', 'a/b', 'ada'), ('lock', 'backup', 'ada')]
    assert holders(shop, 'lock') == [('lock', 'a/b', 'ada'), ('lock', 'backup', 'ada')]
    assert holders(shop, 'lock/backup') == [('lock', 'backup', 'ada')]
    assert holders(shop, 'loc') == []
    found, = shop.objects('holders', '--cluster', 'lock/backup')
    assert (found['fence'], found['pid']) == (fences[0], process.pid)
    assert 0 < found['left_ms'] <= 3600000 and found['held_ms'] >= 0
    rows = [line.split() for line in shop.ok('holders', '--cluster').splitlines()]
    assert rows[0][:4] == ['SUBJECT', 'OWNER', 'PID', 'FENCE']
    assert [row[0] for row in rows[1:]] == ['/x', 'bare', 's' * 32 + '/y', 'lock/a/b',
                                            'lock/backup']


def test_many_leases_are_listed(shop, lessee):
    lessee('ada', *(f'lock/{i:03}' for i in range(250)))
    assert [label for _, label, _ in holders(shop)] == [f'{i:03}' for i in range(250)]


def test_nobody_holds_anything_in_a_new_store(shop):
    shop.put('q', 'x')
    assert shop.ok('holders', '--cluster') == ''
    result = shop.run('holders', '--cluster', '-v')
    assert result.stderr.decode().splitlines() == [f"baton: the store is '{shop.store}'",
                                                   'baton: nobody holds anything']


@pytest.mark.parametrize('arguments, line', [
    (['--cluster', '--fleet', '/x'],
     '--cluster and --fleet cannot be together: a store is no fleet'),
    (['--store', 'sqlite:x'], '--store is for --cluster: a fleet is a file of its own'),
])
def test_a_store_is_no_fleet(shop, arguments, line):
    assert shop.refused(USAGE, 'holders', *arguments) == line
