"""baton schedule: jobs that are put again and again."""
import datetime
import sqlite3

import pytest

NO, USAGE, UNAVAILABLE = 1, 64, 69
HOUR = 3600 * 1000
FIELDS = {'schedule', 'cron', 'zone', 'missed', 'queue', 'lane', 'priority', 'last', 'next',
          'payload', 'paused'}


def moment(text):
    return datetime.datetime.fromisoformat(text.replace('Z', '+00:00'))


def let_pass(shop, ms):
    """Makes all schedules so much older."""
    with sqlite3.connect(shop.path) as store:
        store.execute('UPDATE schedule SET last = last - ?, next = next - ?', [ms, ms])
    store.close()


def hourly():
    """An expression of which no tick is near."""
    return f'{(datetime.datetime.now().minute + 30) % 60} * * * *'


def payloads(shop, queue='q'):
    return [shop.object('show', job)['payload'] for job in shop.states(queue)]


def test_a_schedule_is_as_it_was_set(shop):
    shop.ok('schedule', 'set', 'report', '30 6 * * MON-FRI', '--queue', 'mail', '--zone',
            'Europe/Berlin', '--lane', 'ada', '--priority', '7', '--missed', 'all', 'weekly')
    shown = shop.object('schedule', 'show', 'report')
    ticks = shown.pop('ticks')
    assert set(shown) == FIELDS
    assert shop.objects('schedule') == shop.objects('schedule', 'list') == [shown]
    assert shown['next'] == ticks[0] and len(ticks) == 5
    assert moment(shown['last']) < moment(ticks[0])
    assert ticks == sorted(set(ticks))
    assert all(moment(t).weekday() < 5 and moment(t).minute == 30 for t in ticks)
    assert all(moment(t).hour in (4, 5) for t in ticks)     # summer and winter
    for key, value in {'schedule': 'report', 'cron': '30 6 * * MON-FRI', 'zone': 'Europe/Berlin',
                       'missed': 'all', 'queue': 'mail', 'lane': 'ada', 'priority': 7,
                       'payload': 'weekly'}.items():
        assert shown[key] == value


def test_little_has_to_be_said(shop):
    shop.ok('schedule', 'set', 's', '@hourly', '--queue', 'q')
    shown = shop.object('schedule', 'show', 's')
    assert (shown['zone'], shown['missed'], shown['lane'], shown['priority'], shown['payload']) == (
        'UTC', 'once', None, 0, '')
    assert shop.objects('queue') == []      # it comes with the first job


def test_people_get_a_table_and_all_about_one(shop):
    assert shop.run('schedule').returncode == UNAVAILABLE
    shop.ok('queue', 'set', 'q', 'keep=1h')
    assert shop.ok('schedule') == ''
    shop.ok('schedule', 'set', 'b', '0 0 29 2 *', '--queue', 'q', '--lane', 'l', 'two\nlines')
    shop.ok('schedule', 'set', 'a', '@daily', '--queue', 'q')
    titles, first, second = shop.ok('schedule').splitlines()
    assert titles.split() == ['SCHEDULE', 'CRON', 'ZONE', 'QUEUE', 'LANE', 'NEXT', 'IN']
    assert first.split()[:5] == ['a', '@daily', 'UTC', 'q', '-']
    assert second.split()[:2] == ['b', '0'] and second.split()[7:9] == ['q', 'l']
    lines = shop.ok('schedule', 'show', 'b').splitlines()
    assert [line[:10].strip() for line in lines] == [
        'schedule', 'cron', 'zone', 'missed', 'queue', 'lane', 'priority', 'last', 'next', '', '',
        '', '', 'payload']
    assert all('-02-29 00:00:00' in line for line in lines[8:13])
    assert lines[-1] == 'payload   two\\x0alines'


