#ifndef CONCLAVE_CLIENT_TESTING_FAKE_CLUSTER_H_
#define CONCLAVE_CLIENT_TESTING_FAKE_CLUSTER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/testing/fake_broker.h"
#include "common/executor/executor.h"
#include "common/rpc/server.h"
#include "common/sim/sim_clock.h"
#include "common/sim/sim_executor.h"
#include "common/sim/sim_scheduler.h"
#include "common/sim/sim_wire.h"
#include "common/transport/memory_transport.h"

namespace conclave::client_testing {

// Fake brokers 1 to n, and a place for clients, in one virtual world.
class FakeCluster {
 public:
  using AddMethods = std::function<void(int broker, MethodTable&, Executor&)>;

  // `add_methods`: see FakeWorld.
  explicit FakeCluster(int brokers = 3, uint64_t seed = 1, AddMethods add_methods = nullptr);
  ~FakeCluster();

  // For the client under test, which goes before the cluster does.
  Transport& transport() { return *transport_; }
  SimExecutor& executor() { return executor_; }
  std::vector<std::string> bootstrap() const;

  SimScheduler& scheduler() { return scheduler_; }
  SimClock& clock() { return clock_; }
  SimWire& wire() { return *wire_; }
  FakeWorld& world() { return world_; }

  // Runs events until the condition holds; false if it does not within the time.
  bool RunUntil(const std::function<bool()>& condition, Duration limit = Duration::Seconds(60));
  void RunFor(Duration duration) { scheduler_.RunFor(duration); }

  // The process ends, and starts again with what it stored.
  void Stop(int broker);
  void Start(int broker);
  // All connections between the client and the broker break.
  void Break(int broker);

  static std::string NameOf(int broker) { return "broker-" + std::to_string(broker); }
  static constexpr char kClient[] = "client";

 private:
  struct Node {
    std::unique_ptr<Transport> transport;
    std::unique_ptr<SimExecutor> executor;
    std::unique_ptr<FakeBroker> broker;
  };

  SimScheduler scheduler_;
  SimClock clock_{scheduler_};
  SimWire* wire_;  // The network's.
  MemoryNetwork network_;
  FakeWorld world_;
  // What was under way to them still finds them.
  std::vector<std::unique_ptr<SimExecutor>> stopped_;
  std::map<int, Node> nodes_;
  SimExecutor executor_{scheduler_, clock_};
  std::unique_ptr<Transport> transport_;
};

}  // namespace conclave::client_testing

#endif  // CONCLAVE_CLIENT_TESTING_FAKE_CLUSTER_H_
