"""What the tests of the real program share."""
import os
import subprocess

import pytest


@pytest.fixture
def baton():
    """Runs the program to its end and gives what came of it."""
    def run(*arguments, env=None, **options):
        given = {k: v for k, v in os.environ.items() if k != 'NO_COLOR'}
        options = {'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE, **options}
        return subprocess.run([os.environ['BATON_BIN'], *arguments], text=True, check=False,
                              timeout=120, env={**given, **(env or {})}, **options)
    return run
