"""Apache Kafka in KRaft mode, from a directory of its jars: three controllers and three brokers,
measured by its own tool."""

import contextlib
import glob
import os
import re
import shutil
import subprocess
import zipfile

from context import MIB, RECORD
from peers import NotFound
from processes import ProgramFailed, check_alive, free_ports, listens, running
from waiting import wait_until

MAINS = {
    "server": ["kafka.Kafka"],
    "storage": ["kafka.tools.StorageTool"],
    "topics": ["org.apache.kafka.tools.TopicCommand", "kafka.admin.TopicCommand"],
    "offsets": ["org.apache.kafka.tools.GetOffsetShell", "kafka.tools.GetOffsetShell"],
    "produce": ["org.apache.kafka.tools.ProducerPerformance"],
}
CLUSTER_ID = "QmVuY2htYXJrQ2x1c3RlcQ"
# As its own scripts start it.
JVM = ["-Xmx1g", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20",
       "-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"]


def version(directory):
    """By the name of the clients' jar, or None."""
    names = [os.path.basename(p) for p in glob.glob(os.path.join(directory, "kafka-clients-*.jar"))]
    return names[0][len("kafka-clients-"):-len(".jar")] if names else None


class Kafka:
    def __init__(self, context):
        if not context.kafka:
            raise NotFound("no directory of Kafka's jars was given; see --kafka")
        self._java = shutil.which("java")
        if self._java is None:
            raise NotFound("there is no java on the path, which Kafka needs")
        jars = glob.glob(os.path.join(context.kafka, "*.jar"))
        classes = set()
        for jar in jars:
            with zipfile.ZipFile(jar) as archive:
                classes.update(archive.namelist())
        self._mains = {}
        for what, names in MAINS.items():
            found = [n for n in names if n.replace(".", "/") + ".class" in classes]
            if not found:
                raise NotFound(f"none of the {len(jars)} jars in {context.kafka} has "
                               f"{' or '.join(names)}; name the 'libs' of an unpacked release")
            self._mains[what] = found[0]
        self._classpath = os.path.join(context.kafka, "*")

    def command(self, what, *arguments):
        return [self._java, *JVM, "-cp", self._classpath, self._mains[what],
                *map(str, arguments)]

    def run(self, what, *arguments):
        command = self.command(what, *arguments)
        result = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, timeout=1800, check=False)
        if result.returncode != 0:
            raise ProgramFailed(f"Kafka's {self._mains[what]} exited {result.returncode}: "
                                f"{result.stdout[-2000:]}")
        return result.stdout


def _settings(node, role, port, directory, voters):
    listener = "CONTROLLER" if role == "controller" else "PLAINTEXT"
    lines = [
        f"process.roles={role}", f"node.id={node}", f"log.dirs={directory}/{node}",
        f"listeners={listener}://127.0.0.1:{port}", f"controller.quorum.voters={voters}",
        "controller.listener.names=CONTROLLER",
        "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "offsets.topic.replication.factor=3", "min.insync.replicas=2",
    ]
    if role == "broker":
        lines.append(f"advertised.listeners={listener}://127.0.0.1:{port}")
    return "\n".join(lines) + "\n"


@contextlib.contextmanager
def _started(context, kafka):
    ports = free_ports(6)
    voters = ",".join(f"{i + 1}@127.0.0.1:{ports[i]}" for i in range(3))
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(context.scratch("kafka"))
        for i, port in enumerate(ports):
            config = f"{directory}/{i + 1}.properties"
            with open(config, "w", encoding="ascii") as file:
                file.write(_settings(i + 1, "controller" if i < 3 else "broker", port, directory,
                                     voters))
            kafka.run("storage", "format", "-t", CLUSTER_ID, "-c", config)
        servers = []
        for i in range(6):
            log = f"{directory}/{i + 1}.log"
            server = stack.enter_context(running(
                kafka.command("server", f"{directory}/{i + 1}.properties"), log, cwd=directory))
            servers.append((server, log, ports[i]))
        for server, log, port in servers:
            wait_until(lambda it=server, of=log, at=port: check_alive(it, of) or listens(at),
                       f"Kafka listens on port {port}", timeout=120)
        yield ",".join(f"127.0.0.1:{p}" for p in ports[3:])


def _create_topic(kafka, bootstrap, topic):
    def create():
        try:
            return kafka.run("topics", "--bootstrap-server", bootstrap, "--create", "--topic",
                             topic, "--partitions", 6, "--replication-factor", 3)
        except ProgramFailed as failure:
            # Not all brokers have registered yet.
            if "INVALID_REPLICATION_FACTOR" in str(failure) or "larger than" in str(failure):
                return None
            raise
    wait_until(create, f"Kafka makes topic {topic}", timeout=120)


def _produce(context, kafka, bootstrap, topic, what, records, throughput, *properties):
    output = kafka.run("produce", "--topic", topic, "--num-records", records, "--record-size",
                       RECORD, "--throughput", throughput, "--producer-props",
                       f"bootstrap.servers={bootstrap}", "acks=all", *properties)
    context.keep(f"kafka {topic}, {what}", output)
    last = re.findall(r"([\d.,]+) records/sec .*? (\d+) ms 50th", output)
    if not last:
        raise ProgramFailed(f"Kafka's tool printed no result: {output[-500:]}")
    return float(last[-1][0].replace(",", ".")), int(last[-1][1])


def _check_count(kafka, bootstrap, topic, expected):
    # A line a partition, as burst:0:12345: the end of each.
    lines = re.findall(rf"^{topic}:\d+:(\d+)$", kafka.run(
        "offsets", "--bootstrap-server", bootstrap, "--topic", topic), re.MULTILINE)
    stored = sum(map(int, lines))
    if stored != expected:
        raise ProgramFailed(f"Kafka holds {stored} records in topic {topic}, and {expected} were "
                            "sent")


def measure(context):
    kafka = Kafka(context)
    with _started(context, kafka) as bootstrap:
        # First, as for the others: with servers that no burst has left anything to do. Servers'
        # code is compiled while it runs, so a first run of each kind is not their speed.
        _create_topic(kafka, bootstrap, "paced")
        # Long enough that most of it comes after the tool's own warming up, which it counts.
        paced = context.amount(30000, 5000)
        for what, records in (("warm-up", paced // 3), ("measured", paced)):
            _, p50_ms = _produce(context, kafka, bootstrap, "paced", what, records, 1000,
                                 "linger.ms=0")
        # The tool tells whole milliseconds.
        context.add("kafka.ack_1000_p50_us", max(p50_ms, 0.5) * 1000)
        _check_count(kafka, bootstrap, "paced", paced // 3 + paced)
        _create_topic(kafka, bootstrap, "burst")
        burst = context.amount(512, 64) * MIB // RECORD
        for what in ("warm-up", "measured"):
            context.settle(3 * burst * RECORD // MIB + 256)
            per_second, _ = _produce(context, kafka, bootstrap, "burst", what, burst, -1,
                                     "batch.size=524288", "linger.ms=5",
                                     "max.request.size=1048576")
        context.add("kafka.produce_rf3_mb", per_second * RECORD / 1e6)
        _check_count(kafka, bootstrap, "burst", 2 * burst)
