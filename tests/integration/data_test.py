"""Records through real processes, by a client made from nothing but what the brokers' reflection
serves: plain records for simple clients, and Kafka's batches made by an encoder of its own."""

import itertools
import json
import os
import subprocess
import sys
import time
import unittest

import grpc

sys.path.insert(0, os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"],
                                "tests/formats"))
import kafka_format  # noqa: E402
import test_main  # noqa: E402
from conclave_cluster import COMMAND_TIMEOUT_S, CONCLAVE, Cluster, wait_until  # noqa: E402
from reflection import Reflected  # noqa: E402

ALL, LEADER = 0, 1
# errors.proto
UNKNOWN_TOPIC, CORRUPT, NOT_LEADER, TOO_LARGE, BAD_TIMESTAMP = 42, 60, 61, 65, 66
INVALID_RECORD, CODEC, OUT_OF_ORDER, BAD_EPOCH, UNKNOWN_PRODUCER = 67, 68, 72, 74, 75
OUT_OF_RANGE, INVALID_REQUEST, BAD_ACKS, INVALID_TOPIC = 76, 2, 69, 40


class DataTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(controllers=1, brokers=3)
        cls.brokers = {i: Reflected(cls.cluster.node(f"broker-{i}")["endpoint"])
                       for i in (1, 2, 3)}
        cls.names = (f"topic-{i}" for i in itertools.count())

    @classmethod
    def tearDownClass(cls):
        for broker in cls.brokers.values():
            broker.close()
        cls.cluster.close()

    def new_topic(self, *arguments):
        """A topic of one partition; its name and the client of its leader."""
        name = next(self.names)
        self.cluster.must("topic", "create", name, "--partitions", "1", *arguments)

        def leader():
            answer = self.brokers[1].call("conclave.v1.MetadataService", "GetMetadata",
                                          topics=[name])
            partitions = answer.topics[0].partitions
            return partitions[0].leader if partitions and partitions[0].leader > 0 else None
        chosen = self.brokers[wait_until(leader, f"{name} has a leader")]
        # The leader may be told later than the broker that was asked.
        wait_until(lambda: self.offsets(chosen, name, spec=2).error.code == 0, "the leader leads")
        return name, chosen

    def produce(self, broker, topic, acks=ALL, timeout_ms=30000, **what):
        answer = broker.call("conclave.v1.ProduceService", "Produce", acks=acks,
                             timeout_ms=timeout_ms, correlation_id=7,
                             partitions=[dict(topic=topic, partition=0, **what)])
        self.assertEqual(answer.correlation_id, 7)
        return answer.partitions[0]

    def fetch(self, broker, topic, offset, **options):
        partition = dict(topic=topic, partition=0, offset=offset)
        for key in ("topic_id", "leader_epoch"):
            if key in options:
                partition[key] = options.pop(key)
        return broker.call("conclave.v1.FetchService", "Fetch", partitions=[partition],
                           **options).partitions[0]

    def offsets(self, broker, topic, **spec):
        return broker.call("conclave.v1.FetchService", "ListOffsets",
                           partitions=[dict(topic=topic, partition=0, **spec)]).partitions[0]

    # --- Plain records

    def test_r39_any_bytes_come_back_as_they_were(self):
        topic, leader = self.new_topic()
        values = [None, b"", b"null", bytes(range(256)), b"a\nb\r\n", "\u00e4".encode(), b"\xff\xfe"]
        records = []
        for key, value in itertools.product(values, values):
            record = {"headers": [{"key": "h", "value": b"\x00\n"}, {"key": ""}]}
            if key is not None:
                record["key"] = key
            if value is not None:
                record["value"] = value
            records.append(record)
        result = self.produce(leader, topic, records=records)
        self.assertEqual((result.error.code, result.base_offset), (0, 0), result.error.message)
        read = self.fetch(leader, topic, 0, decode=True)
        self.assertEqual(read.next_offset, len(records))
        got = [(r.key if r.HasField("key") else None, r.value if r.HasField("value") else None)
               for r in read.records]
        self.assertEqual(got, list(itertools.product(values, values)))
        for record in read.records:
            self.assertEqual([h.key for h in record.headers], ["h", ""])
            self.assertEqual(record.headers[0].value, b"\x00\n")
            self.assertFalse(record.headers[1].HasField("value"))

    def test_a_fetch_from_within_a_batch_begins_where_it_was_asked_to(self):
        topic, leader = self.new_topic()
        self.produce(leader, topic, records=[{"value": b"%d" % i} for i in range(10)])
        read = self.fetch(leader, topic, 7, decode=True)
        self.assertEqual([(r.offset, r.value) for r in read.records],
                         [(7, b"7"), (8, b"8"), (9, b"9")])

    def test_an_empty_topic_is_read_to_a_clean_end(self):
        topic, leader = self.new_topic()
        read = self.fetch(leader, topic, 0, max_wait_ms=50)
        self.assertEqual((read.error.code, read.batches, read.next_offset, read.high_watermark),
                         (0, b"", 0, 0))

    def test_a_waiting_fetch_is_answered_when_records_come(self):
        topic, leader = self.new_topic()
        waiting = leader.begin("conclave.v1.FetchService", "Fetch", max_wait_ms=60000, decode=True,
                               partitions=[dict(topic=topic, partition=0, offset=0)])
        self.produce(leader, topic, records=[{"value": b"x"}])
        read = waiting.result(timeout=60).partitions[0]
        self.assertEqual([r.value for r in read.records], [b"x"])

    def test_a_stream_is_pushed_what_comes(self):
        topic, leader = self.new_topic()
        self.produce(leader, topic, records=[{"value": b"0"}])
        stream = leader.stream("conclave.v1.FetchService", "FetchStream", decode=True,
                               partitions=[dict(topic=topic, partition=0, offset=0)])
        values = []
        for i in range(1, 20):
            while len(values) < i:
                values += [r.value for r in next(stream).partitions[0].records]
            self.produce(leader, topic, records=[{"value": b"%d" % i}])
        self.assertEqual(values, [b"%d" % i for i in range(19)])
        stream.cancel()

    def test_offsets_by_time(self):
        topic, leader = self.new_topic()
        now = int(self.produce_time())
        for i in range(5):
            self.produce(leader, topic,
                         records=[{"value": b"x", "timestamp_ms": now + 1000 * i}])
        self.assertEqual(self.offsets(leader, topic, spec=1).offset, 0)
        self.assertEqual(self.offsets(leader, topic, spec=2).offset, 5)
        found = self.offsets(leader, topic, spec=0, timestamp_ms=now + 1001)
        self.assertEqual((found.offset, found.timestamp_ms), (2, now + 2000))
        self.assertEqual(self.offsets(leader, topic, spec=0, timestamp_ms=now + 9000).offset, -1)
        self.assertEqual((found.log_start_offset, found.high_watermark, found.log_end_offset),
                         (0, 5, 5))

    @staticmethod
    def produce_time():
        return time.time() * 1000

    # --- Batches

    def batch(self, count=1, size=1, **options):
        now = int(self.produce_time())
        records = [kafka_format.Record(now, None, b"v" * size) for _ in range(count)]
        return kafka_format.encode_batch(records, **options)

    def test_batches_are_stored_as_sent(self):
        topic, leader = self.new_topic()
        for codec in ("none", "lz4", "zstd"):
            sent = self.batch(count=10, size=100, codec=codec)
            result = self.produce(leader, topic, batch=sent)
            self.assertEqual(result.error.code, 0, result.error.message)
            stored = self.fetch(leader, topic, result.base_offset).batches
            # Base offset and leader epoch are the broker's; the rest is as it was.
            self.assertEqual(stored[:8], result.base_offset.to_bytes(8, "big"))
            self.assertEqual(stored[8:12], sent[8:12])
            self.assertEqual(stored[16:], sent[16:])

    def test_every_replica_has_the_same_bytes(self):
        topic, leader = self.new_topic("--replication-factor", "3")
        for i in range(20):
            self.produce(leader, topic, batch=self.batch(count=5, size=i * 50))
        def copies():
            found = []
            for i in (1, 2, 3):
                path = os.path.join(self.cluster.node(f"broker-{i}")["data_dir"], f"{topic}-0",
                                    "%020d.log" % 0)
                with open(path, "rb") as file:
                    found.append(file.read())
            return found
        wait_until(lambda: len(set(copies())) == 1, "replicas are the same")
        self.assertEqual(len(kafka_format.decode_segment(copies()[0])), 20)

    def test_r31_a_repeated_batch_is_stored_once(self):
        topic, leader = self.new_topic("--replication-factor", "3")
        producer = leader.call("conclave.v1.ProduceService", "InitProducerId")
        batches = [self.batch(count=3, producer=(producer.producer_id, producer.producer_epoch,
                                                 3 * i))
                   for i in range(5)]
        first = [self.produce(leader, topic, batch=b).base_offset for b in batches]
        self.assertEqual(first, [0, 3, 6, 9, 12])
        for batch, offset in zip(batches, first):
            again = self.produce(leader, topic, batch=batch)
            self.assertEqual((again.error.code, again.base_offset, again.duplicate),
                             (0, offset, True), again.error.message)
        self.assertEqual(self.offsets(leader, topic, spec=2).offset, 15)

    def test_sequences_that_do_not_follow_are_refused_by_name(self):
        topic, leader = self.new_topic()
        producer = leader.call("conclave.v1.ProduceService", "InitProducerId")

        def send(sequence, epoch=producer.producer_epoch):
            batch = self.batch(producer=(producer.producer_id, epoch, sequence))
            return self.produce(leader, topic, batch=batch).error.code
        self.assertEqual(send(5), UNKNOWN_PRODUCER)
        self.assertEqual(send(0), 0)
        self.assertEqual(send(2), OUT_OF_ORDER)
        bumped = leader.call("conclave.v1.ProduceService", "InitProducerId",
                             producer_id=producer.producer_id,
                             producer_epoch=producer.producer_epoch)
        self.assertEqual(bumped.producer_epoch, producer.producer_epoch + 1)
        self.assertEqual(send(0, epoch=bumped.producer_epoch), 0)
        self.assertEqual(send(1), BAD_EPOCH)
        self.assertEqual(self.offsets(leader, topic, spec=2).offset, 2)

    def test_producer_ids_are_given_once(self):
        ids = [b.call("conclave.v1.ProduceService", "InitProducerId").producer_id
               for b in self.brokers.values() for _ in range(50)]
        self.assertEqual(len(set(ids)), 150)

    # --- Refusals

    def test_r40_too_large_is_refused_before_the_append(self):
        topic, leader = self.new_topic("--config", "max.message.bytes=10000")
        empty = len(self.batch(size=9500)) - 9500
        for size, code in ((9999, 0), (10000, 0), (10001, TOO_LARGE)):
            batch = self.batch(size=size - empty)
            self.assertEqual(len(batch), size)
            self.assertEqual(self.produce(leader, topic, batch=batch).error.code, code)
        self.assertEqual(self.offsets(leader, topic, spec=2).offset, 2)
        # At least one whole batch, however little is asked for.
        read = self.fetch(leader, topic, 0, max_bytes=1024)
        self.assertEqual((len(read.batches), read.next_offset), (9999, 1))

    def test_what_brokers_write_and_unknown_acks_are_refused(self):
        self.coordinator_of("any")  # Its topic is made for the first group.
        results = [self.produce(broker, "__consumer_offsets", records=[{"value": b"junk"}])
                   for broker in self.brokers.values()]
        self.assertIn(INVALID_TOPIC, [r.error.code for r in results])
        self.assertNotIn(0, [r.error.code for r in results])
        topic, leader = self.new_topic()
        refused = self.produce(leader, topic, acks=7, records=[{"value": b"x"}])
        self.assertEqual(refused.error.code, BAD_ACKS)
        self.assertEqual(self.fetch(leader, topic, 0, decode=True).high_watermark, 0)

    def test_decoded_answers_keep_to_the_limit_whatever_a_batch_unpacks_to(self):
        topic, leader = self.new_topic()
        packed = self.batch(count=20, size=1 << 20, codec="zstd")
        bomb = self.batch(count=40, size=1 << 20, codec="zstd")
        for batch in (packed, bomb):
            self.assertLess(len(batch), 1 << 20)
            self.assertEqual(self.produce(leader, topic, batch=batch).error.code, 0)
        offset = 0
        while offset < 20:
            read = self.fetch(leader, topic, offset, decode=True, max_bytes=1)
            self.assertEqual(([r.offset for r in read.records], read.next_offset),
                             ([offset], offset + 1))
            offset = read.next_offset
        read = self.fetch(leader, topic, 0, decode=True, max_bytes=5 << 20)
        # The partition's own limit, 1 MiB, holds for the first record alone.
        self.assertEqual(len(read.records), 1)
        read = self.fetch(leader, topic, 20, decode=True)
        self.assertEqual((read.error.code, len(read.records)), (TOO_LARGE, 0))
        self.assertIn("offset 20 without `decode`", read.error.message)
        self.assertEqual(self.fetch(leader, topic, 20).batches[16:], bomb[16:])
        stamp = int.from_bytes(bomb[35:43], "big")
        self.assertEqual(self.offsets(leader, topic, spec=0, timestamp_ms=stamp).offset, 20)

    def test_damaged_batches_are_refused_and_nothing_is_stored(self):
        topic, leader = self.new_topic()
        good = self.batch(count=3, size=50)
        for position in range(8, len(good)):
            if position in range(12, 16):
                continue  # The leader epoch, which is the broker's.
            damaged = bytearray(good)
            damaged[position] ^= 0x55
            code = self.produce(leader, topic, batch=bytes(damaged)).error.code
            self.assertNotEqual(code, 0, f"byte {position}")
        for cut in (1, 60, 61, len(good) - 1):
            self.assertEqual(self.produce(leader, topic, batch=good[:cut]).error.code, CORRUPT)
        self.assertEqual(self.produce(leader, topic, batch=good + good).error.code, CORRUPT)
        self.assertEqual(self.produce(leader, topic).error.code, INVALID_RECORD)
        self.assertEqual(self.offsets(leader, topic, spec=2).log_end_offset, 0)

    def test_timestamps_out_of_the_window_are_refused(self):
        topic, leader = self.new_topic()
        ahead = int(self.produce_time()) + 2 * 3600 * 1000
        result = self.produce(leader, topic, records=[{"value": b"x", "timestamp_ms": ahead}])
        self.assertEqual(result.error.code, BAD_TIMESTAMP)

    def test_other_brokers_name_the_leader(self):
        topic, leader = self.new_topic("--replication-factor", "1")
        others = [b for b in self.brokers.values() if b is not leader]
        leader_id = next(i for i, b in self.brokers.items() if b is leader)
        for other in others:
            def refused(other=other):
                error = self.produce(other, topic, records=[{"value": b"x"}]).error
                return error if error.code == NOT_LEADER else None
            hint = wait_until(refused, "the topic is known there").hint
            self.assertEqual((hint.node_id, hint.endpoint),
                             (leader_id, self.cluster.node(f"broker-{leader_id}")["endpoint"]))

    # --- Groups

    def coordinator_of(self, group):
        def ask():
            try:
                found = self.brokers[1].call("conclave.v1.GroupService", "FindCoordinator",
                                             group=group)
            except grpc.RpcError as error:
                self.assertEqual(error.code(), grpc.StatusCode.UNAVAILABLE, error.details())
                return None
            return self.brokers[found.broker_id]
        return wait_until(ask, "the group has a coordinator")

    def retried(self, call):
        def ask():
            try:
                return call()
            except grpc.RpcError as error:
                self.assertEqual(error.code(), grpc.StatusCode.UNAVAILABLE, error.details())
                return None
        return wait_until(ask, "the coordinator serves")

    def test_offsets_are_committed_and_read(self):
        topic, _ = self.new_topic()
        coordinator = self.coordinator_of("offsets")
        read = lambda: coordinator.call("conclave.v1.GroupService", "FetchOffsets",
                                        group="offsets",
                                        topics=[{"topic": topic, "partitions": [0]}])
        self.assertFalse(self.retried(read).offsets[0].HasField("offset"))
        for offset in (3, 7):
            committed = coordinator.call(
                "conclave.v1.GroupService", "CommitOffsets", group="offsets", member_epoch=-1,
                offsets=[{"topic": topic, "partition": 0, "offset": offset, "leader_epoch": 0}])
            self.assertEqual(committed.offsets[0].error.code, 0,
                             committed.offsets[0].error.message)
            self.assertEqual(read().offsets[0].offset, offset)
        groups = coordinator.call("conclave.v1.GroupService", "ListGroups").groups
        self.assertIn("offsets", [g.group for g in groups])
        described = coordinator.call("conclave.v1.GroupService", "DescribeGroups",
                                     groups=["offsets"]).groups[0]
        self.assertEqual((described.error.code, described.state), (0, "empty"))
        self.assertEqual([o.offset for o in described.offsets], [7])

    def test_commits_that_nobody_means_are_refused_by_name(self):
        topic, _ = self.new_topic()
        other, _ = self.new_topic()
        other_id = self.brokers[1].call("conclave.v1.MetadataService", "GetMetadata",
                                        topics=[other]).topics[0].topic_id
        coordinator = self.coordinator_of("refused")
        for what, code, named in (
                (dict(offset=-1, leader_epoch=0), "INVALID_ARGUMENT", "offset -1"),
                (dict(offset=(1 << 62) + 1, leader_epoch=0), "INVALID_ARGUMENT", "2^62"),
                (dict(offset=1, leader_epoch=-2), "INVALID_ARGUMENT", "leader epoch -2"),
                (dict(offset=1, leader_epoch=0, topic_id=other_id), "NOT_FOUND", other)):
            with self.assertRaises(grpc.RpcError) as refused:
                coordinator.call("conclave.v1.GroupService", "CommitOffsets", group="refused",
                                 member_epoch=-1, offsets=[dict(topic=topic, partition=0, **what)])
            self.assertEqual(refused.exception.code().name, code, refused.exception.details())
            self.assertIn(named, refused.exception.details())

    # --- The commands that show them

    def test_a_benchmark_ends_when_its_topic_is_deleted(self):
        topic, leader = self.new_topic()
        bench = subprocess.Popen(
            [CONCLAVE, "--bootstrap", self.cluster.bootstrap, "--timeout", "2", "bench", "produce",
             "--topic", topic, "--bytes", str(16 << 30)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_until(lambda: self.offsets(leader, topic, spec=2).high_watermark > 0,
                   "records are acknowledged")
        self.cluster.must("topic", "delete", topic)
        out, err = bench.communicate(timeout=COMMAND_TIMEOUT_S)
        self.assertIn(bench.returncode, (1, 3), err)
        self.assertEqual(out, "")
        self.assertRegex(err, f"records failed, and the run of .*{topic}")

    def test_describe_shows_the_leaders_bounds(self):
        topic, leader = self.new_topic()
        self.produce(leader, topic, records=[{"value": b"x"}] * 3)
        partition = self.cluster.json("topic", "describe", topic)["topics"][0]["partitions"][0]
        self.assertEqual((partition["log_start_offset"], partition["high_watermark"],
                          partition["log_end_offset"]), (0, 3, 3))

    def test_delete_records_as_any_client_asks_for_it(self):
        topic, leader = self.new_topic("--replication-factor", "3")
        for i in range(10):
            self.produce(leader, topic, records=[{"value": b"%d" % i}])

        def delete(broker, **what):
            return broker.call("conclave.v1.AdminService", "DeleteRecords",
                               partitions=[dict(topic=topic, partition=0, **what)]).partitions[0]
        deleted = delete(leader, before_offset=4)
        self.assertEqual((deleted.error.code, deleted.log_start_offset), (0, 4))
        self.assertEqual(self.fetch(leader, topic, 3).error.code, OUT_OF_RANGE)
        self.assertEqual(self.offsets(leader, topic, spec=1).offset, 4)
        self.assertEqual(self.fetch(leader, topic, 4, decode=True).records[0].value, b"4")
        beyond = delete(leader, before_offset=11)
        self.assertEqual((beyond.error.code, beyond.log_start_offset), (OUT_OF_RANGE, -1))
        self.assertIn("the high watermark is 10", beyond.error.message)
        other = next(broker for broker in self.brokers.values() if broker is not leader)
        refused = delete(other, before_offset=5)
        self.assertEqual(refused.error.code, NOT_LEADER)
        self.assertIs(self.brokers[refused.error.hint.node_id], leader)

    def test_dump_shows_segments_and_indexes(self):
        topic, leader = self.new_topic("--replication-factor", "1", "--config",
                                       "index.interval.bytes=1")
        for i in range(3):
            self.produce(leader, topic, records=[{"key": b"k", "value": b"\xff%d" % i}] * 2)
        leader_id = next(i for i, b in self.brokers.items() if b is leader)
        base = os.path.join(self.cluster.node(f"broker-{leader_id}")["data_dir"], f"{topic}-0",
                            "%020d" % 0)
        batches = [json.loads(line) for line in
                   self.cluster.must("dump", "segment", "--records", base + ".log").splitlines()]
        self.assertEqual([b["base_offset"] for b in batches], [0, 2, 4])
        self.assertEqual(batches[1]["records"][0]["key"], "k")
        self.assertEqual(batches[1]["records"][0]["value_base64"], "/zE=")
        self.assertEqual(self.cluster.cli("dump", "index", base + ".log").returncode, 1)

    def test_what_does_not_exist_is_named(self):
        leader = self.brokers[1]
        result = self.produce(leader, "nowhere", records=[{"value": b"x"}])
        self.assertEqual(result.error.code, UNKNOWN_TOPIC)
        self.assertIn("nowhere", result.error.message)
        topic, leader = self.new_topic()
        read = self.fetch(leader, topic, 1)
        self.assertEqual(read.error.code, OUT_OF_RANGE)
        self.assertIn(f"{topic}-0", read.error.message)
        with self.assertRaises(grpc.RpcError):
            leader.call("conclave.v1.FetchService", "Fetch")

    def test_a_consumer_of_a_deleted_topic_ends_with_the_reason(self):
        topic, leader = self.new_topic()
        self.produce(leader, topic, records=[{"value": b"read"}])
        consuming = subprocess.Popen(
            [CONCLAVE, "--bootstrap", self.cluster.bootstrap, "consume", topic,
             "--from-beginning"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(consuming.stdout.readline(), b"read\n")
        self.cluster.must("topic", "delete", topic)
        _, errors = consuming.communicate(timeout=COMMAND_TIMEOUT_S)
        self.assertEqual(consuming.returncode, 1, errors)
        self.assertIn(b"UNKNOWN_TOPIC_OR_PARTITION", errors)
        self.assertIn(b"was deleted", errors)

    def test_a_deleted_topic_is_gone_and_its_successor_is_empty(self):
        topic, leader = self.new_topic("--replication-factor", "3")
        self.produce(leader, topic, records=[{"value": b"old"}])
        self.cluster.must("topic", "delete", topic)
        wait_until(lambda: self.fetch(leader, topic, 0).error.code == UNKNOWN_TOPIC,
                   "the leader serves it no more")
        self.cluster.must("topic", "create", topic, "--partitions", "1")

        def new_leader():
            for broker in self.brokers.values():
                if self.offsets(broker, topic, spec=2).error.code == 0:
                    return broker
            return None
        leader = wait_until(new_leader, "the new one has a leader")
        self.assertEqual(self.offsets(leader, topic, spec=2).log_end_offset, 0)
        self.produce(leader, topic, records=[{"value": b"new"}])
        self.assertEqual([r.value for r in self.fetch(leader, topic, 0, decode=True).records],
                         [b"new"])


if __name__ == "__main__":
    test_main.main(__name__)
