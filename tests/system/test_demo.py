"""baton demo: what it shows is what happened, and it notices when that is not what it should be."""
import os
import pty
import re
import subprocess

import pytest

# A library that answers one call of the gate wrongly, and is loaded before the real one.
BROKEN = '''
enum baton_err { BATON_OK, BATON_YIELD, BATON_NOT_HELD };
%s
'''
BREAKAGES = {
    'everybody holds every key':
        'enum baton_err baton_gate_acquire(void *g, void *a, void *f, void *y);\n'
        'enum baton_err baton_gate_acquire(void *g, void *a, void *f, void *y)'
        ' { (void)g; (void)a; (void)f; (void)y; return BATON_OK; }',
    'nobody holds any key':
        'enum baton_err baton_gate_acquire(void *g, void *a, void *f, void *y);\n'
        'enum baton_err baton_gate_acquire(void *g, void *a, void *f, void *y)'
        ' { (void)g; (void)a; (void)f; (void)y; return BATON_YIELD; }',
    'every key looks held':
        '#include <stdbool.h>\n'
        'bool baton_gate_is_held(void *g, void *k, long n);\n'
        'bool baton_gate_is_held(void *g, void *k, long n)'
        ' { (void)g; (void)k; (void)n; return true; }',
}


def steps(result):
    """The lines of the play, as (who, verb, key, note)."""
    found = re.findall(r'^   (ada|ben|cleo) +(\w+) +(\w[\w-]*(?: \+ \w+)?) *(.*)$', result.stdout,
                       re.MULTILINE)
    return [s for s in found if s[1] in ('holds', 'yields', 'waits', 'releases')]


def fences(result, key):
    notes = [s[3] for s in steps(result) if s[1] == 'holds' and s[2] == key]
    return [int(re.fullmatch(r'fence (\d+)', n).group(1)) for n in notes]


def test_every_claim_is_true_and_the_last_line_says_so(baton):
    result = baton('demo')
    assert (result.returncode, result.stderr) == (0, '')
    last = result.stdout.splitlines()[-1]
    assert re.fullmatch(r'verdict: all \d+ claims were checked and are true', last)
    assert 'NOT TRUE' not in result.stdout


def test_one_of_two_holds_and_the_other_is_told_who(baton):
    first, second = steps(baton('demo'))[:2]
    assert {first[0], second[0]} == {'ada', 'ben'}
    assert (first[1], second[1]) == ('holds', 'yields')
    assert second[3] == f'to {first[0]}, who has {first[3]}'


def test_the_key_goes_through_the_line_with_growing_fences(baton):
    result = baton('demo')
    order = [s[0] for s in steps(result) if s[1] == 'holds' and s[2] == 'order-42']
    # The first two are the same hold, asked for twice.
    assert order[0] == order[1] and sorted(order[1:]) == ['ada', 'ben', 'cleo']
    assert order[-1] == 'cleo'
    numbers = fences(result, 'order-42')
    assert numbers[0] == numbers[1] < numbers[2] < numbers[3]


def test_a_raised_limit_lets_one_more_in_before_anybody_leaves(baton):
    moves = [(s[0], s[1]) for s in steps(baton('demo')) if s[2] == 'printer']
    assert moves[:4] == [('ada', 'holds'), ('ben', 'holds'), ('cleo', 'waits'), ('cleo', 'holds')]
    assert all(verb == 'releases' for _, verb in moves[4:])


def test_two_keys_are_taken_all_or_none(baton):
    result = baton('demo')
    both = [s[1] for s in steps(result) if s[2] == 'left + right']
    assert both == ['yields', 'holds', 'releases']
    assert 'right is still free' in result.stdout


def test_no_round_has_two_holders_or_none(baton):
    line = re.search(r'ada held it (\d+) times, ben (\d+) times, '
                     r'both at once (\d+) times, nobody (\d+) times', baton('demo').stdout)
    ada, ben, both, nobody = map(int, line.groups())
    assert (ada + ben, both, nobody) == (2000, 0, 0)


def test_no_line_ends_in_blanks_or_is_wider_than_80(baton):
    for line in baton('demo').stdout.splitlines():
        assert line == line.rstrip()
        assert len(line) <= 80


@pytest.mark.parametrize('breakage', BREAKAGES)
def test_a_gate_that_is_broken_is_found_out(baton, tmp_path, breakage):
    source = tmp_path / 'broken.c'
    source.write_text(BROKEN % BREAKAGES[breakage])
    library = tmp_path / 'broken.so'
    subprocess.run(['cc', '-shared', '-fPIC', str(source), '-o', str(library)], check=True)
    result = baton('demo', env={'LD_PRELOAD': str(library)})
    assert result.returncode == 1, result.stderr
    assert 'NOT TRUE' in result.stdout
    assert re.search(r'^verdict: \d+ of \d+ claims are not true$', result.stdout, re.MULTILINE)


def on_a_terminal(baton, **environment):
    """What the program writes to a terminal."""
    try:
        leader, follower = pty.openpty()
    except OSError as error:
        pytest.skip(f'no terminal to be had here: {error}')
    result = baton('demo', stdout=follower, env={'TERM': 'xterm', **environment})
    os.close(follower)
    written = b''
    try:
        while chunk := os.read(leader, 65536):
            written += chunk
    except OSError:
        pass    # how a terminal says that its last writer is gone
    os.close(leader)
    assert result.returncode == 0
    return written.decode()


def test_colours_are_for_terminals(baton):
    assert '\033[' in on_a_terminal(baton)
    assert '\033[' not in baton('demo', env={'TERM': 'xterm'}).stdout


@pytest.mark.parametrize('environment', [{'NO_COLOR': '1'}, {'TERM': 'dumb'}, {'TERM': ''}])
def test_colours_can_be_refused(baton, environment):
    assert '\033[' not in on_a_terminal(baton, **environment)


def test_an_empty_refusal_is_none(baton):
    assert '\033[' in on_a_terminal(baton, NO_COLOR='')
