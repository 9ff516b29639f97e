"""tools/run-tests: nothing is left out when something fails. With stand-ins for the builders."""
import os
import shutil

import pytest

WAYS = ['build', 'build-asan', 'build-tsan']
# Sets up by making the directory; fails, and hangs on to nothing, where BROKEN says so.
MESON = '''#!/bin/sh
case $1 in
setup)
	case " $BROKEN_SETUP " in *" $2 "*) echo cannot set up; exit 1 ;; esac
	mkdir -p "$2"
	;;
test)
	echo "$CC $*" >>log
	mkdir -p "$3/meson-logs"
	case " $BROKEN_TEST " in
	*" $3 "*) result='"FAIL", "returncode": 1' ;;
	*) result='"OK", "returncode": 0' ;;
	esac
	echo '{"name": "x", "stdout": "", "command": ["x"], "result": '"$result}" \\
		>"$3/meson-logs/testlog.json"
	;;
esac
'''
NINJA = '#!/bin/sh\ncase " $BROKEN_BUILD " in *" $2 "*) exit 1 ;; esac\n'


@pytest.fixture
def run_tests(run, root, write, tmp_path):
    shutil.copytree(root / 'tools', tmp_path / 'tools')
    write('bin/meson', MESON, 0o755)
    write('bin/ninja', NINJA, 0o755)

    def call(*arguments, **environment):
        return run(tmp_path / 'tools/run-tests', *arguments, cwd=tmp_path,
                   env={'PATH': f'{tmp_path}/bin:{os.environ["PATH"]}', **environment})
    return call


def ways_tested(tmp_path):
    return [w for line in (tmp_path / 'log').read_text().splitlines() for w in line.split()
            if w in WAYS]


def last(result):
    return result.stdout.splitlines()[-1]


def test_every_way_is_tested(run_tests, tmp_path):
    result = run_tests()
    assert (result.returncode, last(result)) == (0, '3 passed, 0 failed')
    assert ways_tested(tmp_path) == WAYS


def test_one_way_can_be_chosen_and_meson_told_more(run_tests, tmp_path):
    result = run_tests('asan', '--', '--suite', 'fuzz')
    assert last(result) == '1 passed, 0 failed'
    assert '--suite fuzz' in (tmp_path / 'log').read_text()
    assert ways_tested(tmp_path) == ['build-asan']


@pytest.mark.parametrize('trouble', ['BROKEN_SETUP', 'BROKEN_BUILD', 'BROKEN_TEST'])
@pytest.mark.parametrize('where', WAYS)
def test_the_others_run_when_one_fails(run_tests, trouble, where):
    result = run_tests(**{trouble: where})
    assert result.returncode == 1
    assert last(result) == '2 passed, 1 failed'


def test_the_log_of_an_earlier_run_does_not_count(run_tests):
    assert last(run_tests()) == '3 passed, 0 failed'
    assert last(run_tests(BROKEN_BUILD='build-tsan')) == '2 passed, 1 failed'


def test_an_unknown_way_is_refused(run_tests):
    assert run_tests('msan').returncode == 64
