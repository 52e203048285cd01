// The client library at work: creates a topic, sends a record, and reads the topic.
//
//   bazel run //client/examples:hello -- 127.0.0.1:7401
#include <future>
#include <iostream>
#include <memory>
#include <string>

#include "client/admin/admin_client.h"
#include "client/consumer/consumer.h"
#include "client/producer/producer.h"
#include "common/clock/system_clock.h"
#include "common/error/error.h"
#include "common/executor/thread_executor.h"
#include "common/random/entropy.h"
#include "common/random/random.h"
#include "common/transport/grpc_transport.h"

namespace {

using namespace conclave;

constexpr char kTopic[] = "hello";

absl::Status CreateTopic(AdminClient& admin) {
  v1::CreateTopicsRequest request;
  request.add_topics()->set_name(kTopic);
  std::promise<absl::StatusOr<v1::CreateTopicsResponse>> answer;
  admin.CreateTopics(request, [&](auto response) { answer.set_value(std::move(response)); });
  const auto response = answer.get_future().get();
  if (!response.ok()) return response.status();
  const v1::Error& error = response->topics(0).error();
  return error.code() == v1::TOPIC_ALREADY_EXISTS ? absl::OkStatus() : StatusFromError(error);
}

absl::Status Send(Producer& producer) {
  ProducerRecord record;
  record.topic = kTopic;
  record.key = "greeting";
  record.value = "hello, log";
  std::promise<Delivery> delivered;
  const absl::Status taken =
      producer.Send(record, [&](const Delivery& delivery) { delivered.set_value(delivery); });
  if (!taken.ok()) return taken;
  const Delivery delivery = delivered.get_future().get();
  if (delivery.status.ok()) std::cout << "stored at offset " << delivery.offset << std::endl;
  return delivery.status;
}

// Consumers live on the executor: whoever is elsewhere posts, and waits.
absl::Status Read(Consumer& consumer, Executor& executor) {
  std::promise<Consumer::PollResult> polled;
  executor.Post([&] {
    consumer.Assign({{{kTopic, PartitionIndex(0)}, StartAt::Earliest()}});
    consumer.Poll(100, executor.clock().Now() + Duration::Seconds(30),
                  [&](Consumer::PollResult result) { polled.set_value(std::move(result)); });
  });
  const Consumer::PollResult result = polled.get_future().get();
  if (!result.ok()) return result.status();
  for (const PartitionRecords& part : *result) {
    for (const RecordView& record : part.records) {
      std::cout << record.offset << ": " << record.value.value_or("(null)") << std::endl;
    }
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: hello BROKER_HOST:PORT" << std::endl;
    return 2;
  }
  // What a program has once, for all its clients. The transport ends first, the clock last.
  const SystemClock clock;
  ThreadExecutor executor(clock, {.name = "client"});
  auto transport = std::make_unique<GrpcTransport>();
  const Random random(EntropySeed());

  AdminClient admin({.bootstrap = {argv[1]}}, *transport, executor, random);
  ProducerOptions producing;
  producing.bootstrap = {argv[1]};
  Producer producer(producing, *transport, executor, random);
  ConsumerOptions consuming;
  consuming.bootstrap = {argv[1]};
  auto consumer = std::make_unique<Consumer>(consuming, *transport, executor, random);

  absl::Status status = CreateTopic(admin);
  if (status.ok()) status = Send(producer);
  if (status.ok()) status = Read(*consumer, executor);

  std::promise<void> closed;
  executor.Post([&] {
    consumer.reset();
    producer.Close(Duration::Seconds(5), [&] { closed.set_value(); });
  });
  closed.get_future().wait();
  transport.reset();
  executor.Stop();
  if (!status.ok()) std::cerr << Describe(status) << std::endl;
  return status.ok() ? 0 : 1;
}