def test_many_are_listed_in_the_order_of_their_names(shop):
    shop.ok('schedule', 'set', 's000', '@daily', '--queue', 'q')
    with sqlite3.connect(shop.path) as store:
        columns = [row[1] for row in store.execute('PRAGMA table_info(schedule)')]
        rest = ', '.join(c for c in columns if c != 'name')
        for i in range(1, 203):
            store.execute(f'INSERT INTO schedule (name, {rest}) SELECT ?, {rest} FROM schedule '
                          'WHERE name = ?', [f's{i:03}', 's000'])
    store.close()
    names = [f's{i:03}' for i in range(203)]
    assert [s['schedule'] for s in shop.objects('schedule')] == names
    assert [line.split()[0] for line in shop.ok('schedule').splitlines()] == ['SCHEDULE', *names]


def test_a_payload_is_taken_as_put_takes_it(shop):
    shop.ok('schedule', 'set', 's', '@daily', '--queue', 'q', '-', input=b'from\nits input\n')
    assert shop.object('schedule', 'show', 's')['payload'] == 'from\nits input\n'
    shop.ok('schedule', 'set', 's', '@daily', '--queue', 'q', '-', input=b'\xff\x00')
    assert shop.object('schedule', 'show', 's')['payload_base64'] == '/wA='
    assert 'payload   \\xff\\x00\n' in shop.ok('schedule', 'show', 's')


def test_what_is_due_is_put_once(shop):
    shop.ok('schedule', 'set', 's', hourly(), '--queue', 'q', '--lane', 'l', '--priority', '4',
            'hello')
    assert shop.ok('schedule', 'tick') == '0\n'
    let_pass(shop, 24 * HOUR)
    assert 'due       ' in shop.ok('schedule', 'show', 's')
    ticked = shop.object('schedule', 'tick')
    assert ticked['put'] == 1
    assert ticked['next'] == shop.object('schedule', 'show', 's')['next']
    assert shop.object('schedule', 'tick') == {'put': 0, 'next': ticked['next']}
    job, = shop.objects('ls', 'q')
    assert (job['lane'], job['priority'], payloads(shop)) == ('l', 4, ['hello'])
    assert 'due       ' not in shop.ok('schedule', 'show', 's')


@pytest.mark.parametrize('missed, count', [('once', 1), ('all', 24), ('skip', 0)])
def test_what_was_missed_is_put_as_told(shop, missed, count):
    shop.ok('schedule', 'set', 's', hourly(), '--queue', 'q', '--missed', missed)
    let_pass(shop, 24 * HOUR)
    assert shop.ok('schedule', 'tick') == f'{count}\n'
    assert len(shop.states('q')) == count


def test_who_waits_for_work_gets_what_a_tick_puts(shop):
    shop.ok('schedule', 'set', 's', hourly(), '--queue', 'q', 'hello')
    waiting = shop.start('claim', 'q', '--wait', '100s', '--json')
    let_pass(shop, 24 * HOUR)
    assert shop.ok('schedule', 'tick') == '1\n'
    out, err = waiting.communicate(timeout=120)
    assert (waiting.returncode, err) == (0, b'') and b'"payload":"hello"' in out


def test_one_schedule_that_fails_keeps_the_others_from_nothing(shop):
    shop.ok('queue', 'set', 'full', 'waiting-max=1')
    shop.put('full', 'x')
    for name, queue in (('a', 'full'), ('b', 'q')):
        shop.ok('schedule', 'set', name, hourly(), '--queue', queue)
    let_pass(shop, 24 * HOUR)
    result = shop.run('schedule', 'tick')
    assert (result.returncode, result.stdout) == (UNAVAILABLE, b'1\n')
    assert result.stderr.startswith(b'baton: schedule "a": queue "full" has 1 jobs waiting')
    assert len(shop.states('q')) == 1
    # It is tried again, and nothing else is left.
    assert shop.refused(UNAVAILABLE, 'schedule', 'tick').startswith('schedule "a": ')
    shop.ok('queue', 'set', 'full', 'waiting-max=2')
    assert shop.ok('schedule', 'tick') == '1\n'


