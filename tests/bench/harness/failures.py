"""What leaders' deaths and a standing follower cost, and what idle processes use."""

import json
import os
import signal
import subprocess
import threading
import time

from cluster import started
from context import RECORD
from processes import ProgramFailed, cpu_seconds, end, resident_mib
from waiting import span, wait_until

# Gaps below this are not told apart from the rate's own.
GAP_THRESHOLD_MS = 50


# Acknowledged in every partition before the next kill: no gap reaches from one kill to another.
RECORDS_BETWEEN_KILLS = 50


def _wait_until_all_flows(cluster, topic):
    """All copies are in sync, and every partition takes records again."""
    cluster.wait_until_whole(topic, 3)
    before = {p["partition"]: p["high_watermark"] for p in cluster.partitions(topic)}
    wait_until(lambda: all((p["high_watermark"] or 0) >= before[p["partition"]] +
                           RECORDS_BETWEEN_KILLS for p in cluster.partitions(topic)),
               f"every partition of topic {topic} takes records")


def _unix_ms():
    return time.time() * 1000


def gaps_of_kills(gaps, kills):
    """The greatest gap of each kill of partition 0's leader, in ms, and the gaps that are of none.
    `kills`: when each was killed, and when another was seen to lead, in Unix ms."""
    found = []
    others = list(gaps)
    for killed, led_again in kills:
        # By one machine's clock. What was acknowledged before the kill may arrive after it; only
        # once there is another leader, a gap that begins has another cause.
        of_kill = [g for g in gaps
                   if g["begin_unix_ms"] <= led_again and g["begin_unix_ms"] + g["ms"] >= killed]
        if not any(g["partition"] == 0 for g in of_kill):
            raise ProgramFailed(
                f"partition 0's leader was killed at {killed:.0f} (Unix ms), and 'conclave bench "
                f"failover' tells of no gap of {GAP_THRESHOLD_MS} ms or more there before another "
                f"led at {led_again:.0f}: the gap was not measured; --json tells those that were")
        others = [g for g in others if g not in of_kill]
        found.append(max(g["ms"] for g in of_kill))
    return found, others


def leader_kills(context):
    """Kills the leader of partition 0 with -9, again and again, each time once all is whole."""
    with started(context) as cluster:
        cluster.create("killed")
        command = cluster.bench_command(
            "failover", "--topic", "killed", "--rate", 1200, "--seconds", 3600,
            "--threshold-ms", GAP_THRESHOLD_MS, "--record-size", RECORD, "--announce")
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        try:
            # It says so once records are acknowledged.
            if not process.stderr.readline():
                raise ProgramFailed(f"{' '.join(command)} ended before it had produced anything: "
                                    f"{process.communicate()[0]}")
            kills = []
            for _ in range(context.amount(4, 2)):
                _wait_until_all_flows(cluster, "killed")
                leader = cluster.partitions("killed")[0]["leader"]
                name = f"broker-{leader}"
                pid = cluster.pids()[name]
                killed_at = _unix_ms()
                os.kill(pid, signal.SIGKILL)
                wait_until(lambda dead=leader: cluster.partitions("killed")[0]["leader"]
                           not in (dead, -1), f"another leader than {name}", timeout=30)
                kills.append((killed_at, _unix_ms()))
                cluster.restart(name)
            _wait_until_all_flows(cluster, "killed")
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=600)
        finally:
            end(process)
        if process.returncode != 0:
            raise ProgramFailed(f"{' '.join(command)} exited {process.returncode}: {err.strip()}")
        outcome = context.keep("failover", {
            **json.loads(out), "killed_at_unix_ms": [killed for killed, _ in kills],
            "led_again_at_unix_ms": [led for _, led in kills]})
    of_kills, others = gaps_of_kills(outcome["gaps"], kills)
    for ms in of_kills:
        context.add("conclave.leader_kill_gap_ms", ms)
    # 0: every other pause stayed below the threshold.
    context.add("conclave.other_gap_ms", max((g["ms"] for g in others), default=0))


class Watch:
    """The greatest resident memory of a process while the block lasts."""

    def __init__(self, pid):
        self._pid = pid
        self.before = self.greatest = resident_mib(pid)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def _look(self):
        while not self._over.wait(0.02):
            self.greatest = max(self.greatest, resident_mib(self._pid))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exception):
        self._over.set()
        self._thread.join()


def stopped_follower(context):
    """SIGSTOP of a follower, which its leader cannot see, while a producer does not wait for it."""
    with started(context) as cluster:
        # One partition, so that the standing node leads none; acks of the leader alone, so that
        # nothing but the leader's own bounds holds its memory down.
        cluster.create("stopped", partitions=1, policy="replicated")

        def load(what, mib):
            return cluster.burst(f"stopped follower: {what}", mib, 3, "produce", "--topic",
                                 "stopped", "--acks", 1, "--no-verify")

        load("before", context.amount(512, 128))
        cluster.wait_until_whole("stopped", 3)
        partition = cluster.partitions("stopped")[0]
        follower = next(b for b in partition["replicas"] if b != partition["leader"])
        pids = cluster.pids()
        standing = pids[f"broker-{follower}"]
        with Watch(pids[f"broker-{partition['leader']}"]) as memory:
            os.kill(standing, signal.SIGSTOP)
            try:
                load("standing", context.amount(1024, 256))
            finally:
                os.kill(standing, signal.SIGCONT)
        context.keep("stopped follower: leader's MiB",
                     {"before": memory.before, "greatest": memory.greatest})
        context.add("conclave.stopped_follower_growth_mib", memory.greatest - memory.before)


# Of a core, of all six processes together: below it a cluster has started.
STARTED_PERCENT = 20


def _cpu_percent(pids, seconds):
    """Of one core, while a span goes by, which is what is measured here."""
    pids = list(pids)
    before = sum(cpu_seconds(pid) for pid in pids)
    begun = time.monotonic()
    span(seconds)
    return 100 * (sum(cpu_seconds(pid) for pid in pids) - before) / (time.monotonic() - begun)


def footprint(context):
    window = context.amount(20, 5)
    with started(context) as cluster:
        brokers = cluster.pids("broker")
        everyone = cluster.pids()
        # What starting costs is over.
        wait_until(lambda: _cpu_percent(everyone.values(), 1) < STARTED_PERCENT,
                   f"the cluster uses less than {STARTED_PERCENT} % of a core after its start")
        context.add("conclave.idle_cpu_percent", _cpu_percent(everyone.values(), window))
        context.add("conclave.idle_broker_mib", max(resident_mib(p) for p in brokers.values()))
        # Once a run: their making takes longer than all the rest of this part.
        if context.round == 0:
            partitions = context.amount(2000, 500)
            cluster.create("many", partitions=partitions, policy="replicated")
            context.add(f"conclave.broker_{partitions}_partitions_mib",
                        max(resident_mib(p) for p in brokers.values()))
