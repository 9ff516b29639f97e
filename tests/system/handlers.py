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


def until_log(process, text):
    """Reads the log of a runner up to the line with that in it, and gives that."""
    read = b''
    while True:
        ready, _, _ = select.select([process.stderr], [], [], PATIENCE)
        assert ready, f'its log has said nothing for {PATIENCE} s: {read}'
        byte = os.read(process.stderr.fileno(), 1)
        assert byte, f'its log never says {text!r}: {read}'
        read += byte
        line = read.rsplit(b'\n', 2)[-2:-1]
        if byte == b'\n' and text.encode() in line[0]:
            return line[0].decode()


def is_gone(pid):
    """Whether the process has ended: what nobody has waited for yet counts as ended."""
    try:
        with open(f'/proc/{pid}/stat', encoding='ascii') as file:
            return file.read().rsplit(')', 1)[1].split()[0] in 'ZX'
    except (FileNotFoundError, ProcessLookupError):
        return True
