#include "common/buffer/payload.h"

#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "common/random/random.h"
#include "conclave/v1/produce.pb.h"

namespace conclave {

template <>
struct PayloadPathOf<v1::ProduceRequest> {
  static constexpr PayloadPath kPath{v1::ProduceRequest::kPartitionsFieldNumber,
                                     v1::ProducePartition::kBatchFieldNumber};
};

namespace {

using google::protobuf::util::MessageDifferencer;
using Request = WithPayloads<v1::ProduceRequest>;

std::string RandomBytes(Random& random, uint64_t most) {
  std::string bytes(random.Below(most + 1), '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.Below(256));
  return bytes;
}

v1::ProduceRequest RandomRequest(Random& random) {
  v1::ProduceRequest request;
  request.set_correlation_id(static_cast<int64_t>(random.Below(1000)) - 10);
  request.set_acks(v1::ACKS_LEADER);
  for (uint64_t i = random.Below(5); i > 0; --i) {
    v1::ProducePartition* partition = request.add_partitions();
    partition->set_topic("t" + std::to_string(i));
    if (random.Chance(0.5)) partition->set_topic_id(RandomBytes(random, 16));
    partition->set_partition(static_cast<int>(random.Below(200)));
    if (random.Chance(0.8)) partition->set_batch(RandomBytes(random, 1000));
    if (random.Chance(0.3)) partition->add_records()->set_value(RandomBytes(random, 300));
  }
  return request;
}

// In slices of any size, as they come from a network.
Buffer Split(const std::string& bytes, Random& random) {
  Buffer split;
  for (size_t at = 0; at < bytes.size();) {
    const size_t size = std::min<size_t>(bytes.size() - at, 1 + random.Below(200));
    split.Append(Slice::CopyOf(bytes.substr(at, size)));
    at += size;
  }
  return split;
}

TEST(PayloadTest, IsWhatGeneratedCodeReadsAndWrites) {
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    const v1::ProduceRequest sent = RandomRequest(random);
    Request request;
    ASSERT_TRUE(ParseFromBuffer(Split(sent.SerializeAsString(), random), &request));
    ASSERT_EQ(static_cast<int>(request.payloads.size()), sent.partitions_size());
    v1::ProduceRequest whole = request.message;
    for (int p = 0; p < whole.partitions_size(); ++p) {
      EXPECT_TRUE(whole.partitions(p).batch().empty());
      whole.mutable_partitions(p)->set_batch(request.payloads[static_cast<size_t>(p)].ToString());
    }
    EXPECT_TRUE(MessageDifferencer::Equals(whole, sent));

    v1::ProduceRequest received;
    ASSERT_TRUE(received.ParseFromString(SerializeToBuffer(request).ToString()));
    EXPECT_TRUE(MessageDifferencer::Equals(received, sent));
  }
}

TEST(PayloadTest, SharesTheBytes) {
  v1::ProduceRequest sent;
  sent.add_partitions()->set_batch(std::string(10'000, 'b'));
  const Buffer wire(sent.SerializeAsString());
  Request request;
  ASSERT_TRUE(ParseFromBuffer(wire, &request));
  ASSERT_EQ(request.payloads.size(), 1u);
  const Slice& payload = request.payloads[0].slices().at(0);
  EXPECT_EQ(payload.size(), 10'000u);
  EXPECT_EQ(payload.data() + payload.size(), wire.slices()[0].data() + wire.size());
  const Buffer again = SerializeToBuffer(request);
  EXPECT_EQ(again.slices().back().data(), payload.data());
}

// Fields in any order, the payload twice, numbers written at length: all of it is protobuf.
TEST(PayloadTest, ReadsWhatOthersMayWrite) {
  const std::string part = std::string("\x22\x01x", 3) +      // batch: "x"
                           std::string("\x18\x83\x00", 3) +   // partition: 3, at length
                           std::string("\x22\x02yz", 4) +     // batch: "yz"
                           std::string("\xfa\x07\x01u", 4) +  // a field that nobody knows
                           std::string("\x0a\x01t", 3);       // topic: "t"
  const std::string wire = std::string("\x22") + static_cast<char>(part.size()) + part + "\x08\x07";
  Request request;
  ASSERT_TRUE(ParseFromBuffer(Buffer(wire), &request));
  EXPECT_EQ(request.message.correlation_id(), 7);
  ASSERT_EQ(request.message.partitions_size(), 1);
  EXPECT_EQ(request.message.partitions(0).topic(), "t");
  EXPECT_EQ(request.message.partitions(0).partition(), 3);
  EXPECT_EQ(request.payloads[0].ToString(), "yz");
}

TEST(PayloadTest, AnyBytesAreRefusedOrRead) {
  Random random(2);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = RandomRequest(random).SerializeAsString();
    if (bytes.empty()) continue;
    for (uint64_t flips = 1 + random.Below(4); flips > 0; --flips) {
      bytes[random.Below(bytes.size())] = static_cast<char>(random.Below(256));
    }
    if (random.Chance(0.3)) bytes.resize(random.Below(bytes.size() + 1));
    Request request;
    const bool read = ParseFromBuffer(Split(bytes, random), &request);
    v1::ProduceRequest reference;
    if (!read) continue;
    ASSERT_TRUE(reference.ParseFromString(bytes)) << "more is read than there is";
    ASSERT_EQ(request.payloads.size(), static_cast<size_t>(reference.partitions_size()));
    for (int p = 0; p < reference.partitions_size(); ++p) {
      EXPECT_EQ(request.payloads[static_cast<size_t>(p)].ToString(),
                reference.partitions(p).batch());
    }
  }
}

}  // namespace
}  // namespace conclave
