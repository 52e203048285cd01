"""What a broker does where the system gives it no more: descriptors (R29)."""

import subprocess
import unittest

import test_main
from conclave_cluster import CONCLAVE, Cluster, run, wait_until

OPEN_FILES = 128
PARTITIONS = 200


class LimitsTest(unittest.TestCase):

    def produce(self, cluster, partition, timeout=5):
        return subprocess.run(
            [CONCLAVE, "--bootstrap", cluster.bootstrap, "--timeout", str(timeout), "produce",
             "many", "--partition", str(partition)],
            input=f"to {partition}\n", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            timeout=120)

    def test_r29_descriptors_run_out(self):
        with Cluster(controllers=1, brokers=1) as cluster:
            cluster.must("topic", "create", "before", "--replicas", 1)
            cluster.kill("broker-1", "TERM")
            with subprocess.Popen(["prlimit", f"--nofile={OPEN_FILES}:{OPEN_FILES}",
                                   *cluster.program("broker-1")],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL) as broker:
                try:
                    cluster.wait_until_active(brokers=1)
                    cluster.must("topic", "create", "many", "--partitions", PARTITIONS,
                                 "--replicas", 1)
                    first = self.produce(cluster, 0, timeout=30)
                    self.assertEqual(first.returncode, 0, first.stderr)
                    refused = self.produce(cluster, PARTITIONS - 1)
                    self.assertNotEqual(refused.returncode, 0)
                    self.assertTrue(refused.stderr.strip())
                    # A hundred clients at once: refused or served, and nobody is hurt.
                    clients = [subprocess.Popen(
                        [CONCLAVE, "--bootstrap", cluster.bootstrap, "--timeout", "5", "topic",
                         "list"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                        for _ in range(100)]
                    codes = [client.wait(120) for client in clients]
                    self.assertTrue(set(codes) <= {0, 1, 3}, codes)
                    self.assertIsNone(broker.poll(), "the broker is alive")
                    again = self.produce(cluster, 0, timeout=30)
                    self.assertEqual(again.returncode, 0, again.stderr)
                finally:
                    broker.terminate()
                    self.assertEqual(broker.wait(120), 0)
            # With descriptors enough everything is there, and what could not be made is made.
            cluster.restart("broker-1")
            wait_until(lambda: self.produce(cluster, PARTITIONS - 1).returncode == 0,
                       "the last partition takes a record")
            result = run(CONCLAVE, "--bootstrap", cluster.bootstrap, "consume", "many",
                         "--from-beginning", "--partition", 0, "--count", 2)
            self.assertEqual(result.stdout, "to 0\nto 0\n", result.stderr)


if __name__ == "__main__":
    test_main.main(__name__)
