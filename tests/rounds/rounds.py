"""Rounds of kills, pauses and cuts on a cluster of real processes under load, and the history
checker over what its clients were told.

    rounds.py --programs DIR [--rounds N] [--network loopback|namespaces] [--power-loss]
              [--flush fsync|replicated] [--acks N] [--seed S] [--keep]

A round kills nodes with -9 (one, several or all at once), stops one for longer than its session, or
cuts links in one direction or both (namespaces), while records are produced, read and committed;
then heals, and waits for more acknowledgements. With --power-loss every round kills all nodes at
once (under --flush replicated one broker) and rolls their disks back to what was synced. Every other round at least hits the leader of a
partition or the active controller.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from nodes import LIMIT_S, Cluster, Namespaces, Programs, must, wait_until  # noqa: E402

TOPIC = "t"
PARTITIONS = 4

class Rounds:
    def __init__(self, options):
        self.options = options
        self.random = random.Random(options.seed)
        self.programs = Programs(options.programs)
        self.directory = tempfile.mkdtemp(prefix="rounds.", dir=options.dir)
        self.history = os.path.join(self.directory, "history")
        network = {"network_of": Namespaces} if options.network == "namespaces" else {}
        self.cluster = Cluster(os.path.join(self.directory, "nodes"), self.programs, **network)
        self.load = None
        self.counts = {}
        self.powered_down = []
        self.at_leaders = 0
        self.terminated = 0
        self.longest_gap = 0.0

    def run(self):
        self.cluster.start()
        configs = ["--config", f"flush.policy={self.options.flush}"]
        made = self.cluster.cli("topic", "create", TOPIC, "--partitions", PARTITIONS, *configs)
        if self.options.power_loss:
            self.cluster.stop()
            self.cluster.watch_syncs()
            self.cluster.start()
        self.load = subprocess.Popen(
            [self.programs.load, self.cluster.bootstrap, TOPIC, made["topics"][0]["topic_id"],
             str(PARTITIONS), "2", "2", self.history],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            stderr=open(os.path.join(self.directory, "load.log"), "w", encoding="utf-8"))
        self.await_acks(self.options.acks)
        for number in range(1, self.options.rounds + 1):
            self.round(number)
        wait_until(lambda: self.cluster.is_whole(TOPIC), "every replica is in sync", LIMIT_S)
        answer = self.ask("finish")
        if answer != "done":
            raise AssertionError(f"the clients did not come to their end: {answer}")
        self.cluster.stop()
        self.dump()
        self.check()

    # --- Load

    def ask(self, command):
        self.load.stdin.write(command + "\n")
        self.load.stdin.flush()
        answer = self.load.stdout.readline().strip()
        if not answer:
            raise AssertionError("the clients have ended")
        return answer

    def acks(self):
        acknowledged, failed = map(int, self.ask("acks").split())
        if failed > 0:
            raise AssertionError(f"{failed} sends have failed")
        return acknowledged

    def await_acks(self, more):
        goal = self.acks() + more
        wait_until(lambda: self.acks() >= goal, f"{more} more acknowledgements", LIMIT_S)

    # --- Rounds

    def round(self, number):
        before = self.acks()
        if self.options.power_loss and self.options.flush == "fsync":
            what, victims = "power loss of all", list(self.cluster.nodes)
            self.lose_power(victims)
        elif self.options.power_loss:
            # Fewer than the minimum ISR at once, which is what the policy survives.
            what, victims = "power loss of one", [self.random.choice(self.cluster.brokers()).name]
            self.at_leaders += victims[0] in self.cluster.leaders(TOPIC)
            began = time.monotonic_ns()
            self.lose_power(victims)
            wait_until(lambda: self.cluster.is_whole(TOPIC), "every replica in sync", LIMIT_S)
            self.powered_down.append((victims[0], began, time.monotonic_ns()))
        else:
            what, victims = self.choose(must_lead=number % 2 == 0)
            getattr(self, what)(victims)
        healed = time.monotonic()
        self.await_acks(1)
        gap = time.monotonic() - healed
        self.longest_gap = max(self.longest_gap, gap)
        wait_until(lambda: self.acks() >= before + self.options.acks,
                   f"{self.options.acks} acknowledgements in round {number}", LIMIT_S)
        self.cluster.check_up()
        self.counts[what] = self.counts.get(what, 0) + 1
        print(f"round {number}: {what} {' '.join(victims)}; {self.acks() - before} acknowledged, "
              f"{gap:.1f} s from the end of the fault to the first", flush=True)

    def choose(self, must_lead):
        leading = [n for n in [*self.cluster.leaders(TOPIC), self.cluster.active_controller()] if n]
        everybody = list(self.cluster.nodes)
        kinds = ["kill", "kill", "kill_many", "kill_all", "stop"]
        if self.options.network == "namespaces":
            kinds += ["cut", "cut", "cut_one_way", "cut_one_way"]
        what = self.random.choice(self.options.faults.split(",") if self.options.faults else kinds)
        if what == "kill_all":
            victims = everybody
        elif what == "terminate":
            brokers = self.cluster.brokers()
            self.terminated += 1
            victims = [brokers[self.terminated % len(brokers)].name]
        else:
            first = self.random.choice(leading if must_lead and leading else everybody)
            victims = [first]
            if what == "kill_many":
                others = [n for n in everybody if n != first]
                victims += self.random.sample(others, self.random.randint(1, len(others) - 1))
        self.at_leaders += any(v in leading for v in victims)
        return what, victims

    def kill(self, victims):
        nodes = [self.cluster.nodes[name] for name in victims]
        for node in nodes:
            node.signal(signal.SIGKILL)
        for node in nodes:
            node.wait()
        # At once, within their sessions, or after them.
        self.hold(victims, self.random.choice([0, 1, 100, None]))
        self.random.shuffle(nodes)
        for node in nodes:
            node.start()

    def hold(self, victims, acks):
        """Until so many more acknowledgements have come, or the victims' sessions are over; None:
        not before that."""
        goal = float("inf") if acks is None else self.acks() + acks
        wait_until(lambda: self.acks() >= goal or self.cluster.has_noticed(victims),
                   f"{' '.join(victims)} being missed", LIMIT_S)

    kill_many = kill
    kill_all = kill

    def terminate(self, victims):
        """A clean stop of each broker in turn."""
        node = self.cluster.nodes[victims[0]]
        node.signal(signal.SIGTERM)
        code = node.wait()
        if code != 0:
            raise AssertionError(f"{node.name} stopped with exit code {code}")
        node.start()
        wait_until(lambda: self.cluster.is_whole(TOPIC), "every replica in sync", LIMIT_S)

    def stop(self, victims):
        node = self.cluster.nodes[victims[0]]
        node.signal(signal.SIGSTOP)
        # A controller has no session, and nobody misses one that is not active.
        if node not in self.cluster.brokers():
            self.await_acks(20_000)
        self.hold(victims, None)
        node.signal(signal.SIGCONT)

    def cut(self, victims, both=True):
        victim = victims[0]
        others = [n for n in self.cluster.nodes if n != victim]
        for other in self.random.sample(others, self.random.randint(1, len(others))):
            deaf, mute = (victim, other) if both or self.random.random() < 0.5 else (other, victim)
            self.cluster.network.cut(deaf, mute)
            if both:
                self.cluster.network.cut(other, victim)
        self.hold(victims, self.random.choice([1000, 20_000]))
        self.cluster.network.heal()

    def cut_one_way(self, victims):
        self.cut(victims, both=False)

    def lose_power(self, victims):
        nodes = [self.cluster.nodes[name] for name in victims]
        for node in nodes:
            node.signal(signal.SIGKILL)
        lost = {"bytes": 0, "names": 0}
        for node in nodes:
            node.wait()
            for what, count in node.power.lose_power().items():
                lost[what] += count
        print(f"  lost {lost['bytes']} bytes and {lost['names']} names", flush=True)
        self.random.shuffle(nodes)
        for node in nodes:
            node.start()

    # --- The end

    def dump(self):
        """Replicas at rest, for the checker's rule 16."""
        topic = None
        lines = []
        for node in self.cluster.brokers():
            for partition in range(PARTITIONS):
                folder = os.path.join(node.data, f"{TOPIC}-{partition}")
                with open(os.path.join(folder, "partition.json"), encoding="utf-8") as file:
                    topic = json.load(file)["topic_id"]
                rows = []
                for name in sorted(os.listdir(folder)):
                    if name.endswith(".log"):
                        text = must(self.programs.conclave, "dump", "segment",
                                    os.path.join(folder, name))
                        rows += self.rows(text)
                lines.append({"op": "dump", "process": node.name, "invoke": time.monotonic_ns(),
                              "complete": time.monotonic_ns(), "outcome": "ok", "topic": topic,
                              "partition": partition, "log_start": 0,
                              "high_watermark": self.end_of(rows), "rows": [r[:3] for r in rows]})
        for name, began, whole in self.powered_down:
            lines.append({"op": "power_loss", "process": name, "invoke": began, "complete": whole,
                          "outcome": "ok"})
        with open(self.history, "a", encoding="utf-8") as file:
            for line in lines:
                file.write(json.dumps(line) + "\n")

    @staticmethod
    def rows(text):
        batches = [json.loads(line) for line in text.splitlines()]
        return [[b["base_offset"], b["leader_epoch"], int(b["crc"], 16), b["last_offset"]]
                for b in batches]

    @staticmethod
    def end_of(rows):
        return rows[-1][3] + 1 if rows else 0

    def check(self):
        result = subprocess.run([self.programs.check, self.history, "--flush-policy",
                                 self.options.flush], stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, check=False)
        print(result.stdout.strip())
        if result.returncode != 0:
            raise AssertionError("the history is none of a replicated log")
        faults = ", ".join(f"{count} {what}" for what, count in sorted(self.counts.items()))
        print(f"{self.options.rounds} rounds ({faults}), {self.at_leaders} of them at a leader or "
              f"the active controller; at most {self.longest_gap:.1f} s from the end of a fault to "
              f"the next acknowledgement; clean")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", required=True)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--network", choices=["loopback", "namespaces"], default="loopback")
    parser.add_argument("--power-loss", action="store_true")
    parser.add_argument("--flush", choices=["fsync", "replicated"], default="fsync")
    parser.add_argument("--faults", help="kinds to choose from, separated by commas: kill, "
                        "kill_many, kill_all, stop, terminate, cut, cut_one_way")
    parser.add_argument("--acks", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--dir", help="where the cluster's directories are made")
    parser.add_argument("--keep", action="store_true", help="keep them")
    options = parser.parse_args()
    missing = Namespaces.missing() if options.network == "namespaces" else None
    if missing:
        parser.error(f"--network namespaces: {missing}")
    print(f"seed {options.seed}", flush=True)
    rounds = Rounds(options)
    failed = True
    try:
        rounds.run()
        failed = False
    finally:
        if rounds.load and rounds.load.poll() is None:
            rounds.load.kill()
        rounds.cluster.close(keep=failed or options.keep)
        if failed or options.keep:
            print(f"see {rounds.directory}")


if __name__ == "__main__":
    main()
