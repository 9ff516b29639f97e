"""How the program is called, and what it answers when it is called wrongly."""
import os
import pathlib
import re
import subprocess

import pytest

USAGE = 64
IO_ERROR = 74
MANUAL = pathlib.Path(__file__).resolve().parent.parent.parent / 'man/baton.1'


def commands(baton):
    """The commands that the help lists."""
    return re.findall(r'^  ([a-z]\S*) ', baton('--help').stdout, re.MULTILINE)


def test_help_lists_the_commands(baton):
    result = baton('--help')
    assert (result.returncode, result.stderr) == (0, '')
    assert result.stdout.startswith('Baton gives every piece of work exactly one owner.\n')
    assert commands(baton) == [
        'demo', 'put', 'work', 'claim', 'renew', 'complete', 'fail', 'abandon', 'snooze', 'cancel',
        'retry', 'ls', 'show', 'why', 'queue', 'schedule', 'runner', 'where', 'top', 'backup',
        'check', 'migrate', 'lock', 'holders', 'watch', 'force-release', 'fleet', 'serve',
        'connect', 'backend', 'services', 'handoff', 'help']


@pytest.mark.parametrize('arguments', [['-h'], ['help']])
def test_there_are_several_ways_to_ask_for_it(baton, arguments):
    assert baton(*arguments).stdout == baton('--help').stdout


def test_every_command_is_explained(baton):
    for name in commands(baton):
        result = baton('help', name)
        assert (result.returncode, result.stderr) == (0, '')
        assert result.stdout.startswith(f'usage: baton {name}')
        for option in ('--help', '-h'):
            assert baton(name, option).stdout == result.stdout


def test_every_command_is_in_the_manual(baton):
    page = MANUAL.read_text()
    for name in commands(baton):
        assert re.search(rf'^\.It Cm (\S+ , )*{name}\b', page, re.MULTILINE), name


@pytest.mark.parametrize('option', ['--version', '-V'])
def test_the_version_is_that_of_the_project(baton, option):
    result = baton(option)
    assert (result.returncode, result.stdout) == (0, f'baton {os.environ["BATON_VERSION"]}\n')


@pytest.mark.parametrize('arguments, line', [
    ([], "no command; 'baton --help' lists them"),
    (['--'], "no command; 'baton --help' lists them"),
    (['dmeo'], "unknown command 'dmeo'; did you mean 'demo'?"),
    (['Demo'], "unknown command 'Demo'; did you mean 'demo'?"),
    (['hlp'], "unknown command 'hlp'; did you mean 'help'?"),
    (['helpp'], "unknown command 'helpp'; did you mean 'help'?"),
    (['xyzzy'], "unknown command 'xyzzy'; 'baton --help' lists them"),
    (['d'], "unknown command 'd'; 'baton --help' lists them"),
    ([''], "unknown command ''; 'baton --help' lists them"),
    (['de\nmo\033[1m'], "unknown command 'de?mo?[1m'; 'baton --help' lists them"),
    (['d' * 300], f"unknown command '{'d' * 76}...'; 'baton --help' lists them"),
    (['de\u009bmo'], "unknown command 'de?mo'; did you mean 'demo'?"),
    ([b'd\xff\xe2\x82mm'], "unknown command 'd???mm'; 'baton --help' lists them"),
    (['\u00e9\u20ac\U0001f600'], "unknown command '\u00e9\u20ac\U0001f600';"
                                " 'baton --help' lists them"),
    (['\u20ac' * 100], "unknown command '" + '\u20ac' * 25 + "...'; 'baton --help' lists them"),
    (['\u00e9' * 39], "unknown command '" + '\u00e9' * 39 + "'; 'baton --help' lists them"),
    (['\u00e9' * 40], "unknown command '" + '\u00e9' * 38 + "...'; 'baton --help' lists them"),
    (['-\u00e9'], "unknown option '-?'; 'baton --help' says more"),
    (['help', 'dmeo'], "unknown command 'dmeo'; did you mean 'demo'?"),
    (['help', 'demo', 'help'], "'help' takes one command, but got 'help' too"),
    (['--versoin'], "unknown option '--versoin'; did you mean '--version'?"),
    (['--hlep=x'], "unknown option '--hlep'; did you mean '--help'?"),
    (['--color'], "unknown option '--color'; 'baton --help' says more"),
    (['--help=x'], "option '--help' takes no value"),
    (['-x'], "unknown option '-x'; 'baton --help' says more"),
    (['-xh'], "unknown option '-x'; 'baton --help' says more"),
    (['demo', '--fast'], "unknown option '--fast'; 'baton demo --help' says more"),
    (['demo', '-x'], "unknown option '-x'; 'baton demo --help' says more"),
    (['demo', 'now'], "'demo' takes no argument, but got 'now'"),
    (['help', '--fast'], "unknown option '--fast'; 'baton help --help' says more"),
])
def test_a_wrong_call_gets_one_clear_line(baton, arguments, line):
    result = baton(*arguments)
    assert result.returncode == USAGE
    assert result.stdout == ''
    assert result.stderr == f'baton: {line}\n'


