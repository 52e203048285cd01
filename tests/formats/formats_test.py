"""Holds the C++ code's batches, segments and indexes against an independent reading of the format,
in both directions."""

import json
import os
import random
import subprocess
import sys
import tempfile
import unittest
from xml.sax.saxutils import quoteattr

import kafka_format as kafka

TOOL = os.path.join("tests", "formats", "format_tool")


def tool(*arguments, data=b""):
    return subprocess.run([TOOL, *arguments], input=data, stdout=subprocess.PIPE, check=True).stdout


def hexed(data):
    return None if data is None else data.hex()


def unhexed(text):
    return None if text is None else bytes.fromhex(text)


def random_records(rng, count):
    def maybe(most):
        return None if rng.random() < 0.25 else rng.randbytes(rng.randrange(most))

    return [kafka.Record(1_700_000_000_000 + rng.randrange(-10**6, 10**6), maybe(40), maybe(400),
                         [(rng.randbytes(rng.randrange(8)), maybe(20))
                          for _ in range(rng.randrange(3))])
            for _ in range(count)]


NULLS = [kafka.Record(1000, None, None), kafka.Record(1000, b"", b""),
         kafka.Record(0, None, b"", [(b"", None), (b"h", b"")]),
         kafka.Record(2**41, bytes(range(256)), None)]


class BatchTest(unittest.TestCase):
    def described(self, records, codec, producer, base_offset, leader_epoch):
        return json.dumps({
            "codec": kafka.CODECS[codec], "producer": producer, "base_offset": base_offset,
            "leader_epoch": leader_epoch,
            "records": [{"timestamp": r.timestamp, "key": hexed(r.key), "value": hexed(r.value),
                         "headers": [[hexed(k), hexed(v)] for k, v in r.headers]}
                        for r in records]}).encode()

    def cases(self):
        rng = random.Random(20261129)
        for codec in kafka.CODECS:
            yield NULLS, codec, (-1, -1, -1), 0, -1
            for _ in range(15):
                yield (random_records(rng, 1 + rng.randrange(30)), codec,
                       (rng.randrange(2**62), rng.randrange(2**15), rng.randrange(2**31)),
                       rng.randrange(2**50), rng.randrange(2**30))

    def test_what_cpp_encodes_is_the_published_format_byte_for_byte(self):
        for records, codec, producer, base, epoch in self.cases():
            got = tool("encode", data=self.described(records, codec, producer, base, epoch))
            batch = kafka.decode_batch(got)
            self.assertEqual(batch.records, records)
            self.assertEqual(got, kafka.encode_batch(records, base, epoch, codec, producer,
                                                     packed=batch.packed))

    def test_what_python_encodes_cpp_reads(self):
        for records, codec, producer, base, epoch in self.cases():
            got = json.loads(tool("decode", data=kafka.encode_batch(records, base, epoch, codec,
                                                                    producer)))
            self.assertEqual((got["base_offset"], got["leader_epoch"], tuple(got["producer"])),
                             (base, epoch, producer))
            self.assertEqual(got["max_timestamp"], max(r.timestamp for r in records))
            read = [kafka.Record(r["timestamp"], unhexed(r["key"]), unhexed(r["value"]),
                                 [(unhexed(k), unhexed(v)) for k, v in r["headers"]])
                    for r in got["records"]]
            self.assertEqual(read, records)
            self.assertEqual([r["offset"] for r in got["records"]],
                             list(range(base, base + len(records))))


class SegmentTest(unittest.TestCase):
    def test_segments_and_both_indexes_byte_for_byte(self):
        rng = random.Random(7)
        for interval, segment_bytes in ((1, 5000), (300, 20000), (4096, 1 << 30)):
            run, offset = b"", 0
            for _ in range(120):
                records = random_records(rng, 1 + rng.randrange(6))
                run += kafka.encode_batch(records, offset, 3, rng.choice(list(kafka.CODECS)))
                offset += len(records)
            with tempfile.TemporaryDirectory() as directory:
                tool("append", directory, str(interval), str(segment_bytes), data=run)
                self.check(directory, run, interval)

    def check(self, directory, run, interval):
        logs = sorted(name for name in os.listdir(directory) if name.endswith(".log"))
        whole = b""
        for name in logs:
            self.assertRegex(name, r"^\d{20}\.log$")
            path = os.path.join(directory, name[:-4])
            with open(path + ".log", "rb") as file:
                data = file.read()
            with open(path + ".index", "rb") as file:
                index = file.read()
            with open(path + ".timeindex", "rb") as file:
                time_index = file.read()
            whole += data
            batches = kafka.decode_segment(data)
            base = int(name[:-4])
            self.assertEqual(batches[0][1].base_offset, base)
            self.assertEqual((index, time_index),
                             kafka.expected_indexes(batches, base, interval, closed=True))
            self.check_dumps(path, base, batches, index, time_index)
        self.assertEqual(whole, run)

    def check_dumps(self, path, base, batches, index, time_index):
        lines = [json.loads(line) for line in tool("dump", path + ".log").splitlines()]
        self.assertEqual([(l["position"], l["base_offset"], l["crc_valid"], len(l["records"]))
                          for l in lines],
                         [(p, b.base_offset, True, len(b.records)) for p, b in batches])
        entries = [json.loads(line) for line in tool("dump", path + ".index").splitlines()]
        self.assertEqual(index, b"".join(
            (e["offset"] - base).to_bytes(4, "big") + e["position"].to_bytes(4, "big")
            for e in entries))
        entries = [json.loads(line) for line in tool("dump", path + ".timeindex").splitlines()]
        self.assertEqual(time_index, b"".join(
            e["timestamp"].to_bytes(8, "big") + (e["offset"] - base).to_bytes(4, "big")
            for e in entries))


def main():
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__])
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    path = os.environ.get("XML_OUTPUT_FILE")
    if path:
        failed = {str(test) for test, _ in result.failures + result.errors}
        with open(path, "w", encoding="utf-8") as file:
            file.write('<?xml version="1.0"?>\n<testsuites><testsuite name="formats">\n')
            for group in unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__]):
                for test in group:
                    failure = "<failure/>" if str(test) in failed else ""
                    file.write(f"<testcase name={quoteattr(test.id())}>{failure}</testcase>\n")
            file.write("</testsuite></testsuites>\n")
    sys.exit(0 if result.wasSuccessful() and result.testsRun else 1)


if __name__ == "__main__":
    main()
