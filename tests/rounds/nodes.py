"""Clusters of real processes that a driver kills, stops, cuts off and brings back: on loopback, or
with a network namespace a node."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path[:0] = [os.path.join(TESTS, "powerloss"), os.path.join(TESTS, "integration")]
from power_loss import PowerLoss  # noqa: E402
from waiting import wait_until  # noqa: E402


# Of whatever a cluster has to come to. Generous: a loaded machine is no failure.
LIMIT_S = 120


class Programs:
    def __init__(self, root):
        self.conclave = os.path.join(root, "tools/conclave")
        self.controller = os.path.join(root, "controller/conclave-controller")
        self.broker = os.path.join(root, "broker/conclave-broker")
        self.load = os.path.join(root, "tests/rounds/history_load")
        self.check = os.path.join(root, "tests/history/check_history")
        self.sync_journal = os.path.join(root, "tests/powerloss/libsync_journal.so")


def must(*arguments, **keywords):
    result = subprocess.run([str(a) for a in arguments], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, **keywords)
    if result.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, arguments))} exited {result.returncode}:\n"
                             f"{result.stdout}{result.stderr}")
    return result.stdout


class Loopback:
    """All nodes on 127.0.0.1."""

    def __init__(self):
        self._held = []

    def address(self, name):
        # Kept until the nodes start, so that no port is chosen twice.
        held = socket.socket()
        held.bind(("127.0.0.1", 0))
        self._held.append(held)
        return f"127.0.0.1:{held.getsockname()[1]}"

    def chosen(self):
        for held in self._held:
            held.close()

    def inside(self, name):
        return []

    def close(self):
        pass


class Namespaces:
    """A network namespace a node, joined by a bridge; links are cut with iptables. Needs root."""

    @staticmethod
    def missing():
        """What is not there to make them with, and what to do; None if all is."""
        if os.geteuid() != 0:
            return "network namespaces are made by root alone: call it as root, or use loopback"
        for program, package in (("ip", "iproute2"), ("iptables", "iptables")):
            if shutil.which(program) is None:
                return f"{program} is not installed: apt-get install {package}, or use loopback"
        return None

    def __init__(self, names):
        self.prefix = f"cv{os.getpid() % 10000}"
        self.bridge = self.prefix + "br"
        self.numbers = {name: number for number, name in enumerate(names, 2)}
        must("ip", "link", "add", self.bridge, "type", "bridge")
        must("ip", "addr", "add", "10.77.0.1/24", "dev", self.bridge)
        must("ip", "link", "set", self.bridge, "up")
        for name, number in self.numbers.items():
            space = self._space(name)
            must("ip", "netns", "add", space)
            must("ip", "link", "add", f"{self.prefix}v{number}", "type", "veth", "peer", "name",
                 "eth0", "netns", space)
            must("ip", "link", "set", f"{self.prefix}v{number}", "master", self.bridge, "up")
            must(*self.inside(name), "ip", "addr", "add", f"{self._host(name)}/24", "dev", "eth0")
            must(*self.inside(name), "ip", "link", "set", "eth0", "up")
            must(*self.inside(name), "ip", "link", "set", "lo", "up")

    def _space(self, name):
        return f"{self.prefix}-{name}"

    def _host(self, name):
        return f"10.77.0.{self.numbers[name]}"

    def address(self, name):
        return f"{self._host(name)}:7400"

    def chosen(self):
        pass

    def inside(self, name):
        return ["ip", "netns", "exec", self._space(name)]

    def cut(self, name, other):
        """What comes from `other` does not reach `name`."""
        must(*self.inside(name), "iptables", "-A", "INPUT", "-s", self._host(other), "-j", "DROP")

    def heal(self):
        for name in self.numbers:
            must(*self.inside(name), "iptables", "-F")

    def close(self):
        for name in self.numbers:
            subprocess.run(["ip", "netns", "del", self._space(name)], check=False)
        subprocess.run(["ip", "link", "del", self.bridge], check=False)


class Node:
    def __init__(self, name, folder, program, network):
        self.name = name
        self.folder = folder
        self.data = os.path.join(folder, "data")
        self.config = os.path.join(folder, "conclave.toml")
        self.program = program
        self.network = network
        self.address = network.address(name)
        self.process = None
        self.stopped = False
        self.power = None

    def start(self):
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen(
                [*self.network.inside(self.name), self.program, "--config", self.config],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=self.power.environment() if self.power else None)
        self.stopped = False

    def is_up(self):
        return self.process is not None and self.process.poll() is None

    def signal(self, number):
        self.process.send_signal(number)
        self.stopped = number == signal.SIGSTOP

    def wait(self, timeout=120):
        return self.process.wait(timeout)


class Cluster:
    def __init__(self, directory, programs, network_of=lambda names: Loopback(), brokers=3,
                 controllers=3, settings=""):
        self.directory = directory
        self.programs = programs
        names = [f"controller-{i}" for i in range(1, controllers + 1)]
        names += [f"broker-{i}" for i in range(1, brokers + 1)]
        self.network = network_of(names)
        self.nodes = {}
        for name in names:
            folder = os.path.join(directory, name)
            os.makedirs(folder)
            program = programs.controller if name.startswith("c") else programs.broker
            self.nodes[name] = Node(name, folder, program, self.network)
        self._format(settings)
        self.bootstrap = ",".join(self.nodes[n].address for n in names if n.startswith("b"))

    def _format(self, settings):
        def random_id():
            return must(self.programs.conclave, "storage", "random-id").strip()
        cluster = random_id()
        controllers = [n for n in self.nodes.values() if n.name.startswith("c")]
        voters = ",".join(f"{n.name.split('-')[1]}@{n.address}#{random_id()}" for n in controllers)
        for node in self.nodes.values():
            role, number = node.name.split("-")
            founding = ["--initial-voters", voters] if role == "controller" else []
            must(self.programs.conclave, "storage", "format", "--data-dir", node.data, "--role",
                 role, "--node-id", number, "--cluster-id", cluster, *founding)
            lines = [f'listener = "{node.address}"', f'data.dir = "{node.data}"']
            if role == "controller":
                lines.append(f"node.id = {number}")
            else:
                lines.append(f"broker.id = {number}")
                addresses = ", ".join(f'"{n.address}"' for n in controllers)
                lines.append(f"controllers = [{addresses}]")
                lines.append(settings)
            with open(node.config, "w", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")

    def watch_syncs(self):
        """From now on every node's disk can lose what was not synced. No node runs."""
        for node in self.nodes.values():
            node.power = PowerLoss(node.data, self.programs.sync_journal)

    def start(self):
        self.network.chosen()
        for node in self.nodes.values():
            node.start()
        wait_until(lambda: len(self.active_brokers()) == len(self.brokers()),
                   "every broker is active", LIMIT_S)

    def brokers(self):
        return [n for n in self.nodes.values() if n.name.startswith("b")]

    def cli(self, *arguments, timeout=30):
        """Its JSON; None if it failed."""
        try:
            result = subprocess.run(
                [self.programs.conclave, "--bootstrap", self.bootstrap, "--timeout", "5",
                 *map(str, arguments), "--output", "json"],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                text=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            return None
        return json.loads(result.stdout) if result.returncode == 0 else None

    def active_brokers(self):
        answer = self.cli("broker", "list")
        return [b for b in answer["brokers"] if b["state"] == "active"] if answer else []

    def leaders(self, topic):
        """Names of the brokers that lead a partition."""
        answer = self.cli("topic", "describe", topic)
        partitions = answer["topics"][0]["partitions"] if answer else []
        return sorted({f"broker-{p['leader']}" for p in partitions if p["leader"] >= 0})

    def is_whole(self, topic):
        answer = self.cli("topic", "describe", topic)
        return bool(answer) and all(len(p["isr"]) == len(p["replicas"])
                                    for p in answer["topics"][0]["partitions"])

    def has_noticed(self, victims):
        """Whether the others go on without the victims: their sessions are over. Nobody can tell
        without a quorum of controllers and a broker to ask."""
        controllers = [v for v in victims if v.startswith("c")]
        if len(controllers) > 1 or len(victims) - len(controllers) == len(self.brokers()):
            return True
        controller = self.active_controller()
        answer = self.cli("broker", "list")
        if controller is None or answer is None:
            return False
        active = {f"broker-{b['id']}" for b in answer["brokers"] if b["state"] == "active"}
        return not {*active, controller} & set(victims)

    def active_controller(self):
        answer = self.cli("quorum", "status")
        return f"controller-{answer['leader_id']}" if answer and answer["leader_id"] >= 0 else None

    def check_up(self):
        """No process ended that nobody ended."""
        for node in self.nodes.values():
            if not node.is_up():
                raise AssertionError(f"{node.name} has ended by itself; see {node.folder}/log")

    def stop(self):
        """Cleanly: brokers first. Fails for a node that does not end well."""
        for role in "bc":
            nodes = [n for n in self.nodes.values() if n.name.startswith(role) and n.is_up()]
            for node in nodes:
                node.signal(signal.SIGTERM)
            for node in nodes:
                code = node.wait()
                if code != 0:
                    raise AssertionError(f"{node.name} stopped with exit code {code}")

    def close(self, keep=False):
        for node in self.nodes.values():
            if node.is_up():
                node.process.kill()
                node.process.wait()
        self.network.close()
        if not keep:
            shutil.rmtree(self.directory, ignore_errors=True)
