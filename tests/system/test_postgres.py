"""Stores in PostgreSQL, as those who operate its server have them: tables made by hand, copies with
its own tools, connections with TLS."""
import os
import re
import subprocess

import pytest

import databases
from conftest import PATIENCE, Shop

pytestmark = pytest.mark.skipif(not databases.tools(), reason='no PostgreSQL server is installed')

CANNOT, UNREACHABLE = 73, 74

# All that there is in the schema, and who may what with it.
OUTLINE = """SELECT string_agg(x.line, '; ' ORDER BY x.line) FROM (
 SELECT p.oid::regprocedure || p.prosrc || coalesce(p.proconfig::text, '') || p.proacl::text AS line
  FROM pg_proc p WHERE p.pronamespace = 'baton'::regnamespace
 UNION ALL SELECT c.relname || coalesce(c.relacl::text, '') || coalesce(c.reloptions::text, '')
  FROM pg_class c WHERE c.relnamespace = 'baton'::regnamespace AND c.relkind <> 't'
 UNION ALL SELECT a.attrelid::regclass || a.attname || a.atttypid::regtype
  FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
  WHERE c.relnamespace = 'baton'::regnamespace AND a.attnum > 0 AND NOT a.attisdropped
 UNION ALL SELECT pg_get_triggerdef(t.oid) FROM pg_trigger t WHERE NOT t.tgisinternal
 UNION ALL SELECT 'version ' || version FROM baton.state) x"""


def psql(database, text, *options):
    """What it writes, in the newest database of the server."""
    result = subprocess.run(
        [databases.tools() / 'psql', '-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1', '-h',
         database.folder, '-U', 'baton', '-d', f't{database.names}', *options],
        check=False, text=True, input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        timeout=PATIENCE)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_tables_that_are_made_by_hand_are_those_that_migrate_makes(far_shop, database):
    said = far_shop.ok('migrate')
    assert re.fullmatch(r'the tables of postgres:.*dbname=.* are those of this version\n', said)
    assert far_shop.ok('migrate') == said
    made = psql(database, OUTLINE)
    printed = far_shop.ok('migrate', '--print')
    database.renew()
    by_hand = Shop(far_shop.folder, database.info())
    assert by_hand.ok('migrate', '--print') == printed
    psql(database, printed, '-1')
    assert psql(database, OUTLINE) == made
    # Who works there may not change them, and need not.
    psql(database, 'DROP ROLE IF EXISTS worker; CREATE ROLE worker LOGIN IN ROLE baton_runner')
    worker = Shop(far_shop.folder, database.info().replace('user=baton', 'user=worker'))
    job = worker.put('q', 'x')
    assert worker.states() == {job: 'ready'}
    worker.ok('complete', env=worker.claim('q')['env'])
    worker.ok('check')


def test_an_application_puts_in_its_own_transaction(far_shop, database):
    far_shop.ok('migrate')
    psql(database, 'DROP ROLE IF EXISTS app; CREATE ROLE app LOGIN IN ROLE baton_put; '
         'CREATE TABLE public.orders(id int, job bigint); GRANT ALL ON public.orders TO app')
    psql(database, """SET ROLE app;
BEGIN;
INSERT INTO public.orders SELECT 1, baton.put('mail', '{"to": "you"}'::jsonb, 'customer 7');
ROLLBACK;
BEGIN;
INSERT INTO public.orders SELECT 2, baton.put('mail', '{"to": "you"}'::jsonb, 'customer 7');
INSERT INTO public.orders SELECT 3, x FROM baton.put_many('mail', ARRAY['{"n": 1}'::jsonb]) x;
COMMIT;
""")
    jobs = psql(database, 'SELECT job FROM public.orders ORDER BY id').split()
    assert far_shop.states() == dict.fromkeys(jobs, 'ready')
    assert far_shop.claim('mail')['lane'] == 'customer 7'
    far_shop.ok('check')


def test_a_copy_is_made_with_the_servers_tools(far_shop):
    far_shop.put('q', 'x')
    assert far_shop.refused(CANNOT, 'backup', str(far_shop.folder / 'copy')) == (
        'a store in PostgreSQL is copied with its own tools: pg_dump, or pg_basebackup for the '
        'whole server')


