"""Sends a record and reads the topic, without a library of Conclave's. The messages come from
   protoc -Iproto --python_out=. $(find proto -name '*.proto')
"""
import sys

import grpc
from conclave.v1 import fetch_pb2, metadata_pb2, produce_pb2, records_pb2


def call(endpoint, method, request, answer):
    with grpc.insecure_channel(endpoint) as channel:
        ask = channel.unary_unary(f"/conclave.v1.{method}", type(request).SerializeToString,
                                  answer.FromString)
        return ask(request, timeout=30)


broker, topic = sys.argv[1:]
metadata = call(broker, "MetadataService/GetMetadata",
                metadata_pb2.GetMetadataRequest(topics=[topic]), metadata_pb2.GetMetadataResponse)
brokers = {b.broker_id: b.endpoint for b in metadata.brokers}
leader = brokers[metadata.topics[0].partitions[0].leader]

record = records_pb2.Record(key=b"greeting", value=b"hello, log")
stored = call(leader, "ProduceService/Produce", produce_pb2.ProduceRequest(partitions=[
    produce_pb2.ProducePartition(topic=topic, partition=0, records=[record])]),
    produce_pb2.ProduceResponse).partitions[0]
print(stored.error.message or f"stored at offset {stored.base_offset}")

fetched = call(leader, "FetchService/Fetch", fetch_pb2.FetchRequest(decode=True, partitions=[
    fetch_pb2.FetchPartition(topic=topic, partition=0, offset=0)]), fetch_pb2.FetchResponse)
for record in fetched.partitions[0].records:
    print(f"{record.offset}: {record.value.decode()}")
