"""What a process synced survives a simulated loss of power, and nothing else does."""

import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"])
sys.path[:0] = [os.path.join(ROOT, "tests/integration"), os.path.join(ROOT, "tests/powerloss")]
import test_main  # noqa: E402
from conclave_cluster import runfile  # noqa: E402
from power_loss import PowerLoss  # noqa: E402

LIBRARY = runfile("tests/powerloss/libsync_journal.so")


class PowerLossTest(unittest.TestCase):

    def setUp(self):
        self.root = os.path.join(tempfile.mkdtemp(dir=os.environ["TEST_TMPDIR"]), "data")
        os.mkdir(self.root)
        self.write("before", b"before")
        self.loss = PowerLoss(self.root, LIBRARY)

    def write(self, name, data):
        with open(os.path.join(self.root, name), "wb") as file:
            file.write(data)

    def files(self):
        found = {}
        for directory, names, files in os.walk(self.root):
            for name in names:
                found[os.path.relpath(os.path.join(directory, name), self.root) + "/"] = None
            for name in files:
                path = os.path.join(directory, name)
                with open(path, "rb") as file:
                    found[os.path.relpath(path, self.root)] = file.read()
        return found

    def run_program(self, program):
        """Of statements on files in the directory; then the process is gone."""
        prelude = """
import os
def append(name, data):
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(fd, data)
    os.close(fd)
def sync(name):
    fd = os.open(name, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
def cut(name, size):
    fd = os.open(name, os.O_WRONLY)
    os.ftruncate(fd, size)
    os.close(fd)
"""
        subprocess.run(["/usr/bin/python3", "-c", prelude + program], check=True, cwd=self.root,
                       env=self.loss.environment())
        return self.loss.lose_power()

    def test_what_was_there_stays(self):
        self.assertEqual(self.run_program(""), {"bytes": 0, "names": 0})
        self.assertEqual(self.files(), {"before": b"before"})

    def test_unsynced_bytes_are_gone(self):
        lost = self.run_program("append('before', b' and'); sync('before');"
                                "append('before', b' after')")
        self.assertEqual(self.files(), {"before": b"before and"})
        self.assertEqual(lost["bytes"], len(" after"))

    def test_a_name_needs_its_directory_synced(self):
        lost = self.run_program("append('a', b'a'); sync('a')")
        self.assertEqual(self.files(), {"before": b"before"})
        self.assertEqual(lost["names"], 1)
        self.run_program("append('b', b'b'); sync('.'); append('c', b'c'); sync('c'); sync('.')")
        self.assertEqual(self.files(), {"before": b"before", "b": b"", "c": b"c"})

    def test_a_rename_over_a_file_comes_back_without_a_sync(self):
        program = "append('new', b'new'); sync('new'); os.rename('new', 'before');"
        self.run_program(program)
        self.assertEqual(self.files(), {"before": b"before"})
        self.run_program(program + "sync('.')")
        self.assertEqual(self.files(), {"before": b"new"})

    def test_a_removal_comes_back_without_a_sync(self):
        self.run_program("os.unlink('before')")
        self.assertEqual(self.files(), {"before": b"before"})
        self.run_program("os.unlink('before'); sync('.')")
        self.assertEqual(self.files(), {})

    def test_a_cut_takes_what_is_behind_it(self):
        self.run_program("cut('before', 3); append('before', b'XYZ')")
        self.assertEqual(self.files(), {"before": b"bef"})
        self.run_program("append('before', b'XYZ'); sync('before'); cut('before', 4);"
                         "append('before', b'!'); sync('before')")
        self.assertEqual(self.files(), {"before": b"befX!"})

    def test_directories(self):
        self.run_program("os.mkdir('d'); append('d/f', b'f'); sync('d/f'); sync('d')")
        self.assertEqual(self.files(), {"before": b"before"})
        self.run_program("os.mkdir('d'); append('d/f', b'f'); sync('d/f'); sync('d'); sync('.');"
                         "os.mkdir('e'); os.rename('d', 'e/d')")
        self.assertEqual(self.files(), {"before": b"before", "d/": None, "d/f": b"f"})
        self.run_program("os.mkdir('e'); os.rename('d', 'e/d'); sync('e'); sync('.')")
        self.assertEqual(self.files(),
                         {"before": b"before", "e/": None, "e/d/": None, "e/d/f": b"f"})
        self.run_program("os.unlink('e/d/f'); sync('e/d'); os.rmdir('e/d'); sync('e');"
                         "os.rmdir('e'); sync('.')")
        self.assertEqual(self.files(), {"before": b"before"})

    def test_it_can_be_lost_again(self):
        for i in range(3):
            self.run_program(f"append('before', b'{i}'); sync('before'); append('before', b'x')")
        self.assertEqual(self.files(), {"before": b"before012"})


if __name__ == "__main__":
    test_main.main(__name__)
