#ifndef CONCLAVE_TESTS_ROUNDS_LOAD_H_
#define CONCLAVE_TESTS_ROUNDS_LOAD_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "client/consumer/consumer.h"
#include "client/group/group_consumer.h"
#include "client/producer/producer.h"
#include "common/executor/executor.h"
#include "common/random/random.h"
#include "common/transport/transport.h"
#include "tests/history/history.h"
#include "tests/history/recording.h"

namespace conclave::rounds {

// What clients of a cluster of real processes did and were told. All of it happens on `executor`,
// whose clock is the history's.
class Record : public history::Recording {
 public:
  // `topic_id` names the topic's logs.
  Record(Executor& executor, std::string topic, std::string topic_id)
      : Recording([&executor] { return (executor.clock().Now() - MonotonicTime()).nanoseconds(); }),
        topic_(std::move(topic)),
        topic_id_(std::move(topic_id)) {}

  const std::string& topic() const { return topic_; }
  history::KeyIndex KeyOf(int partition) { return history_.KeyOf(topic_id_, partition); }

  void Polled(std::string_view process, const PartitionRecords& records, history::Time invoke,
              std::string_view group);

 private:
  const std::string topic_;
  const std::string topic_id_;
};

struct Environment {
  Transport& transport;
  Executor& executor;
  std::vector<std::string> bootstrap;
  Record& record;
  int partitions = 1;
};

// An idempotent producer that keeps some records under way until Stop.
class Sender {
 public:
  Sender(Environment environment, int number, const Random& random);

  void Start();
  void Stop() { running_ = false; }
  bool idle() const { return open_ == 0; }
  uint64_t acknowledged() const { return acknowledged_; }
  uint64_t failed() const { return failed_; }

 private:
  void Fill();
  void SendOne();
  void Delivered(size_t place, const Delivery& delivery);

  Environment environment_;
  const int number_;
  const std::string process_;
  Random random_;
  std::unique_ptr<Producer> producer_;
  bool running_ = false;
  bool filling_soon_ = false;
  size_t open_ = 0;
  uint64_t last_value_ = 0;
  uint64_t acknowledged_ = 0;
  uint64_t failed_ = 0;
};

// Reads all partitions from their start.
class Reader {
 public:
  Reader(Environment environment, std::string process, const Random& random);

  void Start();
  // Where it stands, by partition.
  const std::vector<int64_t>& next() const { return next_; }
  // What went wrong for good; empty: nothing.
  const std::string& trouble() const { return trouble_; }

 private:
  void Poll();

  Environment environment_;
  const std::string process_;
  std::unique_ptr<Consumer> consumer_;
  std::vector<int64_t> next_;
  std::string trouble_;
};

// A member of the group "members", that commits after each poll.
class Member {
 public:
  Member(Environment environment, int number, const Random& random);

  void Start();
  int64_t committed(int partition) const {
    return shares_[static_cast<size_t>(partition)].committed;
  }
  bool owns(int partition) const { return shares_[static_cast<size_t>(partition)].owned; }
  const std::string& trouble() const { return trouble_; }

 private:
  struct Share {
    bool owned = false;
    // Raised when it is taken up.
    uint64_t takings = 0;
    int64_t handed = -1;
    int64_t committed = -1;
    // Since when it may have been asked what is committed, before it is taken up.
    history::Time free = 0;
  };
  struct Committing {
    size_t place = 0;
    size_t partition = 0;
    uint64_t takings = 0;
    int64_t offset = 0;
  };

  void OnEvent(const GroupEvent& event);
  void TakenUp(int partition);
  void RecordAssignment();
  void Poll();
  void CommitOrPoll();
  size_t MayCommit(int partition, int64_t offset);
  void CommitDone(const std::vector<Committing>& commits, const absl::Status& status);

  Environment environment_;
  const std::string process_;
  std::unique_ptr<GroupConsumer> consumer_;
  std::vector<Share> shares_;
  history::Time heard_ = 0;
  std::string trouble_;
};

}  // namespace conclave::rounds

#endif  // CONCLAVE_TESTS_ROUNDS_LOAD_H_
