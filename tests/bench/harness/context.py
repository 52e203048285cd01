"""What all parts of one run share."""

import contextlib
import mmap
import os
import shutil
import tempfile

MIB = 1 << 20
RECORD = 1024


class Context:
    """Where programs are, where to write, how much to do, and the figures so far."""

    def __init__(self, root, directory, quick, kafka):
        self.root = root
        self.directory = directory
        self.quick = quick
        self.kafka = kafka
        self.round = 0
        # By name: [[round, value], ...] in the order in which they were measured.
        self.figures = {}
        # By name: why a part could not be measured, or what has to be known about it.
        self.notes = {}
        # Everything that programs printed, for --json.
        self.raw = []

    def program(self, path):
        return os.path.join(self.root, "bazel-bin", path)

    def add(self, name, value):
        self.figures.setdefault(name, []).append([self.round, value])

    def keep(self, what, output):
        self.raw.append({"round": self.round, "what": what, "output": output})
        return output

    def amount(self, full, quick):
        return quick if self.quick else full

    def settle(self, mib):
        """Before a burst that writes so much: what was written before is synced, so that it is not
        at this one's cost, and as much memory is touched and free again. A host that takes a
        virtual machine's free pages back (free page reporting) makes each page of a new file cost a
        fault of the host the first time, which can cost ten times what the write does. File
        systems take the smallest free blocks that hold what is written at once, then parts of
        larger ones: so all that is free in smaller blocks than a huge page is touched, and the
        amount in huge pages."""
        os.sync()
        bound = _available_mib() // 2
        mib = min(mib, bound)
        with _touched(min(_scattered_mib(), bound - mib), mmap.MADV_NOHUGEPAGE), \
                _touched(mib, mmap.MADV_HUGEPAGE):
            pass

    @contextlib.contextmanager
    def scratch(self, prefix):
        """A directory of its own on the disk that is measured, gone afterwards."""
        path = tempfile.mkdtemp(prefix=prefix + ".", dir=self.directory)
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def _touched(mib, pages):
    with mmap.mmap(-1, max(mib, 1) * MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        with contextlib.suppress(OSError):  # A kernel without huge pages has small ones alone.
            memory.madvise(pages)
        for at in range(0, mib * MIB, mmap.PAGESIZE):
            memory[at] = 1
        yield


def _scattered_mib():
    """What is free in blocks smaller than a huge page of 2 MiB; 0 where the kernel does not tell.
    At most 8 GiB: it takes a second for each two."""
    pages = 0
    with contextlib.suppress(OSError), open("/proc/buddyinfo", encoding="ascii") as blocks:
        for line in blocks:
            by_order = map(int, line.split()[4:])
            pages += sum(count << order for order, count in enumerate(by_order) if order < 9)
    return min(pages * mmap.PAGESIZE // MIB, 8192)


def _available_mib():
    with open("/proc/meminfo", encoding="ascii") as lines:
        for line in lines:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) // 1024
    return 0
