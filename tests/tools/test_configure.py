"""tools/configure: what it asks of meson, with a stand-in for meson that writes it down."""
import json
import os

import pytest


@pytest.fixture
def configure(run, write, tmp_path):
    write('bin/meson', f'#!/bin/sh\necho "$*" >>{tmp_path}/log\nexit ${{MESON_STATUS:-0}}\n', 0o755)

    def call(*arguments, **environment):
        path = f'{tmp_path}/bin:{os.environ["PATH"]}'
        return run('tools/configure', *arguments, env={'PATH': path, **environment}, cwd=tmp_path)
    return call


def asked(tmp_path):
    log = tmp_path / 'log'
    return log.read_text().splitlines() if log.exists() else []


@pytest.fixture
def directory(write):
    write('b/build.ninja', '')
    write('b/meson-info/intro-buildoptions.json', json.dumps([
        {'name': 'tests', 'value': False}, {'name': 'prefix', 'value': '/usr/local'},
        {'name': 'languages', 'value': ['c', 'cpp']}]))


def test_a_new_directory_is_set_up(configure, tmp_path, root):
    assert configure('b', 'tests=true').returncode == 0
    assert asked(tmp_path) == [f'setup b {root} -Dtests=true']


def test_options_that_fit_are_left_alone(configure, tmp_path, directory):
    assert configure('b').returncode == 0
    assert configure('b', 'tests=false', 'prefix=/usr/local', 'languages=c,cpp').returncode == 0
    assert asked(tmp_path) == []


def test_an_option_that_differs_is_changed(configure, tmp_path, directory):
    assert configure('b', 'prefix=/usr/local', 'tests=true').returncode == 0
    assert asked(tmp_path) == ['configure b -Dprefix=/usr/local -Dtests=true']


def test_half_a_directory_is_set_up_again(configure, tmp_path, directory):
    (tmp_path / 'b/build.ninja').unlink()
    assert configure('b').returncode == 0
    assert asked(tmp_path)[0].startswith('setup b')


def test_a_failure_is_passed_on(configure):
    result = configure('b', MESON_STATUS='3')
    assert result.returncode == 3
    assert 'failed' in result.stderr


def test_a_missing_meson_is_said_in_one_line(configure, tmp_path):
    (tmp_path / 'bin/meson').unlink()
    result = configure('b', PATH=f'{tmp_path}/bin')
    assert (result.returncode, result.stdout) == (69, '')
    assert result.stderr == \
        'tools/configure: meson is missing; tools/setup run installs it\n'


def test_an_option_without_a_value_is_refused(configure):
    assert configure('b', 'tests').returncode == 64
