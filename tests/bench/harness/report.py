"""What was measured, as a page: every target with its figure, met or not, and all figures."""

import statistics

HOW = """\
Every figure is taken several times in one run, in rounds that go through all parts in turn, so that
whatever else the machine does falls on all of them; ratios are taken within a round. Medians count;
the spread is the least and the most of all rounds. Latencies at a rate count from the moment a
record was due to be sent, not from when it was sent: whoever stalls is charged for all that had to
wait; with one in flight they count from sending. What a record takes until it is consumed is held
against the acknowledgements of the same run, which a consumer beside it makes slower
(`ack_beside_consumer`); those without one stand in the list of all figures, too. Before each burst,
of ceilings, Conclave and peers alike, what was written before is synced, and as much memory as it
will take is touched: a host that takes free pages back makes the first write to each cost ten times
the rest.

**How much.** A burst is 512 MiB of values (5 million records of 100 bytes; 1 GiB beside the stopped
follower). Latencies are of 10,000 records at 1,000 a second, or of 5,000 with one in flight, after
1,000 that do not count. A leader is killed four times a round, under 1,200 records a second over six
partitions, each time once all copies are in sync and every partition takes records;
`other_gap_ms` is the longest pause that was no kill's. Idle is 20 seconds of a cluster without
topics; the 2,000 partitions are empty. Groups: six members join one after the other on 24
partitions (`fsync`), commit 500 times each, and leave. A quick run does a fraction of all that.

**Ceilings** are those of this machine, by `tests/bench/ceilings`, a client and a server over gRPC's
callback API with raw buffers. ECHO: a unary call of 100 bytes that comes back, one at a time.
APPEND: unary calls of 256 KiB, 8 at a time, each checksummed (CRC-32C), written to a file without a
sync, and acknowledged; every share of APPEND is of this one, whatever the size of the requests that
are held against it. The same with 1 MiB, which is slower, stands in the list as `append_1m_mb`.
PULL: a stream of 256 KiB slices of a mapped file, received and dropped. SYNC3: three writers at
once, each with a file of its own that it syncs every 16 MiB; a third of their sum.

**Conclave** runs as three controllers and three brokers (one of each for a single copy), all on
this machine, as separate processes with their defaults. Records are of 1 KiB, not compressed, in 6
partitions, from one producer with its defaults (requests of 1 MiB, of batches of 512 KiB), unless a
line says otherwise: 256 KiB requests are of one batch each. `conclave bench` reads everything back
and compares count, offsets, order and content before it tells a figure (but for consuming, where
numbers are checked alone, for groups, whose records are counted, and for the burst at a stopped
follower). "Replicated" acknowledges what all in-sync replicas have in their logs, "fsync" what they
have synced.

**What an acknowledgement means elsewhere.** NATS JetStream R1 and R3, file storage: written by one
server, or a majority of three, without a sync (it syncs every two minutes); one producer with 4,000
messages under way, over one stream and over six, of which the better counts. Redis Streams: one
server without replicas, XADD pipelined with 4,000 under way; `everysec` answers before a sync,
`always` after it. Load for NATS and Redis comes from C++ programs that speak their protocols over
bare sockets (`tests/bench/peers`).

**Kafka**: three brokers and three controllers in KRaft mode, each a Java process of its own with
the heap (1 GiB) and the collector that Kafka's scripts give it and its default settings;
`acks=all`, `min.insync.replicas=2`, which does not sync. Six partitions of three copies, no
compression. Load is its own `ProducerPerformance`: for throughput with `batch.size` 512 KiB,
`max.request.size` 1 MiB and `linger.ms` 5, the second of two bursts; for latency with `linger.ms`
0, 30,000 records at 1,000 a second after 10,000 that do not count. That tool counts latencies from
sending, in whole milliseconds, and includes the start of its own process. Seven Java processes
share two processors here: on a larger machine Kafka's latency is another.
"""


# What, how many copies, what an acknowledgement says, and the figures of throughput and of latency.
SIDE_BY_SIDE = [
    ("Conclave", "3", "in all in-sync logs", "conclave.produce_rf3_replicated_1m_mb",
     "conclave.ack_replicated_1000_p50_us"),
    ("Conclave", "3", "synced by all in sync", "conclave.produce_rf3_fsync_1m_mb",
     "conclave.ack_fsync_1000_p50_us"),
    ("Conclave", "1", "in the log", "conclave.produce_rf1_1m_mb", None),
    ("NATS R3, 1 stream", "3", "written by a majority", "nats.produce_r3_1_streams_mb",
     "nats.ack_r3_1_streams_1000_p50_us"),
    ("NATS R3, 6 streams", "3", "written by a majority", "nats.produce_r3_6_streams_mb",
     "nats.ack_r3_6_streams_1000_p50_us"),
    ("NATS R1", "1", "written", "nats.produce_r1_mb", None),
    ("Redis, everysec", "1", "taken", "redis.produce_everysec_mb",
     "redis.ack_everysec_1000_p50_us"),
    ("Redis, always", "1", "synced", "redis.produce_always_mb", "redis.ack_always_1000_p50_us"),
    ("Kafka", "3", "in all in-sync logs", "kafka.produce_rf3_mb", "kafka.ack_1000_p50_us"),
]


