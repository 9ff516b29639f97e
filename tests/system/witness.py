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

    def repeated(self):
        """The jobs that were begun more than once, each with the fences under which it was, in the
        order in which they were, and those under which it was done."""
        begun, done = {}, {}
        for what, _, seq, fence, *_ in self.notes():
            if what in 'EL':
                (begun if what == 'E' else done).setdefault(int(seq), []).append(int(fence))
        return {seq: (fences, done.get(seq, [])) for seq, fences in begun.items()
                if len(fences) > 1}

    def stale(self, accepted):
        """Jobs of which something was accepted that is not of their last owner, as sentences.
        accepted: gives the fence of what the store has accepted of a job."""
        faults = []
        for seq, (begun, done) in self.repeated().items():
            fence = accepted(seq)
            if fence != begun[-1] or fence not in done:
                faults.append(f'job {seq}: accepted under fence {fence}, begun under {begun}, '
                              f'done under {done}')
        return faults

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
