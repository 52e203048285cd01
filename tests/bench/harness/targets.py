"""What Conclave is held to. Ratios are taken within each round, so that what a shared machine does
to a round it does to both sides; their median counts."""

import statistics


class Target:
    def __init__(self, group, text, value, sense, bound, unit=""):
        self.group = group
        self.text = text
        # From the figures by name: the measured values, one a round.
        self.value = value
        self.sense = sense
        self.bound = bound
        self.unit = unit

    def judge(self, figures):
        """The line of the report; `met` is None where it was not measured."""
        values = self.value(figures)
        line = {"group": self.group, "target": self.text, "sense": self.sense,
                "bound": self.bound, "unit": self.unit, "values": values}
        if not values:
            return {**line, "median": None, "least": None, "most": None, "met": None}
        median = statistics.median(values)
        met = median >= self.bound if self.sense == ">=" else median <= self.bound
        return {**line, "median": median, "least": min(values), "most": max(values), "met": met}


def _by_round(figures, name):
    return dict(figures.get(name, []))


def value(name, scale=1.0):
    return lambda figures: [v * scale for _, v in figures.get(name, [])]


def worst(name):
    def greatest(figures):
        values = [v for _, v in figures.get(name, [])]
        return [max(values)] if values else []
    return greatest


def ratio(above, below, scale=1.0, best=max):
    """`below`: a name, or names of which the best counts, as of a peer that is run in two ways."""
    names = [below] if isinstance(below, str) else below

    def of(figures):
        top = _by_round(figures, above)
        quotients = []
        for number, measured in top.items():
            others = [_by_round(figures, name).get(number) for name in names]
            others = [o for o in others if o]
            if others:
                quotients.append(measured / best(others) * scale)
        return quotients
    return of


def of_bound(above, bound):
    """`bound`: of the figures of one round by name, what `above` may be there, or None."""
    def of(figures):
        quotients = []
        for number, measured in _by_round(figures, above).items():
            allowed = bound({name: dict(v).get(number) for name, v in figures.items()})
            if allowed:
                quotients.append(measured / allowed)
        return quotients
    return of


def _synced_ack(one):
    echo, sync = one.get("ceiling.echo_p50_us"), one.get("ceiling.fdatasync_p50_us")
    return 3.5 * echo + 1.5 * sync if echo and sync else None


NATS_R3 = ["nats.produce_r3_1_streams_mb", "nats.produce_r3_6_streams_mb"]
NATS_R3_ACKS = ["nats.ack_r3_1_streams_1000_p50_us", "nats.ack_r3_6_streams_1000_p50_us"]
APPEND = "ceiling.append_256k_mb"

