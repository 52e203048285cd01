#ifndef CONCLAVE_TESTS_SIMULATION_CONTROLLERS_ADMIN_WORKLOAD_H_
#define CONCLAVE_TESTS_SIMULATION_CONTROLLERS_ADMIN_WORKLOAD_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "client/admin/admin_client.h"
#include "common/metadata/image.h"
#include "common/random/random.h"
#include "common/sim/sim_executor.h"

namespace conclave::control_sim {

// An administrator who creates, deletes and lists topics, and remembers what was acknowledged.
//
// Some topics are deleted as soon as their creation is acknowledged, while a broker may still
// repeat an earlier attempt of that creation: they must not come back.
class AdminWorkload {
 public:
  struct Counters {
    uint64_t created = 0;
    uint64_t deleted = 0;
    uint64_t listed = 0;
    // Not acknowledged, for whatever reason.
    uint64_t failed = 0;
  };

  // `broken` is told what contradicts an acknowledgement, `say` what is done. All outlive this.
  AdminWorkload(SimExecutor& executor, AdminClient& client, const Random& random,
                std::function<void(const std::string&)> broken,
                std::function<void(const std::string&)> say);

  // Makes a request every so often until Stop.
  void Start(Duration mean_pause);
  void Stop() { running_ = false; }
  // No request is under way.
  bool idle() const { return under_way_ == 0; }

  // Creates one more topic, and calls `done` with what came of it.
  void CreateOne(std::function<void(const absl::Status&)> done);

  // What is missing from, or too much in, the final image; empty if nothing.
  std::string CheckFinal(const MetadataImage& image) const;

  const Counters& counters() const { return counters_; }

 private:
  struct Topic {
    std::string id;
    int partitions = 0;
    bool delete_tried = false;
    bool deleted = false;
  };

  void Next();
  void DeleteAny();
  void Delete(const std::string& name);
  void List();
  void Listed(const std::map<std::string, Topic>& before, const v1::DescribeTopicsResponse& found);

  SimExecutor& executor_;
  AdminClient& client_;
  Random random_;
  const std::function<void(const std::string&)> broken_;
  const std::function<void(const std::string&)> say_;
  Duration mean_pause_;
  bool running_ = false;
  int under_way_ = 0;
  int last_number_ = 0;
  // By name; names are used once.
  std::map<std::string, Topic> topics_;
  Counters counters_;
};

}  // namespace conclave::control_sim

#endif  // CONCLAVE_TESTS_SIMULATION_CONTROLLERS_ADMIN_WORKLOAD_H_
