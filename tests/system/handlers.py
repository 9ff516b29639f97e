"""What tests need to know of the handlers of runners."""
import os
import select

PATIENCE = 120      # seconds that something may take that is certain to happen


class Pipe:
    """Where handlers say that they have come somewhere, a line each."""

    def __init__(self, path):
        self.path = str(path)
        os.mkfifo(self.path)
        # For writing as well, so that it never ends.
        self.file = os.fdopen(os.open(self.path, os.O_RDWR), 'r+b', buffering=0)
        self.rest = b''

    def line(self):
        while b'\n' not in self.rest:
            ready, _, _ = select.select([self.file], [], [], PATIENCE)
            assert ready, f'nobody said anything for {PATIENCE} s'
            self.rest += os.read(self.file.fileno(), 4096)
        line, self.rest = self.rest.split(b'\n', 1)
        return line.decode()


def is_gone(pid):
    """Whether the process has ended: what nobody has waited for yet counts as ended."""
    try:
        with open(f'/proc/{pid}/stat', encoding='ascii') as file:
            return file.read().rsplit(')', 1)[1].split()[0] in 'ZX'
    except (FileNotFoundError, ProcessLookupError):
        return True
