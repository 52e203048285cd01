// Three fake brokers at real ports of this machine, for tests of programs:
//
//   fake_brokers TOPIC:PARTITIONS...
//
// prints their addresses as a line, separated by commas, and serves until stdin ends.
#include <glog/logging.h>
#include <unistd.h>

#include <cstdlib>
#include <future>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "client/testing/fake_broker.h"
#include "common/clock/system_clock.h"
#include "common/executor/thread_executor.h"
#include "common/transport/grpc_transport.h"

int main(int argc, char** argv) {
  using namespace conclave;
  google::InitGoogleLogging(argv[0]);
  SystemClock clock;
  ThreadExecutor executor(clock, {.name = "fake brokers"});
  auto transport = std::make_unique<GrpcTransport>();
  client_testing::FakeWorld world;
  std::vector<std::unique_ptr<client_testing::FakeBroker>> brokers;
  std::promise<std::string> bootstrap;
  executor.Post([&] {
    for (int id = 1; id <= 3; ++id) {
      brokers.push_back(std::make_unique<client_testing::FakeBroker>(world, id, *transport,
                                                                     executor, "127.0.0.1:0"));
    }
    for (int i = 1; i < argc; ++i) {
      const std::string topic = argv[i];
      const size_t colon = topic.find(':');
      CHECK_NE(colon, std::string::npos) << topic;
      world.CreateTopic(topic.substr(0, colon), std::atoi(topic.c_str() + colon + 1));
    }
    std::string all;
    for (const auto& [id, endpoint] : world.endpoints) all += (all.empty() ? "" : ",") + endpoint;
    bootstrap.set_value(all);
  });
  std::cout << bootstrap.get_future().get() << std::endl;
  char byte;
  while (read(0, &byte, 1) > 0) {
  }
  // Servers are destroyed only after their executor has stopped; nothing is left to be saved.
  std::_Exit(0);
}
