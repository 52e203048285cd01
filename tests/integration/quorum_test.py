"""The controllers' quorum as real processes: kills, wiped disks, foreign directories."""

import itertools
import os
import shutil
import socket
import subprocess
import threading
import unittest

import test_main
from conclave_cluster import (CONCLAVE, Cluster, files_of, run, wait_until)


class QuorumTest(unittest.TestCase):

    def test_controllers_killed_in_turn_lose_no_created_topic(self):
        with Cluster() as cluster:
            acknowledged = []
            unknown = []
            stop = threading.Event()

            def create():
                for number in itertools.count():
                    if stop.is_set():
                        return
                    name = f"topic-{number}"
                    result = cluster.cli("topic", "create", name, "--partitions", 2)
                    (acknowledged if result.returncode == 0 else unknown).append(name)

            creator = threading.Thread(target=create)
            creator.start()
            terms = [cluster.quorum()["term"]]
            leaders_killed = 0
            try:
                for turn in range(20):
                    victim = turn % 3 + 1
                    leaders_killed += cluster.quorum()["leader_id"] == victim
                    cluster.kill(f"controller-{victim}")
                    goal = len(acknowledged) + 2
                    wait_until(lambda: len(acknowledged) >= goal, "topics created after a kill")
                    terms.append(cluster.quorum()["term"])
                    cluster.restart(f"controller-{victim}")
                    cluster.wait_until_caught_up()
            finally:
                stop.set()
                creator.join()
            terms.append(cluster.quorum()["term"])
            self.assertEqual(terms, sorted(terms))
            self.assertGreater(terms[-1], terms[0])
            self.assertGreaterEqual(leaders_killed, 5)
            self.assertGreaterEqual(len(acknowledged), 40)
            # Each creation is retried under one id, so none may fail, or be made twice.
            self.assertEqual(unknown, [])
            topics = cluster.topics()
            self.assertEqual([n for n in acknowledged if n not in topics], [])
            self.assertEqual(len(topics), len(acknowledged))
            print(f"{len(acknowledged)} topics created over {leaders_killed} kills of the active "
                  f"controller, terms {terms[0]} to {terms[-1]}")

    def test_all_killed_at_once_keep_everything_and_terms_rise(self):
        with Cluster() as cluster:
            cluster.must("topic", "create", "kept", "--partitions", 6)
            before = cluster.quorum()
            described = cluster.json("topic", "describe", "kept")
            cluster.kill()
            cluster.restart()
            cluster.wait_until_active()
            after = cluster.quorum()
            self.assertGreater(after["term"], before["term"])
            self.assertEqual(after["cluster_id"], before["cluster_id"])
            topic = cluster.json("topic", "describe", "kept")["topics"][0]
            self.assertEqual(topic["topic_id"], described["topics"][0]["topic_id"])
            wait_until(lambda: all(
                p["leader"] >= 0 for p in
                cluster.json("topic", "describe", "kept")["topics"][0]["partitions"]),
                "every partition has a leader")

    def test_R3_a_wiped_controller_elects_nobody(self):
        with Cluster(brokers=1) as cluster:
            cluster.kill("controller-1")
            cluster.must("topic", "create", "X")  # Committed on controllers 2 and 3 alone.
            wiped = cluster.node("controller-3")
            cluster.kill("controller-3")
            shutil.rmtree(wiped["data_dir"])
            cluster_id = cluster.quorum_id
            run(CONCLAVE, "storage", "format", "--role", "controller", "--node-id", 3,
                "--data-dir", wiped["data_dir"], "--cluster-id", cluster_id)
            cluster.kill("controller-2")
            log = cluster.node("controller-1")["log_file"]
            stood, led = _count(log, ": candidate,"), _count(log, ": leader,")
            cluster.restart("controller-1")
            cluster.restart("controller-3")
            # Controller 1 lacks X. With an empty controller 3 it must elect nobody, however often
            # it tries; what it asks is refused by name.
            wait_until(lambda: _count(wiped["log_file"], "wrong directory") >= 3,
                       "attempts at an election")
            self.assertEqual(_count(log, ": candidate,"), stood)
            self.assertEqual(_count(log, ": leader,"), led)
            cluster.restart("controller-2")
            self.assertIn("X", cluster.topics())

    def test_R20c_two_wiped_controllers_found_no_second_history(self):
        with Cluster(brokers=1) as cluster:
            cluster.must("topic", "create", "X")
            cluster.kill("controller-2")
            cluster.kill("controller-3")
            cluster.kill("controller-1")
            kept = {}
            for number in (2, 3):
                data = cluster.node(f"controller-{number}")["data_dir"]
                kept[data] = data + ".kept"
                os.rename(data, kept[data])
                # An empty disk alone is refused.
                result = run(*cluster.program(f"controller-{number}"))
                self.assertNotEqual(result.returncode, 0)
                self.assertIn("does not exist", result.stderr)
                made = run(CONCLAVE, "storage", "format", "--role", "controller", "--node-id",
                           number, "--data-dir", data, "--cluster-id", cluster.quorum_id)
                self.assertEqual(made.returncode, 0, made.stderr)
                cluster.restart(f"controller-{number}")
            logs = [cluster.node(f"controller-{number}")["log_file"] for number in (1, 2, 3)]
            led = [_count(log, ": leader,") for log in logs]
            cluster.restart("controller-1")
            wait_until(lambda: all(_count(log, "wrong directory") >= 3 for log in logs[1:]),
                       "attempts at an election")
            self.assertEqual([_count(log, ": leader,") for log in logs], led)
            cluster.kill("controller-2")
            cluster.kill("controller-3")
            for data, copy in kept.items():
                shutil.rmtree(data)
                os.rename(copy, data)
            cluster.restart("controller-2")
            cluster.restart("controller-3")
            self.assertIn("X", cluster.topics())

    def test_an_empty_controller_follows_as_an_observer(self):
        with Cluster(brokers=1) as cluster:
            data = os.path.join(cluster.dir, "observer")
            made = run(CONCLAVE, "storage", "format", "--role", "controller", "--node-id", 9,
                       "--data-dir", data, "--cluster-id", cluster.quorum_id)
            self.assertEqual(made.returncode, 0, made.stderr)
            voters = cluster.quorum()["voters"]
            bootstrap = ",".join(f"{v['node_id']}@{v['endpoint']}" for v in voters)
            observer = subprocess.Popen(
                [*cluster.program("controller-1")[:1], "--set", "node.id=9", "--set",
                 f"data.dir={data}", "--set", "listener=127.0.0.1:0", "--set",
                 f"controller.bootstrap={bootstrap}"],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                def observers():
                    return [o for o in cluster.quorum()["observers"] if o["node_id"] == 9
                            and (o["last_index"] or 0) >= cluster.quorum()["commit_index"]]
                wait_until(observers, "the observer has the log")
                self.assertEqual(len(cluster.quorum()["voters"]), 3)
            finally:
                observer.kill()
                observer.wait()


class RefusalTest(unittest.TestCase):

    def test_R41_a_port_in_use_is_named(self):
        with Cluster(controllers=1, brokers=1) as cluster:
            for name in ("controller-1", "broker-1"):
                endpoint = cluster.node(name)["endpoint"]
                cluster.kill(name)
                host, port = endpoint.split(":")
                with socket.socket() as taken:
                    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    # What the killed process had open may take the kernel a moment to let go of.
                    wait_until(lambda: _bound(taken, host, int(port)), "the port is free")
                    taken.listen()
                    result = run(*cluster.program(name), timeout=5)
                self.assertNotEqual(result.returncode, 0)
                self.assertIn(endpoint, result.stderr)
                self.assertIn("in use", result.stderr)
                cluster.restart(name)

    def test_R42_foreign_directories_are_refused_and_left_as_they_are(self):
        with Cluster(controllers=1, brokers=1) as cluster:
            for name, other in (("controller-1", "node.id=7"), ("broker-1", "broker.id=7")):
                data = cluster.node(name)["data_dir"]
                cluster.kill(name)
                before = files_of(data)

                def refused(*arguments):
                    result = run(*cluster.program(name), *arguments)
                    self.assertNotEqual(result.returncode, 0)
                    self.assertIn(data, result.stderr)
                    self.assertEqual(files_of(data), before)
                    return result.stderr

                role = name.split("-")[0]
                text = refused("--set", other)
                self.assertIn(f"{role} 1", text)
                self.assertIn(f"{role} 7", text)

                identity = os.path.join(data, "meta.properties")
                whole = before["meta.properties"]
                # Cut in the middle, and of another version of itself.
                for damaged in (whole[:len(whole) // 2], whole.replace(b"node.id=1", b"node.id=2")):
                    with open(identity, "wb") as file:
                        file.write(damaged)
                    before = files_of(data)
                    self.assertIn("damaged", refused())
                if role == "controller":
                    os.remove(identity)
                    before = files_of(data)
                    self.assertIn("missing beside data", refused())
                with open(identity, "wb") as file:
                    file.write(whole)
                cluster.restart(name)

    def test_R42_a_broker_of_another_cluster_is_refused_with_both_ids(self):
        with Cluster(controllers=1, brokers=1) as cluster:
            data = os.path.join(cluster.dir, "stranger")
            foreign = run(CONCLAVE, "storage", "random-id").stdout.strip()
            made = run(CONCLAVE, "storage", "format", "--role", "broker", "--node-id", 2,
                       "--data-dir", data, "--cluster-id", foreign)
            self.assertEqual(made.returncode, 0, made.stderr)
            before = files_of(data)
            result = run(*cluster.program("broker-1"), "--set", "broker.id=2", "--set",
                         f"data.dir={data}", "--set", "listener=127.0.0.1:0")
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(foreign, result.stderr)
            self.assertIn(cluster.quorum_id, result.stderr)
            self.assertEqual({k: v for k, v in files_of(data).items() if k != ".lock"}, before)

    def test_a_directory_serves_one_process_at_a_time(self):
        with Cluster(controllers=1, brokers=1) as cluster:
            for name in ("controller-1", "broker-1"):
                result = run(*cluster.program(name), "--set", "listener=127.0.0.1:0")
                self.assertNotEqual(result.returncode, 0)
                self.assertIn("another process", result.stderr)

    def test_wrong_configuration_is_refused_by_name(self):
        with Cluster(controllers=1, brokers=1) as cluster:
            result = run(*cluster.program("broker-1"), "--set", "replica.lag.time.ms=5")
            self.assertNotEqual(result.returncode, 0)
            self.assertIn("replica.lag.time.max.ms", result.stderr)


def _bound(listener, host, port):
    try:
        listener.bind((host, port))
    except OSError:
        return False
    return True


def _count(path, text):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read().count(text)


if __name__ == "__main__":
    test_main.main(__name__)
