#ifndef CONCLAVE_TESTS_HISTORY_TESTING_MODEL_CLIENTS_H_
#define CONCLAVE_TESTS_HISTORY_TESTING_MODEL_CLIENTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/history/testing/model_cluster.h"

// Clients of a ModelCluster, which outlives them; each works until `until`.
namespace conclave::history {

class ModelProducer {
 public:
  ModelProducer(ModelCluster& cluster, int number, Time until);

 private:
  void SendOne();
  // At once with what the cluster does with it.
  void Settle(size_t send, Time at);

  ModelCluster& cluster_;
  const Name name_;
  const Time until_;
  const int number_;
  Acks acks_ = Acks::kAll;
  bool idempotent_ = true;
  int sent_ = 0;
  // The requests to a log take effect in order.
  std::map<KeyIndex, Time> last_effect_;
};

// Reads each log from its start, for itself.
class ModelConsumer {
 public:
  ModelConsumer(ModelCluster& cluster, int number, Time until);

 private:
  void PollOne();
  void Put(ModelCluster::Log& log, int64_t from, bool known);

  ModelCluster& cluster_;
  const Name name_;
  const Time until_;
  std::map<KeyIndex, int64_t> positions_;
};

// A group, its coordinator and its members. They read the logs from kUngroupedLog + 1 on.
class ModelGroup {
 public:
  ModelGroup(ModelCluster& cluster, int members, Time until);

 private:
  struct Member {
    Name process = Name::kNone;
    Name name = Name::kNone;
    int life = 0;
    Time since = 0;
    // What it knows.
    int64_t epoch = -1;
    std::map<KeyIndex, int64_t> positions;
    bool busy = false;
    // It has left, or died.
    bool out = false;
  };

  void Begin(Member& member, size_t number);
  void Rebalance();
  std::vector<KeyIndex> OwnedBy(const Member& member) const;
  // Each step takes a while; the member does nothing else meanwhile.
  void Step(size_t number);
  void Learn(Member& member);
  void TakeUp(Member& member, ModelCluster::Log& log);
  void Poll(Member& member);
  void Commit(Member& member);

  ModelCluster& cluster_;
  const Name group_;
  const Time until_;
  int64_t epoch_ = 0;
  std::vector<Member> members_;
};

// Commits any offset for a group without members, one or more at a time, and reads them.
class ModelOffsets {
 public:
  ModelOffsets(ModelCluster& cluster, Time until);

 private:
  void CommitOne();
  void ReadOne(Name group, KeyIndex key);

  ModelCluster& cluster_;
  const Name group_;
  const Name committer_;
  const Name reader_;
  const Time until_;
  int64_t last_ = 0;
};

}  // namespace conclave::history

#endif  // CONCLAVE_TESTS_HISTORY_TESTING_MODEL_CLIENTS_H_
