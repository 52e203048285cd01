"""How fast Conclave is: three controllers and three brokers, or one of each; all of it verified by
`conclave bench`, which reads back what it wrote."""

from cluster import started
from context import MIB, RECORD

# A producer's own requests are of 1 MiB, of batches of 512 KiB.
REQUESTS = (("256k", ["--batch-bytes", MIB // 4, "--request-bytes", MIB // 4]), ("1m", []))


def produce_and_consume(context):
    burst = context.amount(512, 128)
    with started(context, controllers=1, brokers=1) as cluster:
        for name, size in REQUESTS:
            # What acks=1 waits for, the log without a sync, is APPEND's file without one.
            cluster.create(f"rf1-{name}", copies=1, policy="replicated")
            wrote = cluster.burst(f"produce rf1 {name}", burst, 1, "produce", "--topic",
                                  f"rf1-{name}", "--acks", 1, *size)
            context.add(f"conclave.produce_rf1_{name}_mb", wrote["mb_per_second"])
        # What was just written is in the page cache.
        read = cluster.bench("consume rf1", "consume", "--topic", "rf1-1m", "--bytes", burst * MIB,
                             "--record-size", RECORD, "--no-verify")
        context.add("conclave.consume_mb", read["mb_per_second"])
    with started(context) as cluster:
        for policy in ("replicated", "fsync"):
            for name, size in REQUESTS:
                topic = f"{policy}-{name}"
                cluster.create(topic, policy=policy)
                wrote = cluster.burst(f"produce rf3 {topic}", burst, 3, "produce", "--topic",
                                      topic, "--acks", "all", *size)
                context.add(f"conclave.produce_rf3_{policy}_{name}_mb", wrote["mb_per_second"])


def small_records(context):
    with started(context, controllers=1, brokers=1) as cluster:
        cluster.create("small", copies=1, policy="replicated")
        context.settle(1024)
        wrote = cluster.bench("produce rf1 100 B", "produce", "--topic", "small", "--acks", 1,
                              "--records", context.amount(5_000_000, 1_000_000),
                              "--record-size", 100)
        context.add("conclave.produce_100b_per_second", wrote["records_per_second"])


def latency(context):
    with started(context) as cluster:
        for policy in ("replicated", "fsync"):
            cluster.create(policy, policy=policy)
            for pace, arguments in (
                    ("one", ["--in-flight", 1, "--records", context.amount(5000, 1000)]),
                    ("1000", ["--rate", 1000, "--records", context.amount(10000, 3000)])):
                common = ["latency", "--topic", policy, "--acks", "all", "--record-size", RECORD,
                          "--warm-up", context.amount(1000, 300), *arguments]
                alone = cluster.bench(f"latency {policy} {pace}", *common)
                context.add(f"conclave.ack_{policy}_{pace}_p50_us", alone["ack_us"]["p50"])
                context.add(f"conclave.ack_{policy}_{pace}_p99_us", alone["ack_us"]["p99"])
                both = cluster.bench(f"latency {policy} {pace} consumed", *common, "--end-to-end")
                context.add(f"conclave.consumed_{policy}_{pace}_p50_us",
                            both["end_to_end_us"]["p50"])
                # A consumer takes its share of the machine: so this is held against the
                # acknowledgements of the same run.
                context.add(f"conclave.ack_beside_consumer_{policy}_{pace}_p50_us",
                            both["ack_us"]["p50"])


def many_partitions(context):
    burst = context.amount(512, 64)
    with started(context) as cluster:
        for partitions in (6, 1000):
            topic = f"spread-{partitions}"
            cluster.create(topic, partitions=partitions, policy="replicated")
            wrote = cluster.burst(f"produce {partitions} partitions", burst, 3, "produce",
                                  "--topic", topic, "--acks", "all", "--keys", 100_000)
            context.add(f"conclave.produce_{partitions}_partitions_mb", wrote["mb_per_second"])


def groups(context):
    with started(context) as cluster:
        cluster.create("grouped", partitions=24)
        commits = context.amount(500, 100)
        # A member polls a record for each commit, and may have two partitions' worth alone.
        cluster.bench("records for groups", "produce", "--topic", "grouped", "--records",
                      24 * commits * 4, "--record-size", 100, "--keys", 24 * 50, "--no-verify")
        output = cluster.bench("groups", "groups", "--topic", "grouped", "--group",
                               "bench", "--members", 6, "--commits", commits)
        context.add("conclave.group_join_p50_us", output["join_us"]["p50"])
        context.add("conclave.group_leave_p50_us", output["leave_us"]["p50"])
        context.add("conclave.commits_per_second", output["commits_per_second"])
