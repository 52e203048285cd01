"""The program that checks histories, as users run it: exit codes and what it prints."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"])
sys.path.insert(0, os.path.join(ROOT, "tests/integration"))
import test_main  # noqa: E402

PROGRAM = os.path.join(ROOT, "tests/history/check_history")


def operation(op, invoke, **fields):
    return dict(op=op, process="p", invoke=invoke, complete=invoke + 5, outcome="ok",
                topic="t", partition=0, **fields)


def send(value, offset, invoke):
    return operation("send", invoke, value=value, acks="all", idempotent=True, offset=offset)


def final(records):
    return operation("final_read", 1000, log_start=0, records=records)


class CheckHistoryTest(unittest.TestCase):

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(self.folder.cleanup)

    def file(self, name, lines):
        path = os.path.join(self.folder.name, name)
        with open(path, "w", encoding="utf-8") as out:
            for line in lines:
                out.write((line if isinstance(line, str) else json.dumps(line)) + "\n")
        return path

    def run_it(self, *arguments):
        done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def test_clean_files_of_one_history(self):
        sends = self.file("sends", [send("a", 0, 10), "", send("b", 1, 20)])
        reads = self.file("reads", [final([[0, "a"], [1, "b"]])])
        self.assertEqual(self.run_it(reads, sends),
                         (0, "3 operations on 1 logs: clean\n", ""))

    def test_each_violation_is_a_line(self):
        path = self.file("history", [send("a", 0, 10), send("b", 1, 20), final([[0, "a"]])])
        code, out, err = self.run_it(path)
        self.assertEqual(code, 1)
        self.assertEqual(out.splitlines(), [
            'rule 4: log t-0: value "b", sent by p at 20..25 and acknowledged, at offset 1, is not '
            'there in the end',
            "3 operations on 1 logs: violations of rule 4 (1)",
        ])
        self.assertEqual(err, "")

    def test_the_flush_policy_excuses(self):
        losses = [dict(op="power_loss", process=node, invoke=100, complete=200, outcome="ok")
                  for node in ("n0", "n1")]
        path = self.file("history", [send("a", 0, 10), *losses, final([])])
        self.assertEqual(self.run_it(path)[0], 1)
        self.assertEqual(self.run_it(path, "--flush-policy", "replicated")[0], 0)
        self.assertEqual(self.run_it(path, "--flush-policy", "replicated",
                                     "--min-insync-replicas", "3")[0], 1)

    def test_a_line_that_cannot_be_read_is_named(self):
        path = self.file("history", [send("a", 0, 10), '{"op":"send"}'])
        self.assertEqual(self.run_it(path), (2, "", f'{path}:2: "process" is missing\n'))

    def test_wrong_usage(self):
        missing = os.path.join(self.folder.name, "missing")
        self.assertEqual(self.run_it(missing), (2, "", f"{missing}: cannot be read\n"))
        self.assertEqual(self.run_it(self.folder.name),
                         (2, "", f"{self.folder.name}: cannot be read\n"))
        for arguments in ([], ["--wrong"], [missing, "--flush-policy", "none"],
                          [missing, "--min-insync-replicas", "0"]):
            self.assertEqual(self.run_it(*arguments)[0], 2)
        self.assertEqual(self.run_it("--help")[0], 0)


if __name__ == "__main__":
    test_main.main(__name__)
