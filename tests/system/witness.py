"""A witness that sees only the effects of handlers, and their fences."""
import os
import select

PATIENCE = 120      # seconds that something may take that is certain to happen


class Witness:
    """What handlers leave behind."""

    def __init__(self, folder):
        self.folder = folder
        os.mkfifo(folder / 'pipe')
        (folder / 'notes').touch()
        self.pipe = os.open(folder / 'pipe', os.O_RDWR | os.O_NONBLOCK)

    def await_effects(self, count):
        """Returns when so many more jobs are done."""
        while count > 0:
            ready, _, _ = select.select([self.pipe], [], [], PATIENCE)
            assert ready, f'nothing was done for {PATIENCE} s'
            count -= len(os.read(self.pipe, count))

    def notes(self):
        return [line.split() for line in (self.folder / 'notes').read_text().splitlines()]

    def verdict(self, put):
        """What is wrong, as sentences. put: the numbers of the jobs of each lane, in order."""
        faults, last, fences, done = [], {}, {}, {lane: set() for lane in put}
        for what, lane, seq, fence, *_ in self.notes():
            seq, fence = int(seq), int(fence)
            if what == 'X':
                faults.append(f'job {seq} found another one in lane {lane}')
            elif what == 'E':
                if seq < last.get(lane, 0):
                    faults.append(f'lane {lane}: job {seq} began after job {last[lane]}')
                if fence < fences.get(lane, 0):
                    faults.append(f'lane {lane}: fence {fence} after fence {fences[lane]}')
                last[lane], fences[lane] = max(seq, last.get(lane, 0)), fence
            else:
                done[lane].add(seq)
        for lane, seqs in put.items():
            lost = [s for s in seqs if s not in done[lane]]
            faults += [f'lane {lane}: job {s} was never done' for s in lost]
        return faults
