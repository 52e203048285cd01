"""produce, consume and bench as scripts rely on them, against fake brokers at real ports."""

import base64
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
import unittest

import test_main
from conclave_cluster import CONCLAVE, COMMAND_TIMEOUT_S, runfile
from terminal import open_terminal

FAKE_BROKERS = runfile("client/testing/fake_brokers")


class DataCliTest(unittest.TestCase):

    def setUp(self):
        self.brokers = subprocess.Popen(
            [FAKE_BROKERS, "t:3", "one:1", "none:2"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.stop)
        self.bootstrap = self.brokers.stdout.readline().strip()
        self.assertEqual(self.bootstrap.count(":"), 3)

    def stop(self):
        self.brokers.stdin.close()
        self.brokers.wait()
        self.brokers.stdout.close()

    def cli(self, *arguments, stdin=b"", code=0, bootstrap=None):
        result = subprocess.run(
            [CONCLAVE, "--bootstrap", bootstrap or self.bootstrap, *map(str, arguments)],
            input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            timeout=COMMAND_TIMEOUT_S)
        self.assertEqual(result.returncode, code, result.stderr.decode(errors="replace"))
        if code == 0:
            self.assertEqual(result.stderr, b"")
        return result

    def produce(self, stdin, *arguments):
        out = json.loads(self.cli("produce", "one", "--output", "json", *arguments,
                                  stdin=stdin).stdout)
        self.assertEqual(set(out), {"acknowledged", "failed", "bytes", "seconds",
                                    "longest_gap_seconds"})
        return out

    def consume(self, *arguments, topic="one"):
        return self.cli("consume", topic, "--from-beginning", "--exit-at-end", *arguments).stdout

    def records(self, topic="one"):
        return [json.loads(line) for line in
                self.consume("--format", "json", topic=topic).decode().splitlines()]

    def test_R39_lines_keep_every_byte(self):
        every = bytes(b for b in range(256) if b != 10)
        out = self.produce(b"first\n\r\n\n" + every + b"\nlast")
        self.assertEqual((out["acknowledged"], out["failed"]), (5, 0))
        self.assertEqual(out["bytes"], 5 + 1 + 255 + 4)
        self.assertEqual(self.consume(), b"first\n\r\n\n" + every + b"\nlast\n")
        self.assertEqual(self.consume("--format", "value"), b"first\r" + every + b"last")
        record = self.records()[3]
        self.assertEqual(base64.b64decode(record["value"]["base64"]), every)
        self.assertIsNone(record["key"])

    def produce_on_a_terminal(self, *arguments):
        """A `produce` whose first line is acknowledged, the terminal that is its stderr, and what
        that has shown."""
        terminal, side = open_terminal()
        producing = subprocess.Popen(
            [CONCLAVE, "--bootstrap", self.bootstrap, "produce", "one", *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=side)
        os.close(side)
        producing.stdin.write(b"a line\n")
        producing.stdin.flush()
        shown = b""
        while b"1 acknowledged, 0.0 MB" not in shown:  # Its output ends with the process.
            shown += os.read(terminal, 1000)
        return producing, terminal, shown

    def test_progress_is_shown_on_a_terminal_and_wiped_away(self):
        producing, terminal, shown = self.produce_on_a_terminal()
        out, _ = producing.communicate(timeout=COMMAND_TIMEOUT_S)
        self.assertEqual(producing.returncode, 0)
        self.assertIn(b"ACKNOWLEDGED", out)
        try:
            while more := os.read(terminal, 1000):
                shown += more
        except OSError:
            pass  # Nobody has the other side open any more.
        os.close(terminal)
        self.assertTrue(shown.endswith(b"\r\x1b[K"), shown)

    def test_json_tells_null_from_empty_and_goes_round(self):
        lines = [
            {"key": None, "value": ""}, {"key": "", "value": None}, {"value": "null"},
            {"key": {"base64": "AP8="}, "value": "ü", "timestamp": 77,
             "headers": [{"key": "h", "value": None}, {"key": "h", "value": "x"}]}]
        self.produce("\n".join(map(json.dumps, lines)).encode(), "--format", "json")
        records = self.records()
        self.assertEqual([list(r) for r in records], 4 * [
            ["topic", "partition", "offset", "timestamp", "key", "value", "headers"]])
        self.assertEqual([r["offset"] for r in records], [0, 1, 2, 3])
        self.assertEqual([(r["key"], r["value"]) for r in records],
                         [(None, ""), ("", None), (None, "null"), ({"base64": "AP8="}, "ü")])
        self.assertEqual(records[3]["timestamp"], 77)
        self.assertEqual(records[3]["headers"], lines[3]["headers"])
        written = self.consume("--format", "json")
        self.produce(written, "--format", "json")
        again = self.records()[4:]
        for record in records + again:
            del record["offset"]
        self.assertEqual(again, records)

    def test_keys_choose_partitions_as_kafka_does(self):
        self.cli("produce", "t", "--key-separator", ":", stdin=b"foobar:1\nfoobar:2\nabc:x:y\n")
        records = self.records("t")
        where = {(r["key"], r["value"]): r["partition"] for r in records}
        # murmur2: 1357151166 mod 3, and 479470107 mod 3.
        self.assertEqual(where, {("foobar", "1"): 0, ("foobar", "2"): 0, ("abc", "x:y"): 0})
        self.cli("produce", "t", "--partition", 2, stdin=b"there\n")
        self.assertEqual(self.consume("--partition", 2, topic="t"), b"there\n")

    def test_bad_lines_fail_by_number_and_the_others_go(self):
        result = self.cli("produce", "one", "--format", "json", "--output", "json",
                          stdin=b'{"value":"a"}\n{"valve":"b"}\n{"value":"c"}\n', code=1)
        out = json.loads(result.stdout)
        self.assertEqual((out["acknowledged"], out["failed"]), (2, 1))
        self.assertIn(b"INVALID_RECORD", result.stderr)
        self.assertIn(b"line 2", result.stderr)
        self.assertIn(b"valve", result.stderr)
        self.assertEqual(self.consume(), b"a\nc\n")

    def test_acks_compression_and_files(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"x" * 1000 + b"\n")
            file.flush()
            for arguments in (["--acks", "1"], ["--no-idempotence"],
                              ["--compression", "lz4"], ["--compression", "zstd"]):
                out = self.produce(b"", "--file", file.name, *arguments)
                self.assertEqual(out["acknowledged"], 1)
            # Nobody says what became of it.
            sent = json.loads(self.cli("produce", "one", "--output", "json", "--acks", "0",
                                       "--file", file.name).stdout)
            self.assertEqual((sent["sent"], sent["acknowledged"]), (1, 0))
            self.assertIn(b"SENT", self.cli("produce", "none", "--acks", "0", "--file",
                                            file.name).stdout)
        self.assertEqual(self.consume(), 5 * (b"x" * 1000 + b"\n"))
        self.assertIn(b"/no/such", self.cli("produce", "one", "--file", "/no/such", code=1).stderr)

    def test_where_consume_begins_and_ends(self):
        lines = "\n".join(json.dumps({"value": str(i), "timestamp": i * 100}) for i in range(20))
        self.produce(lines.encode(), "--format", "json")

        def consume(*arguments):
            return [int(v) for v in
                    self.cli("consume", "one", *arguments).stdout.decode().split()]

        self.assertEqual(consume("--offset", 17, "--exit-at-end"), [17, 18, 19])
        self.assertEqual(consume("--timestamp", 1750, "--exit-at-end"), [18, 19])
        self.assertEqual(consume("--from-beginning", "--count", 3), [0, 1, 2])
        self.assertEqual(consume("--exit-at-end"), [])
        self.assertEqual(self.consume(topic="none"), b"")
        self.assertEqual(consume("--offset", 20, "--exit-at-end"), [])
        for end in ([], ["--exit-at-end"]):
            error = self.cli("consume", "one", "--offset", 21, *end, code=1).stderr
            self.assertIn(b"OFFSET_OUT_OF_RANGE", error)
            self.assertIn(b"0 to 20 (exclusive); use --offset", error)

    def test_json_output_is_records_as_json(self):
        self.produce(b"a\n")
        records = self.consume("--output", "json")
        self.assertEqual(json.loads(records)["value"], "a")
        self.assertEqual(self.consume("--output", "json", "--format", "lines"), b"a\n")

    def test_a_separator_may_be_typed_as_an_escape(self):
        self.cli("produce", "one", "--key-separator", "\\t", stdin=b"k\tv\n")
        self.assertEqual([(r["key"], r["value"]) for r in self.records()], [("k", "v")])
        self.assertIn(b"backslash", self.cli("produce", "one", "--key-separator", "\\n",
                                             code=2).stderr)

    def test_a_record_is_tried_for_as_long_as_was_said(self):
        producing, terminal, shown = self.produce_on_a_terminal("--timeout", "2", "--output", "json")
        self.brokers.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        out, _ = producing.communicate(b"another\n", timeout=COMMAND_TIMEOUT_S)
        took = time.monotonic() - began
        self.brokers.send_signal(signal.SIGCONT)
        try:
            while more := os.read(terminal, 1000):
                shown += more
        except OSError:
            pass  # Nobody has the other side open any more.
        os.close(terminal)
        # It was sent, so somebody was reached.
        self.assertEqual(producing.returncode, 1, shown)
        self.assertIn(b"REQUEST_TIMED_OUT", shown)
        self.assertIn(b"2000 ms (--timeout)", shown)
        self.assertNotIn(b"delivery.timeout", shown)
        # The time of the brokers' answers alone would be five seconds longer.
        self.assertLess(took, 20)
        result = json.loads(out)
        self.assertEqual((result["acknowledged"], result["failed"]), (1, 1))

    def test_the_longest_gap_begins_with_the_command(self):
        out = self.produce(b"a\n")
        self.assertGreater(out["longest_gap_seconds"], 0)
        self.assertLessEqual(out["longest_gap_seconds"], out["seconds"])

    def test_refusals_have_their_exit_codes(self):
        for command in ("produce", "consume"):
            self.assertIn(b"UNKNOWN_TOPIC_OR_PARTITION",
                          self.cli(command, "nothing", code=1).stderr)
        self.assertIn(b"INVALID_PARTITIONS",
                      self.cli("consume", "one", "--partition", 1, code=1).stderr)
        self.assertIn(b"INVALID_PARTITIONS",
                      self.cli("produce", "one", "--partition", 1, stdin=b"x", code=1).stderr)
        for wrong in (["produce"], ["produce", "one", "--acks", "2"],
                      ["produce", "one", "--format", "json", "--key-separator", ":"],
                      ["consume", "one", "--offset", "-1"],
                      ["consume", "one", "--offset", "1", "--from-beginning"],
                      ["bench", "produce"], ["bench"]):
            self.cli(*wrong, code=2)
        with socket.socket() as taken:  # A port where nobody listens.
            taken.bind(("127.0.0.1", 0))
            nobody = "127.0.0.1:%d" % taken.getsockname()[1]
            self.cli("--timeout", 1, "consume", "one", bootstrap=nobody, code=3)
            self.cli("--timeout", 1, "produce", "one", bootstrap=nobody, code=3)

    def test_numbers_and_names_that_are_none_are_wrong_usage(self):
        for option in ("--offset", "--timestamp", "--count"):
            for number in ("9223372036854775808", "-1", "1.5"):
                refused = self.cli("consume", "one", option, number, code=2).stderr
                self.assertIn(number.encode(), refused)
                self.assertLess(len(refused), 200)
        for command in (["latency", "--rate", "nan"], ["failover", "--rate=-nan"],
                        ["groups", "--group", ""], ["produce", "--records", "100000001"]):
            self.cli("bench", *command, "--topic", "t", code=2)
        self.assertIn(b"topic", self.cli("consume", b"t\xff".decode(errors="surrogateescape"),
                                         code=2).stderr)
        for configs, what in ((["a"], b"key=value"), (["k=1", "k=2"], b"more than once")):
            given = [part for config in configs for part in ("--config", config)]
            self.assertIn(what, self.cli("topic", "create", "new", *given, code=2).stderr)

    def test_a_full_disk_is_an_error(self):
        self.produce(b"some line\n")
        for command in (["consume", "one", "--from-beginning", "--exit-at-end"],
                        ["produce", "one"], ["--help"]):
            with open("/dev/full", "w") as full:
                result = subprocess.run([CONCLAVE, "--bootstrap", self.bootstrap, *command],
                                        stdin=subprocess.DEVNULL, stdout=full,
                                        stderr=subprocess.PIPE, timeout=COMMAND_TIMEOUT_S)
            self.assertEqual(result.returncode, 1, command)
            self.assertEqual(result.stderr.count(b"cannot write to stdout: No space left"), 1,
                             result.stderr)

    def test_a_reader_that_goes_away_is_no_error(self):
        self.produce(b"some line\n" * 100000)
        consume = subprocess.Popen(
            [CONCLAVE, "--bootstrap", self.bootstrap, "consume", "one", "--from-beginning"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(consume.stdout.readline(), b"some line\n")
        consume.stdout.close()
        self.assertEqual(consume.wait(COMMAND_TIMEOUT_S), 0)
        self.assertEqual(consume.stderr.read(), b"")
        consume.stderr.close()

    def test_bench_reads_back_what_it_wrote(self):
        common = ["--topic", "t", "--records", 20000, "--record-size", 100, "--seed", 5,
                  "--output", "json"]
        wrote = json.loads(self.cli("bench", "produce", "--compression", "lz4", *common).stdout)
        self.assertEqual(wrote["records"], 20000)
        self.assertEqual(wrote["bytes"], 2000000)
        self.assertTrue(wrote["verified"])
        self.assertEqual(set(wrote["latency_us"]), {"p50", "p90", "p99", "p99.9", "max"})
        read = json.loads(self.cli("bench", "consume", *common).stdout)
        self.assertEqual(read["content_hash"], wrote["content_hash"])
        self.assertEqual(read["records"], 20000)
        # Others between them are told from its own, and do no harm.
        self.cli("produce", "t", stdin=b"another's\n")
        again = json.loads(self.cli("bench", "produce", *common).stdout)
        self.assertEqual(again["content_hash"], wrote["content_hash"])
        self.assertIn(b"CORRUPT_MESSAGE", self.cli(
            "bench", "consume", "--topic", "t", "--records", 50000, "--record-size", 100,
            "--seed", 5, code=1).stderr)
        self.cli("bench", "produce", "--topic", "one", "--records", 10)
        self.cli("bench", "produce", "--topic", "one", "--records", 10)
        self.assertIn(b"unless 'bench produce' ran more than once", self.cli(
            "bench", "consume", "--topic", "one", "--records", 10, code=1).stderr)

    def test_bench_latency_and_failover_read_back_what_they_wrote(self):
        common = ["--topic", "t", "--record-size", 100, "--output", "json"]
        for seed, pace in ((6, ["--in-flight", 1]), (7, ["--rate", 2000])):
            for extra in ([], ["--end-to-end"]):
                seed += 10
                out = json.loads(self.cli("bench", "latency", "--records", 200, "--warm-up", 20,
                                          "--seed", seed, *pace, *extra, *common).stdout)
                self.assertEqual(out["records"], 220)
                self.assertTrue(out["verified"])
                self.assertGreater(out["ack_us"]["p50"], 0)
                self.assertEqual("end_to_end_us" in out, bool(extra))
                self.assertEqual("late_us" in out, "--rate" in pace)
        out = json.loads(self.cli("bench", "failover", "--rate", 500, "--seconds", 1, "--seed", 8,
                                  *common).stdout)
        self.assertEqual(out["acknowledged"], out["sent"])
        self.assertGreater(out["longest_gap"]["ms"], 0)
        self.assertTrue(out["verified"])
        self.cli("bench", "latency", "--topic", "t", "--rate", 5, "--in-flight", 2, code=2)
        self.assertIn(b"no partition", self.cli("bench", "latency", "--topic", "one",
                                                "--partition", 4, code=1).stderr)


if __name__ == "__main__":
    test_main.main(__name__)
