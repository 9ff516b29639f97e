"""What the tests of the tools share."""
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def root():
    """The source tree."""
    return ROOT


@pytest.fixture
def build():
    """The build directory that the tests belong to."""
    return pathlib.Path(os.environ.get('BATON_BUILD', ROOT / 'build'))


@pytest.fixture
def run():
    """Runs a command to its end and gives what came of it; `tools/...` is a tool of this tree."""
    def run_command(*command, env=None, **options):
        command = [str(ROOT / c) if str(c).startswith('tools/') and i == 0 else str(c)
                   for i, c in enumerate(command)]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300,
                              env={**os.environ, **(env or {})}, **options)
    return run_command


@pytest.fixture
def write(tmp_path):
    """Writes a file below the test's own folder, and gives its path."""
    def write_file(name, content, mode=0o644):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        path.chmod(mode)
        return path
    return write_file