def _number(value):
    if value is None:
        return "-"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


def _row(*cells):
    return "| " + " | ".join(cells) + " |"


def _took(seconds):
    return f"{seconds / 60:.0f} minutes" if seconds >= 100 else f"{seconds:.0f} s"


def _targets(lines, notes):
    out = [_row("target", "aim", "measured", "spread", "met"), _row(*["---"] * 5)]
    group = None
    for line in lines:
        if line["group"] != group:
            group = line["group"]
            out.append(_row(f"**{group}**", "", "", "", ""))
        unit = f" {line['unit']}" if line["unit"] else ""
        sign = "≥" if line["sense"] == ">=" else "≤"
        spread = "" if line["median"] is None else (
            f"{_number(line['least'])} to {_number(line['most'])} ({len(line['values'])})")
        met = {True: "yes", False: "**no**", None: "not measured"}[line["met"]]
        out.append(_row(line["target"], f"{sign} {_number(line['bound'])}{unit}",
                        _number(line["median"]) + (unit if line["median"] is not None else ""),
                        spread, met))
    if notes:
        out += ["", "Not measured, or to be known:", ""]
        out += [f"- {what}: {why}" for what, why in sorted(notes.items())]
    return out


def _figures(figures):
    out = [_row("figure", "median", "least", "most", "count"), _row(*["---"] * 5)]
    for name, measured in sorted(figures.items()):
        values = [v for _, v in measured]
        out.append(_row(f"`{name}`", _number(statistics.median(values)), _number(min(values)),
                        _number(max(values)), str(len(values))))
    return out


def _side_by_side(figures):
    out = [_row("log", "copies", "acknowledged means", "MB/s", "ack p50 at 1,000/s"),
           _row(*["---"] * 5)]

    def median(name, scale=1.0):
        values = [v * scale for _, v in figures.get(name, [])]
        return statistics.median(values) if values else None

    for what, copies, meaning, throughput, latency in SIDE_BY_SIDE:
        p50 = median(latency, 1e-3)
        out.append(_row(what, copies, meaning, _number(median(throughput)),
                        "-" if p50 is None else f"{_number(p50)} ms"))
    return out


def _noise(shares):
    out = [_row("round", "stolen by the host", "busy"), _row(*["---"] * 3)]
    # Numbers come back from JSON as words.
    for number, parts in sorted((int(n), parts) for n, parts in shares.items()):
        steal = [s["steal_percent"] for s in parts.values()]
        busy = [s["busy_percent"] for s in parts.values()]
        out.append(_row(str(number + 1),
                        f"{min(steal)} to {max(steal)} % (median {statistics.median(steal)})",
                        f"{statistics.median(busy)} %"))
    return out


def page(run, for_docs=True):
    """Markdown. `run`: what tests/bench/run has gathered. `for_docs`: with every target, measured or
    not, and the plot beside it; else for whoever has called it."""
    lines = run["targets"]
    met = sum(line["met"] is True for line in lines)
    missed = sum(line["met"] is False for line in lines)
    out = ["# Benchmarks", ""]
    if run["quick"]:
        out += ["**This is a quick run: one short round, which shows that everything can be "
                "measured and tells little about speed.**", ""]
    out += [f"{met} targets met, {missed} missed, {len(lines) - met - missed} not measured." +
            (" `tests/bench/run --docs` wrote this page; [How to measure](#how-to-measure)."
             if for_docs else ""), ""]
    if for_docs:
        out += ["![Each target against its measured median](benchmarks.svg)", ""]
    out += ["## Targets", ""]
    out += _targets([line for line in lines if for_docs or line["met"] is not None], run["notes"])
    out += ["", "What keeps a target from being met, by profile, and what was tried: "
            "[performance.md](performance.md#what-is-left-by-target)."]
    out += ["", "## Side by side", "",
            "One producer with its defaults, records of 1 KiB; - is not measured.", ""]
    out += _side_by_side(run["figures"])
    out += ["", "## How it was measured", "", HOW]
    out += ["## The machine", ""]
    out += [f"- {what}: {value}" for what, value in run["machine"].items() if value]
    out += [f"- rounds: {run['rounds']}, in {_took(run['seconds'])}", ""]
    out += ["What the host took from this virtual machine, over the parts of each round:", ""]
    out += _noise(run["shares"])
    out += ["", "## All figures", "",
            "MB/s are millions of bytes of values a second; `_us` microseconds.", ""]
    out += _figures(run["figures"])
    out += ["", "## How to measure", "", "```",
            "apt-get install nats-server redis-server      # the peers, as far as wanted; their "
            "services may stay off",
            "tests/bench/run --docs --json benchmarks.json # five rounds, on a quiet machine",
            "tests/bench/run --quick                       # a short look at everything",
            "tests/bench/run --only ceilings,produce       # some parts",
            "tests/bench/run --docs --from benchmarks.json # the page of an earlier run",
            "tests/bench/run --kafka kafka/libs            # with Kafka, from a release's jars",
            "```", ""]
    return "\n".join(out)
