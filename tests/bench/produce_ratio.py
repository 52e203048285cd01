"""What `conclave bench produce` reaches beside what the disk allows, in one run.

The ceiling: three writers at once, each syncing every 16 MiB, as three replicas on one disk do; a
third of their sum. Measured before and after the cluster's part, of which the mean counts.
"""

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"],
                                "tests/integration"))
from conclave_cluster import Cluster, wait_until  # noqa: E402

MIB = 1 << 20
SYNC_EVERY = 16 * MIB


def write_synced(path, size, barrier, results):
    block = os.urandom(MIB)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    barrier.wait()
    begun = time.monotonic()
    for written in range(MIB, size + MIB, MIB):
        os.write(fd, block)
        if written % SYNC_EVERY == 0:
            os.fdatasync(fd)
    results.put(size / (time.monotonic() - begun))
    os.close(fd)
    os.unlink(path)


def third_of_three_writers(directory, size):
    barrier = multiprocessing.Barrier(3)
    results = multiprocessing.Queue()
    writers = [multiprocessing.Process(
        target=write_synced, args=(os.path.join(directory, f"writer-{i}"), size, barrier, results))
        for i in range(3)]
    for writer in writers:
        writer.start()
    rates = [results.get() for _ in writers]
    for writer in writers:
        writer.join()
    return sum(rates) / 3 / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=512, help="what is produced")
    parser.add_argument("--dir", default=None, help="where the cluster and the writers write")
    parser.add_argument("--at-least", type=float, default=0.2, help="the ratio below which it fails")
    arguments = parser.parse_args()
    if arguments.dir:
        tempfile.tempdir = os.environ["TEST_TMPDIR"] = arguments.dir
    with tempfile.TemporaryDirectory() as scratch:
        before = third_of_three_writers(scratch, 256 * MIB)
        with Cluster() as cluster:
            cluster.wait_until_active()
            cluster.must("topic", "create", "bench", "--partitions", 6, "--replication-factor", 3)
            wait_until(lambda: all(
                p["high_watermark"] is not None for p in
                cluster.json("topic", "describe", "bench")["topics"][0]["partitions"]),
                "every partition is led")
            result = cluster.json("--timeout", "120", "bench", "produce", "--topic", "bench",
                                  "--bytes", arguments.mib * MIB, "--record-size", 1024)
        after = third_of_three_writers(scratch, 256 * MIB)
    ceiling = (before + after) / 2
    ratio = result["mb_per_second"] / ceiling
    print(json.dumps({
        "produce_mb_per_second": round(result["mb_per_second"], 1),
        "third_of_three_synced_writers_mb_per_second": round(ceiling, 1),
        "ceiling_before_and_after": [round(before, 1), round(after, 1)],
        "ratio": round(ratio, 3),
        "latency_us": result["latency_us"],
        "verified": result["verified"]}, indent=2))
    return 0 if ratio >= arguments.at_least and result["verified"] else 1


if __name__ == "__main__":
    sys.exit(main())
