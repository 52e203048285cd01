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
#include "tests/simulation/cluster/recorder.h"

namespace conclave::cluster_sim {

// Members of one group, of the client library, that read a topic from its start and commit: by
// themselves now and then, or after each poll, as the seed says.
//
// A committed offset never falls, and all below it was handed to some member; in the end every
// record was, the committed offsets are the ends, and each partition has an owner.
class GroupWorkload {
 public:
  // `recorder` and `coverage` outlive it.
  GroupWorkload(Cluster& cluster, const Random& random, Recorder& recorder, std::string topic,
                int partitions, int members, Coverage& coverage);
  ~GroupWorkload();

  void Start();
  std::vector<std::string> names() const;
  // What can happen to any of them; by events of the scheduler.
  void CrashMember();
  void PauseMember(Duration how_long);

  // All of it was handed out and committed, and every partition is owned.
  bool IsAtEnd();
  // The sum of all offsets that were seen committed.
  int64_t Committed() const;
  // What is assigned to whom.
  void RecordEnd();

 private:
  // What a member has to do with a partition.
  struct Share {
    bool owned = false;
    // Raised when it is taken up.
    uint64_t takings = 0;
    // Handed out and committed up to here, since then.
    int64_t handed = -1;
    int64_t committed = -1;
    // Since when it may have been asked what is committed, before it is taken up.
    history::Time free = 0;
  };
  // A commit under way.
  struct Committing {
    size_t place = 0;
    size_t partition = 0;
    uint64_t takings = 0;
    int64_t offset = 0;
  };
  struct Member {
    int number = 0;
    std::unique_ptr<ClientHost> host;
    std::unique_ptr<GroupConsumer> consumer;
    uint64_t life = 0;
    MonotonicTime paused_until;
    // Of this life, in the history.
    std::string process;
    // Since when the coordinator may have made what it says next.
    history::Time heard = 0;
    std::vector<Share> shares;
  };

  void StartMember(Member& member);
  void OnEvent(Member& member, const GroupEvent& event);
  void TakenUp(Member& member, int partition);
  void RecordAssignment(Member& member);
  void Poll(Member& member);
  void Polled(Member& member, const PartitionRecords& part, history::Time invoke);
  // Commits what was handed out, if there is any to commit; then polls again.
  void CommitOrPoll(Member& member);
  // From now on, at whatever time, or never. The operation's place.
  size_t MayCommit(const Member& member, int partition, int64_t offset);
  void CommitDone(Member& member, const std::vector<Committing>& commits,
                  const absl::Status& status);
  bool IsStable() const;
  void ReadCommitted(Member& member);
  void Committed(const Member& member, const std::vector<int64_t>& at_least,
                 const GroupConsumer::Offsets& offsets, history::Time invoke);
  Duration Soon(int64_t max_ms) { return Duration::Milliseconds(random_.Between(1, max_ms)); }

  Cluster& cluster_;
  Recorder& recorder_;
  Random random_;
  // Members commit after each poll; else by themselves.
  const bool commits_itself_;
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