@pytest.mark.parametrize('arguments', [['--help'], ['--version'], ['help', 'demo'], ['demo']])
def test_a_full_output_is_reported(baton, arguments):
    with open('/dev/full', 'w') as full:
        result = baton(*arguments, stdout=full)
    assert result.returncode == IO_ERROR
    assert result.stderr == 'baton: cannot write to standard output: No space left on device\n'


@pytest.mark.parametrize('arguments', [['--help'], ['--version'], ['help', 'demo'], ['demo']])
def test_a_closed_output_is_reported(baton, arguments):
    result = baton(*arguments, preexec_fn=lambda: os.close(1), stdout=None)
    assert result.returncode == IO_ERROR
    assert result.stderr == 'baton: cannot write to standard output: Bad file descriptor\n'


def test_a_closed_output_does_not_hide_a_wrong_call(baton):
    result = baton('dmeo', preexec_fn=lambda: os.close(1), stdout=None)
    assert result.returncode == USAGE
    assert result.stderr == "baton: unknown command 'dmeo'; did you mean 'demo'?\n"


def test_a_reader_who_leaves_is_no_success(baton):
    reader, writer = os.pipe()
    os.close(reader)
    result = baton('--help', stdout=writer)
    os.close(writer)
    assert result.returncode != 0


def test_a_closed_standard_error_is_no_success(baton):
    result = baton('dmeo', preexec_fn=lambda: os.close(2), stderr=None)
    assert result.returncode == USAGE


def test_the_example_does_what_it_says():
    result = subprocess.run([os.environ['BATON_EXAMPLE_GATE']], capture_output=True, text=True,
                            check=False, timeout=120)
    assert (result.returncode, result.stderr) == (0, '')
    holds, yields, then = result.stdout.splitlines()
    first = int(re.fullmatch(r'ada holds it, fence (\d+)', holds).group(1))
    assert yields == f'ben yields to the holder of fence {first}'
    assert int(re.fullmatch(r'ben holds it, fence (\d+)', then).group(1)) > first


def test_the_example_of_a_loop_sends_in_order():
    result = subprocess.run([os.environ['BATON_EXAMPLE_LOOP']], capture_output=True, text=True,
                            check=False, timeout=120)
    assert (result.returncode, result.stderr) == (0, '')
    assert result.stdout == 'to ada: hello\nto ada: hello again\n'


def test_the_example_of_a_claim_holds_and_lets_go(tmp_path):
    environment = dict(os.environ, BATON_FLEET=str(tmp_path / 'fleet'))
    tmp_path.chmod(0o700)
    fences = []
    for _ in range(2):
        result = subprocess.run([os.environ['BATON_EXAMPLE_CLAIM']], capture_output=True, text=True,
                                check=False, timeout=120, env=environment)
        assert (result.returncode, result.stderr) == (0, '')
        fences.append(int(re.fullmatch(r'we hold it, fence (\d+)\n', result.stdout).group(1)))
    assert fences[1] > fences[0]
