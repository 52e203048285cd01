"""Clients of any language: what servers say of themselves is enough to call them."""

import unittest

import grpc

import test_main
from conclave_cluster import Cluster, wait_until
from reflection import Reflected


class ServicesTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(controllers=1, brokers=1)
        cls.broker = Reflected(cls.cluster.node("broker-1")["endpoint"])
        cls.controller = Reflected(cls.cluster.node("controller-1")["endpoint"])

    @classmethod
    def tearDownClass(cls):
        cls.broker.close()
        cls.controller.close()
        cls.cluster.close()

    def test_reflection_lists_what_is_served(self):
        common = ["conclave.v1.AdminService", "grpc.health.v1.Health",
                  "grpc.reflection.v1.ServerReflection",
                  "grpc.reflection.v1alpha.ServerReflection"]
        for name in common + ["conclave.v1.ControllerService", "conclave.v1.RaftService"]:
            self.assertIn(name, self.controller.services())
        for name in common + ["conclave.v1.MetadataService"]:
            self.assertIn(name, self.broker.services())

    def test_reflection_has_two_names(self):
        self.assertEqual(self.broker.services("grpc.reflection.v1"), self.broker.services())

    def test_every_service_that_is_listed_is_described(self):
        for node in (self.broker, self.controller):
            for service in node.services():
                self.assertTrue(node.files_of(service), service)

    def test_health_is_answered(self):
        self.assertTrue(self.controller.is_serving())
        wait_until(self.broker.is_serving, "the broker serves")

    def test_a_client_made_from_reflection_creates_and_describes(self):
        created = self.broker.call(
            "conclave.v1.AdminService", "CreateTopics",
            topics=[{"name": "reflected", "partitions": 3}])
        self.assertEqual(created.topics[0].error.code, 0)
        self.assertEqual(created.topics[0].partitions, 3)

        def metadata():
            answer = self.broker.call("conclave.v1.MetadataService", "GetMetadata",
                                      topics=["reflected"])
            return answer if answer.topics[0].partitions else None
        topic = wait_until(metadata, "the broker knows the topic").topics[0]
        self.assertEqual(topic.topic_id, created.topics[0].topic_id)
        self.assertEqual([p.leader for p in topic.partitions], [1, 1, 1])

    def test_an_error_of_one_topic_stands_beside_it(self):
        answer = self.broker.call("conclave.v1.AdminService", "CreateTopics",
                                  topics=[{"name": "a/b"}, {"name": "good"}])
        self.assertEqual([t.error.code for t in answer.topics], [40, 0])
        self.assertIn("a/b", answer.topics[0].error.message)

    def test_an_error_of_the_call_has_its_code_in_the_details(self):
        with self.assertRaises(grpc.RpcError) as raised:
            self.controller.call("conclave.v1.ControllerService", "AlterPartition",
                                 broker_id=77, broker_epoch=1)
        self.assertIn("77", raised.exception.details())
        trailers = {k: v for k, v in raised.exception.trailing_metadata()}
        self.assertIn(b"type.googleapis.com/conclave.v1.Error",
                      trailers["grpc-status-details-bin"])

    def test_bytes_that_are_no_request_are_refused(self):
        channel = grpc.insecure_channel(self.cluster.node("broker-1")["endpoint"],
                                        options=[("grpc.enable_http_proxy", 0)])
        call = channel.unary_unary("/conclave.v1.AdminService/CreateTopics")
        with self.assertRaises(grpc.RpcError) as raised:
            call(b"\xff\xff\xff\xff", timeout=30)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
        self.assertIn("CreateTopics", raised.exception.details())
        channel.close()


if __name__ == "__main__":
    test_main.main(__name__)
