"""The command line as scripts rely on it: exit codes, JSON, errors that help."""

import json
import os
import socket
import subprocess
import tempfile
import unittest

import test_main
from conclave_cluster import BROKER, CONCLAVE, CONTROLLER, Cluster, run, wait_until


class CliTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()

    @classmethod
    def tearDownClass(cls):
        cls.cluster.close()

    def refused(self, *arguments, code=1):
        result = self.cluster.cli(*arguments)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(result.stdout, "")
        return result.stderr

    def test_topic_describe_has_the_fields_scripts_rely_on(self):
        self.cluster.must("topic", "create", "fields", "--partitions", 2, "--config",
                          "retention.ms=1000")
        topic = self.cluster.json("topic", "describe", "fields")["topics"][0]
        self.assertEqual(set(topic), {"name", "topic_id", "partitions", "config"})
        self.assertEqual(len(topic["topic_id"]), 22)
        self.assertEqual(set(topic["partitions"][0]), {
            "partition", "leader", "leader_epoch", "partition_epoch", "replicas", "isr", "elr",
            "flush_policy", "log_start_offset", "high_watermark", "log_end_offset"})
        self.assertEqual(sorted(topic["partitions"][0]["replicas"]), [1, 2, 3])
        self.assertEqual(sorted(topic["partitions"][0]["isr"]), [1, 2, 3])
        self.assertEqual(topic["config"]["retention.ms"], {"value": "1000", "origin": "topic"})
        self.assertEqual(topic["config"]["min.insync.replicas"],
                         {"value": "2", "origin": "default"})

    def test_quorum_status_has_the_fields_scripts_rely_on(self):
        quorum = self.cluster.quorum()
        self.assertEqual(set(quorum), {"cluster_id", "leader_id", "term", "commit_index", "voters",
                                       "observers"})
        self.assertEqual(quorum["cluster_id"], self.cluster.quorum_id)
        self.assertEqual([v["node_id"] for v in quorum["voters"]], [1, 2, 3])
        self.assertEqual(set(quorum["voters"][0]), {
            "node_id", "directory_id", "endpoint", "last_index", "last_contact_ms"})
        self.assertEqual(quorum["observers"], [])

    def test_broker_list_has_the_fields_scripts_rely_on(self):
        brokers = self.cluster.json("broker", "list")["brokers"]
        self.assertEqual([b["id"] for b in brokers], [1, 2, 3])
        self.assertEqual(set(brokers[0]), {"id", "endpoint", "state", "broker_epoch", "leads",
                                           "replicas"})
        self.assertEqual({b["state"] for b in brokers}, {"active"})

    def test_cluster_status_has_the_fields_scripts_rely_on(self):
        status = self.cluster.json("cluster", "status", "--dir", self.cluster.dir)
        self.assertEqual(status["bootstrap"].count(":"), 3)
        self.assertEqual([n["name"] for n in status["nodes"]],
                         ["controller-1", "controller-2", "controller-3",
                          "broker-1", "broker-2", "broker-3"])
        for node in status["nodes"]:
            self.assertLessEqual({"name", "role", "id", "pid", "endpoint", "data_dir", "log_file"},
                                 set(node))
            os.kill(node["pid"], 0)

    def test_R38_names_and_counts(self):
        for name in ("", ".", "..", "a/b", "a" * 250, "nul\\0", "ü", "__consumer_offsets", "a b"):
            self.assertIn("INVALID_TOPIC", self.refused("topic", "create", "--", name), name)
        for arguments, code in (
                (["--partitions", "0"], "INVALID_PARTITIONS"),
                (["--partitions", "-1"], "INVALID_PARTITIONS"),
                (["--replication-factor", "0"], "INVALID_REPLICATION_FACTOR"),
                (["--replication-factor", "4"], "INVALID_REPLICATION_FACTOR"),
                (["--config", "flush.policy=memory"], "INVALID_CONFIG"),
                (["--config", "retention.mss=5"], "INVALID_CONFIG")):
            self.assertIn(code, self.refused("topic", "create", "counts", *arguments))
        self.refused("topic", "create", "counts", "--partitions", str(2**31), code=2)
        self.cluster.must("topic", "create", "a" * 249)
        self.cluster.must("topic", "create", "a.b")
        self.assertIn("collides", self.refused("topic", "create", "a_b"))
        topics = self.cluster.topics()
        self.assertNotIn("counts", topics)
        self.assertNotIn("a_b", topics)
        self.assertIn("a.b", topics)
        self.assertIn("retention.ms", self.refused("topic", "create", "counts", "--config",
                                                   "retention.mss=5"))

    def test_topics_are_created_once_and_deleted(self):
        self.cluster.must("topic", "create", "once")
        self.assertIn("TOPIC_ALREADY_EXISTS", self.refused("topic", "create", "once"))
        self.assertEqual(self.cluster.must("topic", "delete", "once"), "deleted once\n")
        self.assertIn("UNKNOWN_TOPIC_OR_PARTITION", self.refused("topic", "delete", "once"))
        self.assertIn("UNKNOWN_TOPIC_OR_PARTITION", self.refused("topic", "describe", "once"))
        before = self.cluster.topics()
        self.cluster.must("topic", "create", "checked", "--validate-only")
        self.assertEqual(self.cluster.topics(), before)

    def test_wrong_usage_is_exit_code_2(self):
        for arguments in ([], ["topic"], ["topic", "create"], ["topic", "frobnicate"],
                          ["topic", "list", "--output", "xml"], ["cluster", "kill", "--signal", "HUP"],
                          ["topic", "list", "--timeout", "0"]):
            result = run(CONCLAVE, *arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertNotEqual(result.stderr, "")
        self.assertEqual(run(CONCLAVE, "--help").returncode, 0)

    def test_nobody_there_is_exit_code_3(self):
        result = run(CONCLAVE, "topic", "list", "--bootstrap", "127.0.0.1:1", "--timeout", 1)
        self.assertEqual(result.returncode, 3)
        self.assertIn("127.0.0.1:1", result.stderr)

    def test_without_a_cluster_it_says_how_to_name_one(self):
        env = {k: v for k, v in os.environ.items() if k != "CONCLAVE_BOOTSTRAP"}
        with tempfile.TemporaryDirectory() as empty:
            result = run(CONCLAVE, "topic", "list", cwd=empty, env=env)
        self.assertEqual(result.returncode, 2)
        self.assertIn("--bootstrap", result.stderr)

    def test_any_node_is_a_bootstrap(self):
        for node in self.cluster.json("cluster", "status", "--dir", self.cluster.dir)["nodes"]:
            for command in (["broker", "list"], ["topic", "list"], ["quorum", "status"]):
                result = run(CONCLAVE, *command, "--bootstrap", node["endpoint"])
                self.assertEqual(result.returncode, 0, result.stderr)

    def test_a_closed_pipe_is_no_error_message(self):
        process = subprocess.Popen(
            [CONCLAVE, "topic", "describe", "--bootstrap", self.cluster.bootstrap, "pipe"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.close()
        self.cluster.must("topic", "create", "pipe2")
        errors = process.stderr.read()
        process.wait()
        process.stderr.close()
        self.assertNotIn(b"terminate", errors)

    def test_dump_reads_the_log_and_the_metadata(self):
        self.cluster.must("topic", "create", "dumped")
        self.cluster.wait_until_caught_up()
        data = self.cluster.node("controller-2")["data_dir"]
        lines = [json.loads(line) for line in
                 self.cluster.must("dump", "raft", "--data-dir", data).splitlines()]
        self.assertGreaterEqual(lines[0]["hard_state"]["term"], 2)
        self.assertEqual([e["index"] for e in lines[1:]], list(range(1, len(lines))))
        self.assertEqual(lines[1]["kind"], "voters")
        self.assertEqual(len(lines[1]["voters"]), 3)
        image = json.loads(self.cluster.must("dump", "metadata", "--data-dir", data))["image"]
        self.assertIn("dumped", [t["name"] for t in image["topics"]])
        self.assertEqual(image["cluster_id"], self.cluster.quorum_id)

    def test_storage_info_and_refusals(self):
        data = self.cluster.node("broker-2")["data_dir"]
        info = self.cluster.json("storage", "info", "--data-dir", data)
        self.assertEqual((info["role"], info["node_id"], info["cluster_id"]),
                         ("broker", 2, self.cluster.quorum_id))
        self.assertIn("is not formatted",
                      self.refused("storage", "info", "--data-dir", "/nonexistent"))
        again = self.refused("storage", "format", "--role", "broker", "--node-id", 2, "--data-dir",
                             data, "--cluster-id", self.cluster.quorum_id)
        self.assertIn("formatted already", again)

    def test_cluster_commands_name_what_they_cannot_do(self):
        directory = ["--dir", self.cluster.dir]
        self.assertIn("broker-3", self.refused("cluster", "kill", "broker-9", *directory))
        self.assertIn("is running", self.refused("cluster", "restart", "broker-1", *directory))
        self.assertIn("--all", self.refused("cluster", "kill", *directory))
        for verb in (["status"], ["stop"], ["kill", "--all"]):
            error = self.refused("cluster", *verb, "--dir", "/nonexistent")
            self.assertIn("INVALID_REQUEST", error)
            self.assertIn("cluster start", error)
        self.assertFalse(os.path.exists("/nonexistent"))


    def test_settings_of_a_topic_are_changed_later(self):
        self.cluster.must("topic", "create", "altered", "--config", "segment.ms=1000")
        altered = self.cluster.json("topic", "alter", "altered", "--set", "retention.ms=5000",
                                    "--set", "max.message.bytes=4096", "--unset", "segment.ms")
        self.assertEqual(altered["name"], "altered")
        self.assertEqual(altered["config"]["retention.ms"], {"value": "5000", "origin": "topic"})
        self.assertEqual(altered["config"]["segment.ms"]["origin"], "default")
        described = self.cluster.json("topic", "describe", "altered")["topics"][0]
        self.assertEqual(described["config"], altered["config"])
        self.assertIn("retention.ms", self.refused("topic", "alter", "altered", "--set",
                                                   "retention.mss=1"))
        self.assertIn("UNKNOWN_TOPIC_OR_PARTITION", self.refused("topic", "alter", "nothing",
                                                                 "--unset", "retention.ms"))
        self.refused("topic", "alter", "altered", code=2)

    def test_names_that_collide_in_one_request_are_both_named(self):
        result = self.cluster.cli("topic", "create", "x.y", "x_y")
        self.assertEqual(result.returncode, 1)
        self.assertIn("x_y collides with topic x.y", result.stderr)

    def test_what_is_unknown_is_compared_with_what_there_is(self):
        for arguments, near in ((["topic", "descibe", "t"], "'describe'"),
                                (["brokers", "list"], "'broker'"),
                                (["topic", "create", "t", "--partition", "3"], "'--partitions'"),
                                (["topic"], "create, list")):
            result = run(CONCLAVE, *arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertIn(near, result.stderr)

    def test_version_and_help(self):
        self.assertRegex(run(CONCLAVE, "--version").stdout, r"^conclave \d")
        self.assertEqual(run(CONCLAVE, "help").stdout, run(CONCLAVE, "--help").stdout)
        self.assertIn("--partitions", run(CONCLAVE, "help", "topic", "create").stdout)
        self.assertEqual(run(CONCLAVE, "help", "topci").returncode, 2)

    def test_servers_help_with_their_settings(self):
        for program, setting in ((BROKER, "broker.id"), (CONTROLLER, "node.id")):
            text = run(program, "--help").stdout
            self.assertIn("docs/configuration.md", text)
            self.assertIn(f"--set {setting}=1", text)
            self.assertIn("data.dir: a text", text)
        refused = run(BROKER, "--set", "retention.ms=5")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("topic setting", refused.stderr)
        self.assertIn("topic alter", refused.stderr)

    def test_data_commands_want_a_broker(self):
        controller = self.cluster.node("controller-1")["endpoint"]
        for command in (["produce", "t"], ["consume", "t"]):
            result = run(CONCLAVE, *command, "--bootstrap", controller)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn(controller, result.stderr)
            self.assertIn("nothing here serves /conclave.v1.", result.stderr)
            self.assertIn("name brokers instead", result.stderr)

    def test_dump_knows_an_index_and_names_what_is_not_there(self):
        self.cluster.must("topic", "create", "files")
        self.cluster.must("produce", "files", "--file", __file__)
        leader = self.cluster.json("topic", "describe", "files")["topics"][0]["partitions"][0][
            "leader"]
        partition = os.path.join(self.cluster.node(f"broker-{leader}")["data_dir"], "files-0")
        for suffix in ("index", "timeindex"):
            path = os.path.join(partition, "0" * 20 + "." + suffix)
            self.assertEqual(self.cluster.must("dump", "segment", path),
                             self.cluster.must("dump", "index", path))
        error = self.refused("dump", "segment", os.path.join(partition, "nosuch.log"))
        self.assertIn("INVALID_REQUEST", error)
        self.assertIn("nosuch.log", error)


class LocalClusterTest(unittest.TestCase):
    """What finds the cluster through ./.conclave works on that one or on none."""

    def setUp(self):
        self.here = tempfile.TemporaryDirectory()
        self.addCleanup(self.here.cleanup)

    def make(self, **nodes):
        cluster = Cluster(**nodes)
        self.addCleanup(cluster.close)
        return cluster

    def local(self, cluster, *arguments):
        link = os.path.join(self.here.name, ".conclave")
        if not os.path.islink(link):
            os.symlink(cluster.dir, link)
        env = {k: v for k, v in os.environ.items() if k != "CONCLAVE_BOOTSTRAP"}
        return run(CONCLAVE, *arguments, cwd=self.here.name, env=env)

    def states(self, cluster):
        nodes = cluster.json("cluster", "status", "--dir", cluster.dir)["nodes"]
        return {n["name"]: n["state"] for n in nodes}

    def test_a_cluster_that_is_stopped_is_said_to_be(self):
        cluster = self.make(controllers=1, brokers=2)
        self.assertEqual(self.local(cluster, "topic", "list").returncode, 0)
        cluster.kill("broker-1")
        result = self.local(cluster, "topic", "create", "t")
        self.assertEqual(result.returncode, 0, result.stderr)
        cluster.must("cluster", "stop", "--dir", cluster.dir)
        for command in (["topic", "list"], ["produce", "t"], ["group", "list"]):
            result = self.local(cluster, *command)
            self.assertEqual(result.returncode, 3, result.stderr)
            self.assertIn("is stopped", result.stderr)
            self.assertIn("conclave cluster start", result.stderr)

    def test_another_cluster_in_its_place_is_left_alone(self):
        cluster = self.make(controllers=1, brokers=1)
        other = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(run, CONCLAVE, "cluster", "kill", "--all", "--dir", other)
        started = run(CONCLAVE, "cluster", "start", "--dir", other, "--controllers", 1,
                      "--brokers", 1, "--output", "json")
        self.assertEqual(started.returncode, 0, started.stderr)
        self.assertIn("free ones were chosen", started.stderr)
        description = json.loads(started.stdout)
        path = os.path.join(cluster.dir, "cluster.json")
        with open(path, encoding="utf-8") as file:
            state = json.load(file)
        for node, elsewhere in zip(state["nodes"], description["nodes"]):
            self.assertNotEqual(node["endpoint"], elsewhere["endpoint"])
            node["endpoint"] = elsewhere["endpoint"]
        with open(path, "w", encoding="utf-8") as file:
            json.dump(state, file)
        for command in (["topic", "create", "t"], ["cluster", "start", "--timeout", 1]):
            result = self.local(cluster, *command)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn("INCONSISTENT_CLUSTER_ID", result.stderr)
            self.assertIn(description["cluster_id"], result.stderr)
        topics = run(CONCLAVE, "topic", "list", "--bootstrap", description["bootstrap"],
                     "--output", "json")
        self.assertEqual(json.loads(topics.stdout)["topics"], [])

    def test_start_names_a_port_that_is_taken(self):
        cluster = self.make(controllers=1, brokers=1)
        cluster.must("cluster", "stop", "--dir", cluster.dir)
        endpoint = cluster.node("broker-1")["endpoint"]
        host, port = endpoint.split(":")
        for command in (["start"], ["restart", "broker-1"]):
            with socket.socket() as taken:
                taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                taken.bind((host, int(port)))
                taken.listen()
                result = cluster.cli("cluster", *command, "--dir", cluster.dir)
            self.assertEqual(result.returncode, 1, result.stderr)
            for part in (endpoint, "broker-1", "--dir"):
                self.assertIn(part, result.stderr)
            self.assertEqual(set(self.states(cluster).values()), {"stopped"})
        cluster.must("cluster", "start", "--dir", cluster.dir)

    def test_start_ends_with_the_words_of_a_node_that_ended(self):
        cluster = self.make(controllers=1, brokers=2)
        cluster.must("cluster", "stop", "--dir", cluster.dir)
        with open(os.path.join(cluster.dir, "broker-2", "conclave.toml"), "a",
                  encoding="utf-8") as config:
            config.write("nonsense = 1\n")
        result = cluster.cli("cluster", "start", "--dir", cluster.dir)
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stdout, "")
        self.assertIn("NOT_READY: broker-2 has ended: INVALID_CONFIG", result.stderr)
        self.assertIn("nonsense", result.stderr)
        self.assertEqual(set(self.states(cluster).values()), {"stopped"})

    def test_a_cluster_keeps_the_numbers_it_was_made_with(self):
        cluster = self.make(controllers=1, brokers=1)
        for option, there in (("--brokers", 1), ("--controllers", 1)):
            refused = cluster.cli("cluster", "start", "--dir", cluster.dir, option, 3)
            self.assertEqual(refused.returncode, 1)
            self.assertIn(f"{option} {there}, which stays", refused.stderr)
            cluster.must("cluster", "start", "--dir", cluster.dir, option, there)

    def test_restarted_brokers_are_active(self):
        cluster = self.make(controllers=1, brokers=3)
        cluster.must("cluster", "kill", "broker-1", "broker-3", "--dir", cluster.dir)
        self.assertEqual(self.states(cluster)["broker-2"], "running")
        result = cluster.cli("cluster", "kill", "broker-1", "broker-2", "--dir", cluster.dir)
        self.assertEqual(result.returncode, 1)
        self.assertIn("broker-1 is not running; the others have the signal", result.stderr)
        cluster.must("cluster", "restart", "broker-1", "broker-2", "broker-3", "--dir",
                     cluster.dir)
        states = [b["state"] for b in cluster.json("broker", "list")["brokers"]]
        self.assertEqual(states, 3 * ["active"])

    def test_fewer_replicas_than_usual_are_said(self):
        cluster = self.make(controllers=1, brokers=2)
        result = cluster.cli("topic", "create", "two", "--output", "json")
        self.assertEqual(json.loads(result.stdout)["topics"][0]["replication_factor"], 2)
        self.assertIn("2 replicas", result.stderr)
        self.assertEqual(cluster.cli("topic", "create", "said", "--replicas", 2).stderr, "")


class LifecycleTest(unittest.TestCase):

    def test_stop_and_start_keep_ports_directories_and_data(self):
        with Cluster() as cluster:
            cluster.must("topic", "create", "kept")
            before = cluster.json("cluster", "status", "--dir", cluster.dir)
            stopped = cluster.json("cluster", "stop", "--dir", cluster.dir)
            self.assertEqual({n["state"] for n in stopped["nodes"]}, {"stopped"})
            for node in before["nodes"]:
                with self.assertRaises(ProcessLookupError):
                    os.kill(node["pid"], 0)
            started = cluster.json("cluster", "start", "--dir", cluster.dir)
            keys = ("name", "endpoint", "data_dir")
            self.assertEqual([[n[k] for k in keys] for n in started["nodes"]],
                             [[n[k] for k in keys] for n in before["nodes"]])
            self.assertIn("kept", cluster.topics())

    def test_a_broker_that_is_told_to_stop_gives_up_its_leaderships_first(self):
        with Cluster() as cluster:
            cluster.must("topic", "create", "moves", "--partitions", 6)
            cluster.kill("broker-2", "TERM")
            log = cluster.node("broker-2")["log_file"]
            with open(log, encoding="utf-8") as file:
                self.assertNotIn("has not let this broker go", file.read())
            partitions = cluster.json("topic", "describe", "moves")["topics"][0]["partitions"]
            self.assertNotIn(2, [p["leader"] for p in partitions])
            self.assertTrue(all(p["leader"] >= 0 for p in partitions))

    def test_a_paused_broker_is_fenced_and_comes_back(self):
        with Cluster() as cluster:
            cluster.must("topic", "create", "paused", "--partitions", 6)
            cluster.kill("broker-1", "STOP")
            states = lambda: {b["id"]: b["state"] for b in cluster.json(
                "broker", "list", "--bootstrap",
                cluster.node("broker-2")["endpoint"])["brokers"]}
            wait_until(lambda: states()[1] == "fenced", "the paused broker is fenced")
            cluster.kill("broker-1", "CONT")
            wait_until(lambda: states()[1] == "active", "the broker is back")


if __name__ == "__main__":
    test_main.main(__name__)
