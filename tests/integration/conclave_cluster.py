"""Real clusters for tests: the programs as users run them, driven through the CLI."""

import json
import os
import shutil
import subprocess
import tempfile

from waiting import wait_until

# Of one command. Generous: a loaded machine is no failure.
COMMAND_TIMEOUT_S = 120


def runfile(path):
    """A program that the test's target names in its data."""
    return os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"], path)


CONCLAVE = runfile("tools/conclave")
CONTROLLER = runfile("controller/conclave-controller")
BROKER = runfile("broker/conclave-broker")


def run(*arguments, timeout=COMMAND_TIMEOUT_S, cwd=None, env=None):
    """Runs a program to its end; never raises for its exit code."""
    return subprocess.run(
        [str(a) for a in arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, timeout=timeout, cwd=cwd, env=env)


class CommandFailed(AssertionError):
    def __init__(self, arguments, result):
        super().__init__(
            f"conclave {' '.join(map(str, arguments))} exited {result.returncode}:\n"
            f"{result.stdout}{result.stderr}")
        self.result = result


class Cluster:
    """A local cluster in a directory of its own; stopped and, unless it is to be looked at,
    removed by close()."""

    def __init__(self, controllers=3, brokers=3):
        self.dir = tempfile.mkdtemp(prefix="cluster.", dir=os.environ.get("TEST_TMPDIR"))
        self.description = self.json("cluster", "start", "--dir", self.dir,
                                     "--controllers", controllers, "--brokers", brokers)
        self.bootstrap = self.description["bootstrap"]
        self.quorum_id = self.description["cluster_id"]

    def close(self):
        run(CONCLAVE, "cluster", "kill", "--all", "--dir", self.dir)
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    # --- Commands

    def cli(self, *arguments):
        """Runs a command against the cluster, whatever its outcome."""
        extra = []
        if arguments[0] not in ("cluster", "storage", "dump") and "--bootstrap" not in arguments:
            extra = ["--bootstrap", self.bootstrap]
        return run(CONCLAVE, *extra, *arguments)

    def must(self, *arguments):
        result = self.cli(*arguments)
        if result.returncode != 0:
            raise CommandFailed(arguments, result)
        return result.stdout

    def json(self, *arguments):
        return json.loads(self.must(*arguments, "--output", "json"))

    # --- Nodes

    def node(self, name):
        nodes = self.json("cluster", "status", "--dir", self.dir)["nodes"]
        return next(n for n in nodes if n["name"] == name)

    def kill(self, name="--all", signal="KILL"):
        self.must("cluster", "kill", name, "--signal", signal, "--dir", self.dir)

    def restart(self, name="--all"):
        self.must("cluster", "restart", name, "--dir", self.dir)

    def program(self, name):
        """The command line that runs a node in the foreground."""
        program = CONTROLLER if name.startswith("controller") else BROKER
        return [program, "--config", os.path.join(self.dir, name, "conclave.toml")]

    # --- What the cluster says

    def quorum(self):
        """The quorum's state, once there is a leader that knows it."""
        def ask():
            result = self.cli("quorum", "status", "--output", "json")
            if result.returncode != 0:
                return None
            status = json.loads(result.stdout)
            return status if status["leader_id"] >= 0 else None
        return wait_until(ask, "a leader of the quorum")

    def topics(self):
        return {t["name"]: t for t in self.json("topic", "list")["topics"]}

    def wait_until_caught_up(self, controllers=3):
        """Every voter's log has reached what was committed when this was called."""
        goal = self.quorum()["commit_index"]
        wait_until(
            lambda: sum((v["last_index"] or 0) >= goal for v in self.quorum()["voters"])
            >= controllers, f"{controllers} controllers at index {goal}")

    def wait_until_active(self, brokers=3):
        wait_until(
            lambda: sum(b["state"] == "active" for b in self.json("broker", "list")["brokers"])
            >= brokers, f"{brokers} active brokers")


def files_of(directory):
    """Every file below a directory, with its bytes."""
    contents = {}
    for path, _, names in os.walk(directory):
        for name in names:
            full = os.path.join(path, name)
            with open(full, "rb") as file:
                contents[os.path.relpath(full, directory)] = file.read()
    return contents
