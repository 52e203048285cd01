"""Real clusters of Conclave's programs, as its integration tests start them."""

import contextlib
import json
import os
import sys

from context import MIB, RECORD
from processes import run_json
from waiting import wait_until

BENCH_TIMEOUT_S = 1800


def load(context):
    """The integration tests' Cluster, on the programs that this run has built."""
    os.environ["TEST_SRCDIR"] = context.root
    os.environ["TEST_WORKSPACE"] = "bazel-bin"
    os.environ["TEST_TMPDIR"] = context.directory
    sys.path.insert(0, os.path.join(context.root, "tests", "integration"))
    import conclave_cluster
    return conclave_cluster


class Running:
    """A cluster, with what the benchmarks ask of it."""

    def __init__(self, context, cluster):
        self.context = context
        self._cluster = cluster
        self.bootstrap = cluster.bootstrap

    def must(self, *arguments):
        return self._cluster.must(*arguments)

    def create(self, topic, partitions=6, copies=3, policy=None):
        """Makes a topic, and waits until every partition is led and all its copies are in sync."""
        extra = ["--config", f"flush.policy={policy}"] if policy else []
        self.must("topic", "create", topic, "--partitions", partitions, "--replicas", copies,
                  *extra)
        self.wait_until_whole(topic, copies, timeout=60 + partitions)

    def partitions(self, topic):
        return self._cluster.json("topic", "describe", topic)["topics"][0]["partitions"]

    def wait_until_whole(self, topic, copies, timeout=60):
        wait_until(lambda: all(p["leader"] > 0 and p["high_watermark"] is not None and
                               len(p["isr"]) == copies for p in self.partitions(topic)),
                   f"every partition of topic {topic} is led, with {copies} replicas in sync",
                   timeout=timeout)

    def burst(self, what, mib, copies, *arguments):
        """A bench that writes so much at once."""
        self.context.settle(mib * copies + 256)
        return self.bench(what, *arguments, "--bytes", mib * MIB, "--record-size", RECORD)

    def bench(self, what, *arguments):
        output = run_json(*self.bench_command(*arguments), timeout=BENCH_TIMEOUT_S)
        return self.context.keep(what, output)

    def bench_command(self, *arguments):
        return [self.context.program("tools/conclave"), "--bootstrap", self.bootstrap,
                "--timeout", "120", "--output", "json", "bench", *map(str, arguments)]

    # --- Nodes

    def nodes(self):
        return json.loads(self.must("cluster", "status", "--dir", self._cluster.dir,
                                    "--output", "json"))["nodes"]

    def pids(self, role=None):
        return {n["name"]: n["pid"] for n in self.nodes() if role in (None, n["role"])}

    def restart(self, name):
        self._cluster.restart(name)


# A cluster takes ports that are free, which another program may have taken by the time it listens.
START_TRIES = 3


def _start(context, controllers, brokers):
    module = load(context)
    for tries_left in reversed(range(START_TRIES)):
        try:
            return module.Cluster(controllers=controllers, brokers=brokers)
        except module.CommandFailed as failure:
            if tries_left == 0 or "port is in use" not in str(failure):
                raise


@contextlib.contextmanager
def started(context, controllers=3, brokers=3):
    with _start(context, controllers, brokers) as cluster:
        cluster.wait_until_active(brokers)
        yield Running(context, cluster)
