"""Real processes killed with -9 while records flow: what was acknowledged is there, once, in order."""

import collections
import json
import os
import subprocess
import threading
import time
import unittest

import test_main
from conclave_cluster import CONCLAVE, Cluster, wait_until

PARTITIONS = 6


class Feeder:
    """A producer process, fed with keyed lines at a rate of its own thread."""

    def __init__(self, cluster, topic, count, per_second, keys):
        self.count = count
        self.fed = 0
        self._period = 1.0 / per_second
        self._keys = keys
        self.process = subprocess.Popen(
            [CONCLAVE, "--bootstrap", cluster.bootstrap, "--timeout", "120", "produce", topic,
             "--key-separator", ":", "--output", "json"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self._thread = threading.Thread(target=self._feed)
        self._thread.start()

    def _feed(self):
        begun = time.monotonic()
        for i in range(self.count):
            # The rate is the workload: a record is sent once its time has come.
            due = begun + i * self._period
            if time.monotonic() < due:
                wait_until(lambda due=due: time.monotonic() >= due, "the record is due")
            self.process.stdin.write(f"key-{i % self._keys}:{i}\n")
            self.process.stdin.flush()
            self.fed = i + 1
        self.process.stdin.close()

    def finish(self):
        self._thread.join(timeout=300)
        out = self.process.stdout.read()
        err = self.process.stderr.read()
        self.process.wait(timeout=300)
        return json.loads(out), err


def consume(cluster, topic):
    out = cluster.must("consume", topic, "--from-beginning", "--exit-at-end", "--format", "json")
    return [json.loads(line) for line in out.splitlines()]


class FailoverTest(unittest.TestCase):

    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)
        self.cluster.wait_until_active()
        self.cluster.must("topic", "create", "t", "--partitions", PARTITIONS,
                          "--replication-factor", "3")
        wait_until(lambda: all(p["leader"] > 0 and p["high_watermark"] is not None
                               for p in self.partitions()), "every partition is led")

    def partitions(self):
        return self.cluster.json("topic", "describe", "t")["topics"][0]["partitions"]

    def wait_until_in_sync(self):
        wait_until(lambda: all(len(p["isr"]) == 3 for p in self.partitions()),
                   "every ISR has three members", timeout=30)

    def check_all_once_in_order(self, count, keys):
        by_key = collections.defaultdict(list)
        for record in consume(self.cluster, "t"):
            by_key[record["key"]].append(int(record["value"]))
        values = sorted(v for values in by_key.values() for v in values)
        self.assertEqual(values, list(range(count)))
        self.assertEqual(len(by_key), keys)
        for key, values in by_key.items():
            self.assertEqual(values, sorted(values), f"out of order: {key}")

    def test_a_leader_then_the_active_controller_are_killed_under_load(self):
        count, keys = 20_000, 100
        before = self.partitions()
        term = self.cluster.quorum()["term"]
        feeder = Feeder(self.cluster, "t", count, per_second=2000, keys=keys)
        wait_until(lambda: feeder.fed >= 4000, "sends are in flight")
        leader = f"broker-{before[0]['leader']}"
        self.cluster.kill(leader)
        killed_at = feeder.fed
        wait_until(lambda: feeder.fed >= killed_at + 6000, "three seconds of sends")
        self.cluster.restart(leader)
        active = f"controller-{self.cluster.quorum()['leader_id']}"
        self.cluster.kill(active)
        killed_at = feeder.fed
        wait_until(lambda: feeder.fed >= min(count, killed_at + 3000), "sends go on")
        self.cluster.restart(active)
        result, err = feeder.finish()
        self.assertEqual((result["acknowledged"], result["failed"]), (count, 0), err)
        print(f"longest gap of acknowledgements: {result['longest_gap_seconds']:.3f} s")
        self.check_all_once_in_order(count, keys)
        self.assertGreater(self.cluster.quorum()["term"], term)
        for old, new in zip(before, self.partitions()):
            if old["leader"] == before[0]["leader"]:
                self.assertGreater(new["leader_epoch"], old["leader_epoch"])
        self.wait_until_in_sync()

    def test_all_are_killed_at_once_under_load(self):
        count, keys = 6_000, 60
        before = self.partitions()
        term = self.cluster.quorum()["term"]
        feeder = Feeder(self.cluster, "t", count, per_second=2000, keys=keys)
        wait_until(lambda: feeder.fed >= 3000, "sends are in flight")
        self.cluster.kill()
        self.cluster.restart()
        result, err = feeder.finish()
        self.assertEqual((result["acknowledged"], result["failed"]), (count, 0), err)
        self.check_all_once_in_order(count, keys)
        self.assertGreaterEqual(self.cluster.quorum()["term"], term)
        for old, new in zip(before, self.partitions()):
            self.assertGreater(new["leader_epoch"], old["leader_epoch"])
        self.wait_until_in_sync()

    def test_deleted_records_stay_deleted_when_all_are_killed(self):
        self.cluster.must("topic", "create", "d")
        lines = os.path.join(self.cluster.dir, "lines")
        with open(lines, "w", encoding="utf-8") as file:
            file.write("".join(f"{i}\n" for i in range(10)))
        self.cluster.must("produce", "d", "--file", lines)
        arguments = ("topic", "delete-records", "d", "--partition", "0", "--before")
        self.assertEqual(self.cluster.json(*arguments, "4"), {"partitions": [
            {"topic": "d", "partition": 0, "log_start_offset": 4}]})
        refused = self.cluster.cli(*arguments, "11")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("OFFSET_OUT_OF_RANGE", refused.stderr)
        for wrong in ("-2", "x", "", "9" * 20):
            self.assertEqual(self.cluster.cli(*arguments, wrong).returncode, 2, wrong)
        self.cluster.kill()
        self.cluster.restart()
        self.assertEqual(self.cluster.must("consume", "d", "--from-beginning", "--exit-at-end"),
                         "4\n5\n6\n7\n8\n9\n")
        self.assertRegex(self.cluster.must(*arguments, "end"), r"\nd +0 +10\n")
        self.assertEqual(self.cluster.json(*arguments, "-1")["partitions"][0]["log_start_offset"],
                         10)

    def test_a_broker_is_stopped_cleanly_under_load(self):
        count, keys = 6_000, 60
        feeder = Feeder(self.cluster, "t", count, per_second=2000, keys=keys)
        wait_until(lambda: feeder.fed >= 1000, "sends are in flight")
        self.cluster.kill("broker-2", signal="TERM")
        wait_until(lambda: self.cluster.node("broker-2")["pid"] is None, "it is gone")
        self.cluster.restart("broker-2")
        result, err = feeder.finish()
        self.assertEqual((result["acknowledged"], result["failed"]), (count, 0), err)
        print(f"longest gap of acknowledgements: {result['longest_gap_seconds']:.3f} s")
        self.check_all_once_in_order(count, keys)
        self.wait_until_in_sync()


if __name__ == "__main__":
    test_main.main(__name__)
