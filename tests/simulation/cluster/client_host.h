#ifndef CONCLAVE_TESTS_SIMULATION_CLUSTER_CLIENT_HOST_H_
#define CONCLAVE_TESTS_SIMULATION_CLUSTER_CLIENT_HOST_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/sim/sim_clock.h"
#include "common/sim/sim_executor.h"
#include "common/sim/sim_scheduler.h"
#include "common/transport/memory_transport.h"

namespace conclave::cluster_sim {

// A machine of the simulation on which a client runs, whose process can end and be started again.
// Scheduler and network outlive it.
class ClientHost {
 public:
  ClientHost(SimScheduler& scheduler, MemoryNetwork& network, std::string name)
      : clock_(scheduler), scheduler_(scheduler), network_(network), name_(std::move(name)) {
    Start();
  }
  ~ClientHost() { Stop(); }

  const std::string& name() const { return name_; }
  // Of the process there is at present.
  SimExecutor& executor() { return *executors_.back(); }
  Transport& transport() { return *transport_; }

  // The process ends, as after kill -9: `state` is destroyed with it.
  template <class State>
  void Crash(std::unique_ptr<State>& state) {
    network_.Kill(name_);
    Stop();
    state.reset();
    transport_.reset();
    Start();
  }

 private:
  void Start() {
    executors_.push_back(std::make_unique<SimExecutor>(scheduler_, clock_));
    transport_ = network_.Join(name_);
  }
  void Stop() { executors_.back()->Stop(); }

  SimClock clock_;
  SimScheduler& scheduler_;
  MemoryNetwork& network_;
  const std::string name_;
  // Those that have ended are still named by messages under way.
  std::vector<std::unique_ptr<SimExecutor>> executors_;
  std::unique_ptr<Transport> transport_;
};

}  // namespace conclave::cluster_sim

#endif  // CONCLAVE_TESTS_SIMULATION_CLUSTER_CLIENT_HOST_H_
