"""Consumer groups on a real cluster, by the command line: what is committed is what was printed,
members share and take over, coordinators are killed, and zombies commit nothing."""

import collections
import json
import signal
import subprocess
import threading
import unittest

import test_main
from conclave_cluster import CONCLAVE, COMMAND_TIMEOUT_S, Cluster, wait_until


class Consuming:
    """A `conclave consume --group` that runs on, and what it has printed so far."""

    def __init__(self, cluster, topic, group, *arguments):
        self.lines = []
        self.errors = []
        self.process = subprocess.Popen(
            [CONCLAVE, "--bootstrap", cluster.bootstrap, "consume", topic, "--group", group,
             "--from-beginning", *map(str, arguments)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self._threads = [threading.Thread(target=self._read, args=a) for a in (
            (self.process.stdout, self.lines), (self.process.stderr, self.errors))]
        for thread in self._threads:
            thread.start()

    @staticmethod
    def _read(stream, to):
        for line in stream:
            to.append(line.rstrip(b"\n"))
        stream.close()

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self):
        """The exit code, once it has ended and all it printed is here."""
        code = self.process.wait(COMMAND_TIMEOUT_S)
        for thread in self._threads:
            thread.join()
        return code

    def end(self):
        """As Ctrl-C does."""
        self.signal(signal.SIGINT)
        return self.wait()

    def abandon(self):
        if self.process.poll() is None:
            self.process.kill()
        self.wait()

    def said(self):
        return b"\n".join(self.errors).decode()


class GroupTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.cluster.wait_until_active()

    @classmethod
    def tearDownClass(cls):
        cls.cluster.close()

    def run(self, result=None):
        before = len(result.failures) + len(result.errors)
        super().run(result)
        if len(result.failures) + len(result.errors) > before:
            self.show_nodes()

    def show_nodes(self):
        """What a failure may be due to: who runs, and what was last logged."""
        for node in self.cluster.json("cluster", "status", "--dir", self.cluster.dir)["nodes"]:
            with open(node["log_file"], encoding="utf-8", errors="replace") as log:
                last = log.readlines()[-12:]
            print(f"--- {node['name']}: {node['state']}\n{''.join(last)}")

    def setUp(self):
        # A topic and a group of its own for each test.
        self.topic = self._testMethodName.replace("test_", "t_")[:60]
        self.group = "g_" + self.topic

    def create(self, partitions):
        self.cluster.must("topic", "create", self.topic, "--partitions", partitions,
                          "--replication-factor", 3)
        wait_until(lambda: all(p["leader"] > 0 and p["high_watermark"] is not None
                               for p in self.partitions()), "every partition is led")

    def partitions(self):
        return self.cluster.json("topic", "describe", self.topic)["topics"][0]["partitions"]

    def produce(self, lines):
        result = subprocess.run(
            [CONCLAVE, "--bootstrap", self.cluster.bootstrap, "produce", self.topic,
             "--key-separator", ":", "--output", "json"],
            input=b"".join(line + b"\n" for line in lines), stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, timeout=COMMAND_TIMEOUT_S)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(json.loads(result.stdout)["acknowledged"], len(lines))

    def test_what_is_owned_is_described_before_the_first_commit(self):
        self.create(2)
        member = Consuming(self.cluster, self.topic, self.group)
        self.addCleanup(member.abandon)

        def offsets():
            result = self.cluster.cli("group", "describe", self.group, "--output", "json")
            groups = json.loads(result.stdout)["groups"] if result.returncode == 0 else []
            return groups and groups[0]["offsets"]

        wait_until(lambda: offsets() == [
            {"topic": self.topic, "partition": p, "committed": None, "log_end_offset": 0,
             "lag": None} for p in (0, 1)], "both partitions are shown without a commit")
        self.assertEqual(member.end(), 0)

    def keyed(self, start, count):
        """Lines to produce, and the values that they have."""
        values = [b"v%06d \xff\r" % i for i in range(start, start + count)]
        return [b"k%d:" % (i % 97) + v for i, v in enumerate(values)], values

    def consume(self, *arguments):
        return self.cluster.must("consume", self.topic, "--group", self.group, *arguments)

    def start(self, *arguments):
        consuming = Consuming(self.cluster, self.topic, self.group, *arguments)
        self.addCleanup(consuming.abandon)
        return consuming

    def describe(self):
        return self.cluster.json("group", "describe", self.group)["groups"][0]

    def held(self):
        """What each member holds, once the group is there."""
        result = self.cluster.cli("group", "describe", self.group, "--output", "json")
        if result.returncode != 0:
            return []
        members = json.loads(result.stdout)["groups"][0]["members"]
        return [{(p["topic"], p["partition"]) for p in m["partitions"]} for m in members]

    def committed(self):
        return {o["partition"]: o["committed"] for o in self.describe()["offsets"]
                if o["committed"] is not None}

    def ends(self):
        return {p["partition"]: p["log_end_offset"] for p in self.partitions()
                if p["log_end_offset"] > 0}

    def check_all_is_committed(self):
        offsets = self.describe()["offsets"]
        self.assertEqual({o["partition"]: o["committed"] for o in offsets if o["committed"] > 0},
                         self.ends())
        self.assertEqual({o["lag"] for o in offsets}, {0})

    def test_what_was_printed_is_committed_and_not_printed_again(self):
        self.create(4)
        lines, values = self.keyed(0, 3000)
        self.produce(lines)
        out = self.consume("--from-beginning", "--exit-at-end", "--format", "json")
        records = [json.loads(line) for line in out.splitlines()]
        by_partition = collections.defaultdict(list)
        for record in records:
            by_partition[record["partition"]].append(record["offset"])
        for partition, offsets in by_partition.items():
            self.assertEqual(offsets, list(range(len(offsets))), partition)
        self.assertEqual(len(records), 3000)
        group = self.describe()
        self.assertEqual(list(group), ["group", "state", "epoch", "coordinator", "members",
                                       "offsets"])
        self.assertEqual((group["group"], group["state"], group["members"]),
                         (self.group, "empty", []))
        self.assertEqual(set(group["offsets"][0]),
                         {"topic", "partition", "committed", "log_end_offset", "lag"})
        self.check_all_is_committed()
        self.assertEqual(self.consume("--from-beginning", "--exit-at-end"), "")
        # The bytes, by another group.
        self.group += "_2"
        bytes_of = Consuming(self.cluster, self.topic, self.group, "--exit-at-end")
        self.assertEqual(bytes_of.wait(), 0)
        self.assertEqual(collections.Counter(bytes_of.lines), collections.Counter(values))
        self.assertEqual(bytes_of.said(), "")
        listed = {g["group"]: g for g in self.cluster.json("group", "list")["groups"]}
        for name in (self.group, self.group[:-2]):
            self.assertEqual(listed[name], {"group": name, "state": "empty", "members": 0})
        got = self.cluster.json("offsets", "get", self.group)
        self.assertEqual(list(got), ["group", "offsets"])
        self.assertEqual(sum(o["committed"] for o in got["offsets"]), 3000)

    def test_count_and_signals_commit_exactly_what_was_printed(self):
        self.create(1)
        self.produce([b"k:%d" % i for i in range(50)])
        self.assertEqual(self.consume("--from-beginning", "--count", 7).split(),
                         [str(i) for i in range(7)])
        self.assertEqual(self.committed(), {0: 7})
        # Committed offsets win over --from-beginning.
        self.assertEqual(self.consume("--from-beginning", "--count", 3).split(), ["7", "8", "9"])
        for number, last in ((signal.SIGTERM, 50), (signal.SIGINT, 60)):
            consuming = self.start()
            wait_until(lambda: consuming.lines and consuming.lines[-1] == b"%d" % (last - 1),
                       f"all is printed, up to {last}")
            self.assertEqual(len(self.held()), 1)
            consuming.signal(number)
            self.assertEqual(consuming.wait(), 0)
            self.assertEqual(consuming.said(), "")
            self.assertEqual(self.committed(), {0: last})
            self.assertEqual(self.describe()["state"], "empty")
            if last == 50:
                self.produce([b"k:%d" % i for i in range(50, 60)])
        self.assertEqual(consuming.lines, [b"%d" % i for i in range(50, 60)])

    def test_an_unknown_group_is_refused(self):
        self.create(1)
        for command in (["group", "describe"], ["offsets", "get"]):
            result = self.cluster.cli(*command, "no-such-group")
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn("GROUP_ID_NOT_FOUND", result.stderr)
            self.assertEqual(result.stdout, "")
        for wrong in (["--partition", "0"], ["--offset", "0"], ["--timestamp", "0"]):
            result = self.cluster.cli("consume", self.topic, "--group", "g", *wrong)
            self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(
            self.cluster.cli("consume", self.topic, "--session-timeout-ms", 5000).returncode, 2)

    def test_two_members_share_and_the_other_goes_on_when_one_is_killed(self):
        self.create(6)
        lines, values = self.keyed(0, 4000)
        self.produce(lines)
        members = [self.start(), self.start()]
        wait_until(lambda: sorted(map(len, self.held())) == [3, 3], "both hold three partitions")
        held = self.held()
        self.assertEqual(held[0] | held[1], {(self.topic, p) for p in range(6)})
        self.assertEqual(held[0] & held[1], set())
        more, more_values = self.keyed(4000, 4000)
        self.produce(more[:2000])
        wait_until(lambda: all(m.lines for m in members), "both have printed something")
        members[0].signal(signal.SIGKILL)
        self.produce(more[2000:])
        expected = set(values + more_values)
        wait_until(lambda: set(members[0].lines) | set(members[1].lines) >= expected,
                   "every line is printed at least once")
        wait_until(lambda: list(map(len, self.held())) == [6], "the other holds all")
        self.assertEqual(members[1].end(), 0)
        members[0].wait()
        printed = members[0].lines + members[1].lines
        self.assertEqual(set(printed), expected)
        self.check_all_is_committed()

    def test_R34_the_coordinator_is_killed_while_members_consume(self):
        self.create(3)
        lines, values = self.keyed(0, 2000)
        self.produce(lines)
        consuming = self.start()
        wait_until(lambda: len(consuming.lines) >= 2000, "all is printed")
        wait_until(lambda: sum(self.committed().values()) == 2000, "all is committed")
        before = self.describe()
        coordinator = f"broker-{before['coordinator']}"
        self.cluster.kill(coordinator)
        self.addCleanup(self.cluster.cli, "cluster", "restart", coordinator,
                        "--dir", self.cluster.dir)
        # Every read of the offsets is exact, or an error that says to try again.
        while True:
            result = self.cluster.cli("--timeout", 5, "group", "describe", self.group,
                                      "--output", "json")
            if result.returncode == 0:
                group = json.loads(result.stdout)["groups"][0]
                self.assertEqual(
                    {o["partition"]: o["committed"] for o in group["offsets"]},
                    {o["partition"]: o["committed"] for o in before["offsets"]})
                break
            self.assertNotIn("GROUP_ID_NOT_FOUND", result.stderr)
        self.assertNotEqual(group["coordinator"], before["coordinator"])
        more, more_values = self.keyed(2000, 2000)
        self.produce(more)
        wait_until(lambda: len(set(consuming.lines)) >= 4000, "it goes on")
        self.cluster.restart(coordinator)
        self.cluster.wait_until_active()
        self.assertEqual(consuming.end(), 0, consuming.said())
        self.assertEqual(collections.Counter(consuming.lines),
                         collections.Counter(values + more_values))
        self.check_all_is_committed()

    def test_R33_a_zombies_commit_is_refused_and_the_offset_stays(self):
        self.create(1)
        self.produce([b"k:%d" % i for i in range(100)])
        zombie = self.start("--session-timeout-ms", 2000)
        wait_until(lambda: len(zombie.lines) == 100, "the zombie-to-be has printed all")
        zombie.signal(signal.SIGSTOP)
        self.addCleanup(lambda: zombie.process.poll() is None and zombie.signal(signal.SIGCONT))
        self.produce([b"k:%d" % i for i in range(100, 200)])
        heir = self.start("--exit-at-end")
        self.assertEqual(heir.wait(), 0, heir.said())
        self.assertEqual(heir.lines[-1], b"199")
        self.assertEqual(self.committed(), {0: 200})
        zombie.signal(signal.SIGCONT)
        wait_until(lambda: "UNKNOWN_MEMBER_ID" in zombie.said(), "the zombie is refused by name")
        self.assertIn("session timeout of 2000 ms", zombie.said())
        self.assertEqual(self.committed(), {0: 200})
        # It is a member anew, and goes on where the group is.
        self.produce([b"k:200"])
        wait_until(lambda: zombie.lines[-1] == b"200", "it reads on")
        # Until it heard that it was out it may have printed what the heir has printed too.
        self.assertEqual(zombie.lines[:100], [b"%d" % i for i in range(100)])
        self.assertLessEqual(set(zombie.lines), {b"%d" % i for i in range(201)})
        self.assertEqual(zombie.end(), 0)
        self.assertEqual(self.committed(), {0: 201})

    def test_the_offsets_topic_is_shown_as_what_it_says(self):
        self.create(1)
        self.produce([b"k:%d" % i for i in range(10)])
        self.consume("--from-beginning", "--count", 10)
        out = self.cluster.must("consume", "__consumer_offsets", "--from-beginning",
                                "--exit-at-end", "--format", "json")
        records = [json.loads(line) for line in out.splitlines()]
        mine = [r for r in records if r["key"]["group"] == self.group]
        self.assertEqual({r["key"]["kind"] for r in mine},
                         {"group", "member", "target", "holding", "offset"})
        offsets = [r for r in mine if r["key"]["kind"] == "offset"]
        topic_id = self.cluster.json("topic", "describe", self.topic)["topics"][0]["topic_id"]
        self.assertEqual(offsets[-1]["key"], {"kind": "offset", "group": self.group,
                                              "topic_id": topic_id, "partition": 0})
        self.assertEqual((offsets[-1]["value"]["offset"], offsets[-1]["value"]["topic"]),
                         (10, self.topic))


if __name__ == "__main__":
    test_main.main(__name__)