def test_with_a_closed_output_nothing_is_put(shop):
    shop.ok('schedule', 'set', 's', hourly(), '--queue', 'q')
    let_pass(shop, 24 * HOUR)
    with open('/dev/null', 'rb') as unwritable:
        assert shop.run('schedule', 'tick', stdout=unwritable).returncode == 74
    assert shop.ok('schedule', 'tick') == '1\n'


def test_one_that_is_set_again_is_replaced(shop):
    shop.ok('schedule', 'set', 's', '0 * * * *', '--queue', 'q', '--lane', 'l', 'old')
    before = shop.object('schedule', 'show', 's')
    shop.ok('schedule', 'set', 's', '0 * * * *', '--queue', 'other', 'new')
    after = shop.object('schedule', 'show', 's')
    assert (after['queue'], after['lane'], after['payload']) == ('other', None, 'new')
    assert after['last'] == before['last']


def test_one_that_is_paused_does_not_tick_until_it_is_resumed(shop):
    shop.ok('schedule', 'set', 's', hourly(), '--queue', 'q', '--missed', 'all')
    shop.ok('schedule', 'pause', 's')
    assert shop.object('schedule', 'list')['paused'] and shop.object('schedule')['next'] is None
    assert shop.ok('schedule').splitlines()[1].split()[-2:] == ['paused', '-']
    assert 'next      paused\n' in shop.ok('schedule', 'show', 's')
    with sqlite3.connect(shop.path) as store:
        store.execute('UPDATE schedule SET last = last - ?', [24 * HOUR])
    store.close()
    assert shop.ok('schedule', 'tick') == '0\n'
    shop.ok('schedule', 'resume', 's')
    shown = shop.object('schedule', 'show', 's')
    assert not shown['paused'] and shown['next'] == shown['ticks'][0]
    assert shop.ok('schedule', 'tick') == '0\n'
    let_pass(shop, HOUR)
    assert shop.ok('schedule', 'tick') == '1\n'


def test_one_can_be_run_now(shop):
    shop.ok('schedule', 'set', 's', hourly(), '--queue', 'q', 'now')
    job = shop.ok('schedule', 'run', 's').strip()
    assert shop.object('show', job)['payload'] == 'now'
    shop.ok('schedule', 'pause', 's')
    other = shop.object('schedule', 'run', 's')['id']
    assert set(shop.states('q')) == {job, other}
    with open('/dev/null', 'rb') as unwritable:
        assert shop.run('schedule', 'run', 's', stdout=unwritable).returncode == 74
    assert len(shop.states('q')) == 2
    with open('/dev/full', 'wb') as full:
        result = shop.run('schedule', 'run', 's', stdout=full)
    assert (result.returncode, result.stderr.decode().splitlines()[0]) == (
        74, 'baton: job 3 is stored, though that cannot be told')
    assert len(shop.states('q')) == 3


def test_the_next_moments_are_shown_as_the_clocks_of_the_zone_show_them(shop):
    shop.ok('schedule', 'set', 's', '30 6 29 2 *', '--zone', 'America/New_York', '--queue', 'q')
    lines = shop.ok('schedule', 'next', 's', '-n', '2').splitlines()
    assert len(lines) == 2
    for line in lines:
        assert line.endswith('-02-29 06:30:00 -0500  America/New_York')
    found = shop.objects('schedule', 'next', 's')
    assert len(found) == 5 and {f['zone'] for f in found} == {'America/New_York'}
    assert [f"{f['local']}  {f['zone']}" for f in found[:2]] == lines
    assert all(moment(f['at']).hour == 11 for f in found)
    shop.ok('schedule', 'set', 'u', '@daily', '--queue', 'q')
    assert shop.ok('schedule', 'next', 'u', '-n', '1').endswith(' 00:00:00 +0000  UTC\n')


def test_one_that_is_removed_is_gone(shop):
    for name in 'ab':
        shop.ok('schedule', 'set', name, hourly(), '--queue', 'q', name)
    shop.ok('schedule', 'remove', 'a')
    assert [s['schedule'] for s in shop.objects('schedule')] == ['b']
    for verb in ('remove', 'show', 'pause', 'resume', 'run', 'next'):
        assert shop.refused(NO, 'schedule', verb, 'a') == (
            "there is no schedule 'a'; 'baton schedule list' has those there are")
    let_pass(shop, 24 * HOUR)
    assert shop.ok('schedule', 'tick') == '1\n'
    assert payloads(shop) == ['b']