def test_in_a_dump_that_was_brought_back_nothing_is_held_and_no_fence_comes_again(far_shop,
                                                                                  database):
    shop = far_shop
    for lane in [[], ['--lane', 'l'], ['--concurrency-key', 'k']]:
        shop.put('q', 'x', *lane)
    shop.ok('put', 'q', '--file', '-', input=b'{"payload": "x"}\n' * 8)
    held = [shop.claim('q', '--ttl', '1h') for _ in range(4)]
    lease = int(shop.ok('lock', '--cluster', 'subject', 'sh', '-c', 'echo $BATON_FENCE'))
    dump = shop.folder / 'dump'
    database.run('pg_dump', '-h', database.folder, '-U', 'baton', '-n', 'baton', '-f',
                 str(database.folder / 'dump'), f't{database.names}')
    os.replace(database.folder / 'dump', dump)
    # What the copy does not know.
    later = [shop.claim('q', '--ttl', '1h') for _ in range(2)]
    database.renew()
    psql(database, dump.read_text())
    copy = Shop(shop.folder, database.info())
    copy.ok('check')
    for claim in held:
        refused = copy.run('complete', env=claim['env'])
        assert refused.returncode != 0, claim
    again = [copy.claim('q') for _ in range(4)]
    highest = max(claim['fence'] for claim in held + later)
    assert all(claim['fence'] > highest for claim in again), (again, highest)
    assert int(copy.ok('lock', '--cluster', 'subject', 'sh', '-c', 'echo $BATON_FENCE')) > lease
    for claim in again:
        copy.ok('complete', env=claim['env'])
    copy.ok('check')
    shop.ok('complete', env=held[0]['env'])


class SecureDatabase(databases.Database):
    """One that takes connections with TLS, at an address that no other process of this machine
    has, because it is made of a process id."""

    def make_files(self):
        super().make_files()
        number = os.getpid()
        self.address = f'127.{1 + (number >> 16) % 250}.{number >> 8 & 255}.{number & 255}'
        self.run_as('openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt',
                    'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', 'data/server.key', '-out',
                    'data/server.crt', '-days', '2', '-subj', '/CN=db', '-addext',
                    f'subjectAltName=IP:{self.address}')
        os.chmod(self.folder / 'data/server.key', 0o600)
        with open(self.folder / 'data/postgresql.conf', 'a', encoding='utf-8') as file:
            file.write('ssl = on\n')
        # Nobody gets in otherwise, but through the socket.
        (self.folder / 'data/pg_hba.conf').write_text(
            'local all all trust\nhostssl all all 127.0.0.0/8 trust\n', 'utf-8')

    def run_as(self, *command):
        subprocess.run(command, cwd=self.folder, check=True, timeout=PATIENCE,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **self.who)

    def options(self):
        return ['-c', f'listen_addresses={self.address}']


@pytest.fixture
def secure():
    database = SecureDatabase()
    database.renew()
    yield database
    database.done()


def test_connections_are_secured_as_libpq_does_it(tmp_path, secure):
    tmp_path.chmod(0o700)
    root = tmp_path / 'root.crt'
    root.write_bytes((secure.folder / 'data/server.crt').read_bytes())
    where = secure.info(f'host={secure.address} sslmode=verify-full sslrootcert={root}')
    shop = Shop(tmp_path, where)
    job = shop.put('q', 'x')
    handler = shop.start('work', 'q', '--once', '--', 'sh', '-c', 'true')
    assert handler.wait(PATIENCE) == 0, handler.stderr.read()
    assert job not in shop.states()
    waits = shop.start('claim', 'r', '--wait', f'{PATIENCE}s', '--json')
    listed = "SELECT bool_and(s.ssl) AND count(*) > 0 FROM pg_stat_ssl s JOIN pg_stat_activity a " \
             "USING (pid) WHERE a.datname = current_database() AND a.pid <> pg_backend_pid()"
    while psql(secure, listed) != 't':
        assert waits.poll() is None
    shop.put('r', 'y')
    assert waits.wait(PATIENCE) == 0
    # Who is somebody else, or does not want it, is left alone.
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt',
                    'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', '/dev/null', '-out', root,
                    '-days', '2', '-subj', '/CN=other'], check=True, timeout=PATIENCE,
                   stderr=subprocess.DEVNULL)
    assert 'certificate verify failed' in shop.refused(UNREACHABLE, 'ls')
    plain = Shop(tmp_path, where.replace('verify-full', 'disable'))
    assert 'no encryption' in plain.refused(UNREACHABLE, 'ls')
