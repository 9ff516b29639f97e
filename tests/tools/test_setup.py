"""tools/setup, on machines made of a few small scripts."""
import shutil

import pytest

TOOLS = ('cat', 'dirname', 'env', 'grep', 'mktemp', 'rm', 'sed', 'sh', 'sort', 'tail', 'tr')


class Machine:
    """A PATH with the usual tools, and stand-ins for those that setup asks and orders."""

    def __init__(self, root, folder, run, write):
        self.folder = folder
        self.run = run
        self.write = write
        for tool in TOOLS:
            (folder / 'bin').mkdir(exist_ok=True)
            (folder / 'bin' / tool).symlink_to(shutil.which(tool))
        shutil.copytree(root / 'tools', folder / 'tree/tools')
        write('tree/tools/packages-run.txt', '# needed\ngcc\nmeson # the build\n\n')
        write('tree/tools/packages-test.txt', 'cmocka\n')
        write('tree/bench/packages.txt', 'uthash\n')
        self.command('id', 'echo 0')
        self.command('apt-get', f'echo "apt-get $*" >>{folder}/log\n'
                                f'echo "frontend $DEBIAN_FRONTEND" >>{folder}/log')
        self.installed('gcc', 'meson', 'cmocka', 'uthash')

    def command(self, name, script):
        self.write(f'bin/{name}', f'#!/bin/sh\n{script}\n', 0o755)

    def without(self, name):
        (self.folder / 'bin' / name).unlink()

    def installed(self, *names):
        """Makes dpkg-query, called with -W -f=FORMAT NAME, know these packages, the rest of one,
        and one that is there for two architectures."""
        words = '|'.join(names) or 'nothing'
        self.command('dpkg-query', 'end=${2##*\\}}\n'
                                   f'case $3 in {words}) printf "installed$end" ;; '
                                   'half) printf "config-files$end" ;; '
                                   'twice) printf "installed${end}installed$end" ;; '
                                   '*) exit 1 ;; esac')

    def setup(self, *arguments, **environment):
        return self.run(self.folder / 'tree/tools/setup', *arguments,
                        env={'PATH': str(self.folder / 'bin'), 'SETUP': '', **environment})

    def orders(self):
        log = self.folder / 'log'
        return [x for x in log.read_text().splitlines() if x != 'frontend noninteractive'] \
            if log.exists() else []


@pytest.fixture
def machine(root, tmp_path, run, write):
    return Machine(root, tmp_path, run, write)


@pytest.mark.parametrize('purpose', ['run', 'test', 'bench'])
def test_nothing_is_done_when_all_is_there(machine, purpose):
    result = machine.setup(purpose)
    assert (result.returncode, result.stdout, result.stderr) == (0, '', '')
    assert machine.orders() == []


@pytest.mark.parametrize('purpose, missing', [
    ('run', 'gcc meson'), ('test', 'cmocka gcc meson'), ('bench', 'gcc meson uthash'),
])
def test_what_is_missing_is_installed_in_one_go(machine, purpose, missing):
    machine.installed()
    result = machine.setup(purpose)
    assert (result.returncode, result.stderr) == (0, '')
    assert result.stdout == f'tools/setup: installing {missing}\n'
    assert machine.orders() == ['apt-get update -q',
                                f'apt-get install -q -y --no-install-recommends {missing}']


def test_what_is_there_is_left_alone(machine):
    machine.installed('gcc')
    assert machine.setup('test').stdout == 'tools/setup: installing cmocka meson\n'


def test_the_rest_of_a_removed_package_is_no_package(machine, write):
    write('tree/tools/packages-run.txt', 'half\n')
    assert machine.setup('run').stdout == 'tools/setup: installing half\n'


def test_a_package_of_two_architectures_is_there(machine, write):
    write('tree/tools/packages-run.txt', 'twice\n')
    assert machine.setup('run').stdout == ''
    assert machine.orders() == []


def test_apt_is_never_interactive(machine, tmp_path):
    machine.installed()
    machine.setup('run')
    assert (tmp_path / 'log').read_text().count('frontend noninteractive') == 2


def test_it_can_be_skipped(machine):
    machine.installed()
    result = machine.setup('test', SETUP='no')
    assert (result.returncode, result.stdout) == (0, '')
    assert machine.orders() == []


def test_sudo_is_used_when_not_root(machine, tmp_path):
    machine.installed()
    machine.command('id', 'echo 1000')
    machine.command('sudo', f'echo sudo >>{tmp_path}/log; "$@"')
    assert machine.setup('run').returncode == 0
    assert machine.orders().count('sudo') == 2


def test_neither_root_nor_sudo_is_said_clearly(machine):
    machine.installed()
    machine.command('id', 'echo 1000')
    result = machine.setup('run')
    assert result.returncode == 77
    assert 'neither root nor is there sudo' in result.stderr
    assert 'gcc meson' in result.stderr
    assert 'SETUP=no' in result.stderr
    assert machine.orders() == []


@pytest.mark.parametrize('tool', ['apt-get', 'dpkg-query'])
def test_another_system_is_said_clearly(machine, tool):
    machine.without(tool)
    result = machine.setup('test')
    assert result.returncode == 69
    assert 'there is no apt-get here' in result.stderr
    assert 'cmocka gcc meson' in result.stderr


@pytest.mark.parametrize('step', ['update', 'install'])
def test_no_network_is_said_clearly_with_what_apt_said(machine, step):
    machine.installed()
    machine.command('apt-get', f'test "$1" != {step} || {{ echo "E: cannot resolve"; exit 100; }}')
    result = machine.setup('run')
    assert result.returncode == 69
    assert 'E: cannot resolve' in result.stderr
    assert f'apt-get {step} failed' in result.stderr


def test_an_unknown_purpose_is_refused(machine):
    result = machine.setup('tset')
    assert result.returncode == 64
    assert "unknown purpose 'tset'" in result.stderr
