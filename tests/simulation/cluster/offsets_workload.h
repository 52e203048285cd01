#ifndef CONCLAVE_TESTS_SIMULATION_CLUSTER_OFFSETS_WORKLOAD_H_
#define CONCLAVE_TESTS_SIMULATION_CLUSTER_OFFSETS_WORKLOAD_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "common/random/random.h"
#include "common/rpc/method.h"
#include "conclave/v1/group.pb.h"
#include "tests/simulation/cluster/cluster.h"
#include "tests/simulation/cluster/recorder.h"

namespace conclave::cluster_sim {

// A client that commits ever greater offsets for a group without members, and others that read them
// meanwhile. A committed offset is a register (the history checker's rule 12): a read that began
// after a commit was acknowledged gives that one or one begun later, and never none; nor does it
// give what nobody had tried to commit.
class OffsetsWorkload {
 public:
  struct Counters {
    uint64_t committed = 0;
    uint64_t unknown = 0;
    uint64_t read = 0;
    uint64_t refused = 0;
    // Another broker turned out to coordinate.
    uint64_t moves = 0;
  };

  // `recorder` outlives it.
  OffsetsWorkload(Cluster& cluster, const Random& random, Recorder& recorder, std::string topic);

  void Start();
  void Stop() { running_ = false; }
  bool idle() const { return open_ == 0; }
  const Counters& counters() const { return counters_; }

 private:
  // Asks whichever broker coordinates, if that is known.
  template <class Request, class Response>
  void Call(const Method<Request, Response>& method, const Request& request,
            std::function<void(absl::StatusOr<Response>)> done);
  void CommitNext();
  void ReadNext();
  void Refused(const absl::Status& why);
  void Found(const std::string& coordinator);
  std::string AnyBroker();

  Cluster& cluster_;
  Recorder& recorder_;
  Random random_;
  const std::string topic_;
  std::string coordinator_;
  bool running_ = false;
  int open_ = 0;
  int64_t tried_ = 0;
  int64_t acknowledged_ = -1;
  Counters counters_;
};

}  // namespace conclave::cluster_sim

#endif  // CONCLAVE_TESTS_SIMULATION_CLUSTER_OFFSETS_WORKLOAD_H_
