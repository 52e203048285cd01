#include "client/testing/fake_cluster.h"

#include <utility>

#include "common/random/random.h"

namespace conclave::client_testing {

FakeCluster::FakeCluster(int brokers, uint64_t seed, AddMethods add_methods)
    : wire_(new SimWire(scheduler_, Random(seed).Fork("wire"), {})),
      network_(std::unique_ptr<Wire>(wire_)) {
  wire_->SetBreakStreams(
      [this](const std::string& a, const std::string& b) { network_.BreakStreams(a, b); });
  world_.add_methods = std::move(add_methods);
  for (int id = 1; id <= brokers; ++id) Start(id);
  transport_ = network_.Join(kClient);
}

FakeCluster::~FakeCluster() {
  executor_.Stop();
  while (!nodes_.empty()) Stop(nodes_.begin()->first);
}

std::vector<std::string> FakeCluster::bootstrap() const {
  std::vector<std::string> endpoints;
  for (const auto& [id, endpoint] : world_.endpoints) endpoints.push_back(endpoint);
  return endpoints;
}

bool FakeCluster::RunUntil(const std::function<bool()>& condition, Duration limit) {
  const MonotonicTime end = scheduler_.now() + limit;
  while (!condition()) {
    if (scheduler_.now() > end || !scheduler_.RunOne()) return condition();
  }
  return true;
}

void FakeCluster::Stop(int broker) {
  const auto node = nodes_.find(broker);
  network_.Kill(NameOf(broker));
  node->second.executor->Stop();
  node->second.broker.reset();
  stopped_.push_back(std::move(node->second.executor));
  nodes_.erase(node);
}

void FakeCluster::Start(int broker) {
  Node& node = nodes_[broker];
  node.transport = network_.Join(NameOf(broker));
  node.executor = std::make_unique<SimExecutor>(scheduler_, clock_);
  node.broker = std::make_unique<FakeBroker>(world_, broker, *node.transport, *node.executor,
                                             NameOf(broker) + ":7400");
}

void FakeCluster::Break(int broker) { network_.BreakStreams(kClient, NameOf(broker)); }

}  // namespace conclave::client_testing
