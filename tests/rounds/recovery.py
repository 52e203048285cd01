"""How long a broker with a large log takes to serve again after kill -9 under load.

    recovery.py --programs DIR [--gib N] [--dir DIRECTORY]

One broker is filled, killed with -9 while records flow, at least 256 MiB past what it last
checkpointed; the page cache is dropped (root); it starts again, and has to serve. Then every batch's
checksum is looked at.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from nodes import Cluster, Programs, wait_until  # noqa: E402

TOPIC = "large"
PAST_RECOVERY_POINT = 256 << 20


def size_of(folder):
    return sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder)
               if name.endswith(".log"))


def recovery_point(data):
    path = os.path.join(data, "recovery-points")
    if not os.path.exists(path):  # Within the first minute.
        return ""
    with open(path, encoding="utf-8") as file:
        return file.read()


class Recovery:
    def __init__(self, options):
        self.options = options
        self.programs = Programs(options.programs)
        self.directory = tempfile.mkdtemp(prefix="recovery.", dir=options.dir)
        self.cluster = Cluster(os.path.join(self.directory, "nodes"), self.programs, brokers=1,
                               controllers=1)
        self.broker = self.cluster.nodes["broker-1"]
        self.folder = os.path.join(self.broker.data, TOPIC + "-0")

    def produce(self, bytes_, wait=True):
        process = subprocess.Popen(
            [self.programs.conclave, "--bootstrap", self.cluster.bootstrap, "bench", "produce",
             "--topic", TOPIC, "--bytes", str(bytes_), "--no-verify"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if wait and process.wait() != 0:
            raise AssertionError("producing failed")
        return process

    def run(self):
        self.cluster.start()
        self.cluster.cli("topic", "create", TOPIC, "--partitions", 1, "--replicas", 1)
        self.produce(self.options.gib << 30)
        # What follows the next checkpoint counts from there.
        before = recovery_point(self.broker.data)
        wait_until(lambda: recovery_point(self.broker.data) != before,
                                "a recovery point", 180)
        at_checkpoint = size_of(self.folder)
        load = self.produce(4 << 30, wait=False)
        wait_until(
            lambda: size_of(self.folder) >= at_checkpoint + PAST_RECOVERY_POINT,
            "256 MiB past the recovery point", 50)
        self.broker.signal(signal.SIGKILL)
        self.broker.wait()
        load.kill()
        load.wait()
        total = size_of(self.folder)
        past = total - at_checkpoint
        subprocess.run(["sync"], check=True)
        with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
            file.write("3\n")
        began = time.monotonic()
        self.broker.start()
        wait_until(self.serves, "it serves again", 300)
        seconds = time.monotonic() - began
        with open(os.path.join(self.broker.folder, "log"), encoding="utf-8") as file:
            recovered = re.findall(r"(\d+) logs are open, recovered, in (\d+) ms; (\d+) bytes",
                                   file.read())[-1]
        batches = self.check()
        print(f"{total / 2**30:.1f} GiB, {past / 2**20:.0f} MiB of it past the recovery point; "
              f"served again {seconds:.1f} s after the start (logs open after "
              f"{int(recovered[1]) / 1000:.1f} s, {int(recovered[2]) / 2**20:.0f} MiB scanned); "
              f"{batches} batches, every checksum right")
        self.cluster.stop()

    def serves(self):
        result = subprocess.run(
            [self.programs.conclave, "--bootstrap", self.cluster.bootstrap, "--timeout", "2",
             "produce", TOPIC], input=b"again\n", stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        return result.returncode == 0

    def check(self):
        batches = 0
        for name in sorted(os.listdir(self.folder)):
            if not name.endswith(".log"):
                continue
            dump = subprocess.Popen([self.programs.conclave, "dump", "segment",
                                     os.path.join(self.folder, name)], stdout=subprocess.PIPE,
                                    text=True)
            for line in dump.stdout:
                batches += 1
                if not json.loads(line)["crc_valid"]:
                    raise AssertionError(f"{name}: {line}")
            if dump.wait() != 0:
                raise AssertionError(f"{name} cannot be read")
        return batches


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", required=True)
    parser.add_argument("--gib", type=int, default=10)
    parser.add_argument("--dir", help="where the data goes")
    options = parser.parse_args()
    recovery = Recovery(options)
    try:
        recovery.run()
    finally:
        recovery.cluster.close()


if __name__ == "__main__":
    main()