TARGETS = [
    Target("Throughput", "1 copy, acks=1, 256 KiB requests: share of APPEND",
           ratio("conclave.produce_rf1_256k_mb", APPEND), ">=", 0.6),
    Target("Throughput", "1 copy, acks=1, 1 MiB requests: share of the 256 KiB APPEND",
           ratio("conclave.produce_rf1_1m_mb", APPEND), ">=", 0.75),
    Target("Throughput", "3 copies, replicated, 256 KiB requests: share of APPEND",
           ratio("conclave.produce_rf3_replicated_256k_mb", APPEND), ">=", 0.25),
    Target("Throughput", "3 copies, replicated, 1 MiB requests: share of the 256 KiB APPEND",
           ratio("conclave.produce_rf3_replicated_1m_mb", APPEND), ">=", 0.3),
    Target("Throughput", "3 copies, replicated: times NATS R3",
           ratio("conclave.produce_rf3_replicated_1m_mb", NATS_R3), ">=", 8),
    Target("Throughput", "3 copies, fsync: share of SYNC3",
           ratio("conclave.produce_rf3_fsync_1m_mb", "ceiling.sync3_mb"), ">=", 0.7),
    Target("Throughput", "3 copies, fsync: times NATS R3, which does not sync",
           ratio("conclave.produce_rf3_fsync_1m_mb", NATS_R3), ">=", 4),
    Target("Throughput", "Consume from the page cache, decoded: share of PULL",
           ratio("conclave.consume_mb", "ceiling.pull_mb"), ">=", 0.5),
    Target("Throughput", "100-byte records, 1 copy: of 2.5 M/s at an APPEND of 800 MB/s",
           ratio("conclave.produce_100b_per_second", APPEND, 800 / 2.5e6), ">=", 1),
    Target("Throughput", "1,000 partitions, replicated, keys over all: share of 6 partitions",
           ratio("conclave.produce_1000_partitions_mb", "conclave.produce_6_partitions_mb"),
           ">=", 0.7),
    Target("Latency (p50)", "Ack, 3 copies, replicated, one in flight: times ECHO",
           ratio("conclave.ack_replicated_one_p50_us", "ceiling.echo_p50_us"), "<=", 3.5),
    Target("Latency (p50)", "Ack, 3 copies, replicated, 1,000/s: times an echo paced alike",
           ratio("conclave.ack_replicated_1000_p50_us", "ceiling.echo_1000_p50_us"), "<=", 3),
    Target("Latency (p50)", "Ack, 3 copies, replicated, 1,000/s: times NATS R3 at that rate",
           ratio("conclave.ack_replicated_1000_p50_us", NATS_R3_ACKS, best=min), "<=", 1),
    Target("Latency (p50)", "Ack, 3 copies, fsync, one in flight: of 3.5 ECHO and 1.5 fdatasync",
           of_bound("conclave.ack_fsync_one_p50_us", _synced_ack), "<=", 1),
    Target("Latency (p50)", "Ack, 3 copies, fsync, 1,000/s over 6 partitions",
           value("conclave.ack_fsync_1000_p50_us", 1e-3), "<=", 6, "ms"),
] + [
    Target("Latency (p50)", f"Produced to consumed, {policy}, {pace}: times the ack of that run",
           ratio(f"conclave.consumed_{policy}_{key}_p50_us",
                 f"conclave.ack_beside_consumer_{policy}_{key}_p50_us"), "<=", 1.3)
    for policy in ("replicated", "fsync") for pace, key in (("one in flight", "one"),
                                                           ("1,000/s", "1000"))
] + [
    Target("Failure", "Leader killed with -9: median gap between acknowledgements",
           value("conclave.leader_kill_gap_ms"), "<=", 500, "ms"),
    Target("Failure", "Leader killed with -9: worst gap", worst("conclave.leader_kill_gap_ms"),
           "<=", 1500, "ms"),
    Target("Failure", "Follower stopped under load: growth of its leader's memory",
           value("conclave.stopped_follower_growth_mib"), "<=", 64, "MiB"),
    Target("Footprint", "Idle, 3 controllers and 3 brokers: of one core",
           value("conclave.idle_cpu_percent"), "<=", 2, "%"),
    Target("Footprint", "Idle broker, resident", value("conclave.idle_broker_mib"), "<=", 64,
           "MiB"),
    Target("Footprint", "Broker with 2,000 partitions, resident",
           value("conclave.broker_2000_partitions_mib"), "<=", 200, "MiB"),
    Target("Kafka", "3 copies, replicated: times Kafka's throughput",
           ratio("conclave.produce_rf3_replicated_1m_mb", "kafka.produce_rf3_mb"), ">=", 3),
    Target("Kafka", "3 copies, fsync: times Kafka's throughput without sync",
           ratio("conclave.produce_rf3_fsync_1m_mb", "kafka.produce_rf3_mb"), ">=", 1.5),
    Target("Kafka", "Ack p50 at 1,000/s, replicated: of Kafka's",
           ratio("conclave.ack_replicated_1000_p50_us", "kafka.ack_1000_p50_us"), "<=", 0.5),
]


def judge(figures):
    return [target.judge(figures) for target in TARGETS]