SET = ['set', 's', '@daily', '--queue', 'q']


@pytest.mark.parametrize('arguments, line', [
    (['sho', 's'], "'schedule' cannot 'sho'; did you mean 'show'?"),
    (['frobnicate'], "'schedule' cannot 'frobnicate': list, show, set, remove, pause, "
     'resume, run, next and tick are known'),
    (['list', 's'], "'schedule list' got 's' too"),
    (['tick', 's'], "'schedule tick' got 's' too"),
    (['show'], "'schedule show' needs the name of a schedule"),
    (['show', 'a', 'b'], "'schedule show' got 'b' too"),
    (['remove'], "'schedule remove' needs the name of a schedule"),
    (['pause'], "'schedule pause' needs the name of a schedule"),
    (['resume', 'a', 'b'], "'schedule resume' got 'b' too"),
    (['run', 's', '--lane', 'l'], "--lane is for 'schedule set'"),
    (['next', 's', '-n', '0'], None),
    (['next', 's', '-n', '1001'], None),
    (['show', 's', '-n', '3'], "--count is for 'schedule next'"),
    (['set', 's', '--queue', 'q'],
     "'schedule set' needs the name of a schedule, and when it ticks"),
    (['set', 's', '@daily'], "'schedule set' needs --queue, where its jobs go"),
    (['set', 's', *'*****', '--queue', 'q'],
     "'schedule set' got '*' too; an expression such as '*/5 * * * *' is one word, in quotes"),
    (['set', '', '@daily', '--queue', 'q'],
     "the schedule's name is empty: 1 to 215 bytes are allowed"),
    (['set', 'n' * 216, '@daily', '--queue', 'q'],
     "the schedule's name has 216 bytes: 1 to 215 are allowed"),
    (['show', 'a\tb'], "the schedule's name has the control character U+0009 at byte 1"),
    (['set', 's', '0 24 * * *', '--queue', 'q'], None),
    (['set', 's', '0 0 30 2 *', '--queue', 'q'], None),
    (['set', 's', '* * * *', '--queue', 'q'], None),
    (['set', 's', '', '--queue', 'q'], None),
    (['set', 's', '@never', '--queue', 'q'], None),
    (['set', 's', '* ' * 600, '--queue', 'q'], None),
    ([*SET, '--zone', 'Nowhere/No'], None),
    ([*SET, '--zone', '../secret'], None),
    ([*SET, '--zone', ''], "the zone's name is empty: 1 to 255 bytes are allowed"),
    ([*SET, '--priority', '10'], None),
    ([*SET, '--missed', 'never'], "--missed is 'never': once, all and skip are allowed"),
    ([*SET, '--lane', ''], "the lane's name is empty: 1 to 255 bytes are allowed"),
    ([*SET, '--queue', 'a/b'], "the queue's name is 'a/b': it may not have a '/'"),
    (['list', '--queue', 'q'], "--queue is for 'schedule set'"),
    (['show', 's', '--zone', 'UTC'], "--zone is for 'schedule set'"),
    (['tick', '--lane', 'l'], "--lane is for 'schedule set'"),
    (['remove', 's', '--priority', '1'], "--priority is for 'schedule set'"),
    (['--missed', 'all'], "--missed is for 'schedule set'"),
])
def test_a_wrong_call_gets_one_clear_line_and_makes_no_store(shop, arguments, line):
    said = shop.refused(USAGE, 'schedule', *arguments)
    assert line is None or said == line
    assert list(shop.folder.iterdir()) == []


def test_a_payload_has_a_limit(shop):
    said = shop.refused(65, 'schedule', *SET, '-', input=b'x' * (64 * 1024 * 1024 + 1))
    assert '67108864' in said
