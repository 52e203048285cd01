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
        fault of the host the first time, which can cost five times what the write does."""
        os.sync()
        with mmap.mmap(-1, mib * MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
            for at in range(0, mib * MIB, mmap.PAGESIZE):
                memory[at] = 1

    @contextlib.contextmanager
    def scratch(self, prefix):
        """A directory of its own on the disk that is measured, gone afterwards."""
        path = tempfile.mkdtemp(prefix=prefix + ".", dir=self.directory)
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)
