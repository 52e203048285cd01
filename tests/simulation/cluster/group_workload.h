#ifndef CONCLAVE_TESTS_SIMULATION_CLUSTER_GROUP_WORKLOAD_H_
#define CONCLAVE_TESTS_SIMULATION_CLUSTER_GROUP_WORKLOAD_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/group/group_consumer.h"
#include "common/random/random.h"
#include "tests/simulation/cluster/client_host.h"
#include "tests/simulation/cluster/cluster.h"
#include "tests/simulation/cluster/coverage.h"

namespace conclave::cluster_sim {

// Members of one group, of the client library, that read a topic from its start and commit.
//
// A committed offset never falls, and all below it was handed to some member (the history checker's
// rules 12 and 13); in the end every record was, and the committed offsets are the ends.
class GroupWorkload {
 public:
  GroupWorkload(Cluster& cluster, const Random& random, std::string topic, int partitions,
                int members, Coverage& coverage);
  ~GroupWorkload();

  void Start();
  std::vector<std::string> names() const;
  // What can happen to any of them; by events of the scheduler.
  void CrashMember();
  void PauseMember(Duration how_long);

  // All of it was handed out and committed.
  bool IsAtEnd();
  void CheckFinal();

 private:
  struct Member {
    int number = 0;
    std::unique_ptr<ClientHost> host;
    std::unique_ptr<GroupConsumer> consumer;
    uint64_t life = 0;
  };

  void StartMember(Member& member);
  void Poll(Member& member);
  void ReadCommitted(Member& member);
  void Committed(const std::vector<int64_t>& at_least, const GroupConsumer::Offsets& offsets);
  Duration Soon(int64_t max_ms) { return Duration::Milliseconds(random_.Between(1, max_ms)); }

  Cluster& cluster_;
  Random random_;
  const std::string topic_;
  const int partitions_;
  Coverage& coverage_;
  std::vector<std::unique_ptr<Member>> members_;
  // By partition: whether the record at that offset was handed to anybody.
  std::vector<std::vector<bool>> polled_;
  // By partition: the greatest committed offset that anybody has read; -1: none.
  std::vector<int64_t> committed_;
};

}  // namespace conclave::cluster_sim

#endif  // CONCLAVE_TESTS_SIMULATION_CLUSTER_GROUP_WORKLOAD_H_
