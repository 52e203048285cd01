"""The examples of the documentation do what they say."""

import glob
import os
import subprocess
import unittest

import test_main
from conclave_cluster import Cluster, run, runfile


class ExamplesTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(controllers=1, brokers=1)
        cls.broker = cls.cluster.node("broker-1")["endpoint"]

    @classmethod
    def tearDownClass(cls):
        cls.cluster.close()

    def test_the_client_library(self):
        for stored in (0, 1):
            result = run(runfile("client/examples/hello"), self.broker)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(f"stored at offset {stored}\n", result.stdout)
            self.assertIn("0: hello, log\n", result.stdout)

    def test_python_without_a_library(self):
        self.cluster.must("topic", "create", "from-python", "--replicas", 1)
        generated = os.environ["TEST_TMPDIR"]
        protos = runfile("proto")
        subprocess.run(["protoc", f"-I{protos}", f"--python_out={generated}",
                        *glob.glob(f"{protos}/conclave/v1/*.proto")], check=True)
        result = run("/usr/bin/python3", runfile("docs/examples/hello.py"), self.broker,
                     "from-python", env={**os.environ, "PYTHONPATH": generated})
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout, "stored at offset 0\n0: hello, log\n")

    def test_the_documentation_shows_the_code_that_is_tested(self):
        with open(runfile("docs/client.md"), encoding="utf-8") as file:
            text = file.read()
        for path in ("client/examples/hello.cc", "docs/examples/hello.py"):
            with open(runfile(path), encoding="utf-8") as file:
                self.assertIn(file.read(), text, path)


if __name__ == "__main__":
    test_main.main(__name__)
