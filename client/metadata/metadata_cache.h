#ifndef CONCLAVE_CLIENT_METADATA_METADATA_CACHE_H_
#define CONCLAVE_CLIENT_METADATA_METADATA_CACHE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/base/backoff.h"
#include "client/base/lifetime.h"
#include "client/base/topic_partition.h"
#include "common/executor/executor.h"
#include "common/random/random.h"
#include "common/transport/transport.h"
#include "common/types/ids.h"
#include "common/types/time.h"
#include "conclave/v1/errors.pb.h"
#include "conclave/v1/metadata.pb.h"

namespace conclave {

// What a client knows of the cluster: its brokers, and who leads the partitions of the topics it is
// asked to watch.
//
// Any broker answers. Of all answers the one with the greatest metadata_index counts, and the
// leader of a partition is never followed back to an older epoch: not by an answer that was made
// before the leader moved, and not after a NOT_LEADER error has named a newer one (KIP-951).
// Refreshes asked for while one is under way, or within the pause after it, become one.
//
// Everything runs on the executor, on which it is also destroyed (or after that has stopped).
// Transport and executor outlive it.
class MetadataCache {
 public:
  struct Options {
    // host:port of brokers; at least one. Brokers learnt of are asked too.
    std::vector<std::string> bootstrap;
    // Unasked, what is known is refreshed after so long.
    Duration max_age = Duration::Seconds(300);
    // Between refreshes; while nothing changes it grows to the second, while nobody answers to the
    // third.
    Duration pause = Duration::Milliseconds(50);
    Duration unchanged_pause_max = Duration::Milliseconds(200);
    Duration failed_pause_max = Duration::Seconds(1);
    // How long one broker is given to answer.
    Duration attempt_timeout = Duration::Seconds(5);
  };

  struct Partition {
    BrokerId leader = kNoBroker;
    LeaderEpoch leader_epoch{-1};
  };
  struct Topic {
    // Not OK: the cluster refuses the name, or knows no such topic. Ids and partitions are none
    // then.
    absl::Status status;
    TopicId id;
    // By index.
    std::vector<Partition> partitions;
    // Since when the cluster has answered that there is none, without a break.
    std::optional<MonotonicTime> unknown_since;
  };
  struct Leader {
    BrokerId broker;
    LeaderEpoch epoch;
    // host:port
    std::string endpoint;
  };

  // `changed` is called after each answer that was taken in, each try that failed, and each hint
  // that was news; not from within calls other than Learn's. It may call anything here.
  MetadataCache(Options options, Transport& transport, Executor& executor, const Random& random,
                std::function<void()> changed);
  ~MetadataCache();

  // Includes the topic in refreshes, and asks for it if it is new.
  void Watch(const std::string& topic);
  void Unwatch(const std::string& topic);

  // Asks soon. For a caller that was refused or misses a leader: it calls again as long as that is
  // so.
  void Refresh();

  // Null: not watched, or no answer yet.
  const Topic* Find(const std::string& topic) const;
  // None: the topic, the leader or its address is not known.
  std::optional<Leader> LeaderOf(const TopicPartition& partition) const;

  // A broker's refusal names the leader. True if that was news: its epoch is newer, and its address
  // is known.
  bool Learn(const TopicPartition& partition, const v1::NodeHint& hint);

  // For requests that any broker answers: the one that answered last. Failed() moves on to another.
  const std::string& endpoint() const { return endpoint_; }
  void Failed(const std::string& endpoint);

  // Every address there is has answered that it does not serve metadata, and none ever has.
  bool nobody_serves() const;
  // Why the last try failed; OK if it did not.
  const absl::Status& last_failure() const { return last_failure_; }
  uint64_t metadata_index() const { return index_; }
  // Requests sent so far.
  uint64_t asked() const { return asked_; }

 private:
  void Schedule();
  void Ask();
  void Answered(const std::string& endpoint, absl::StatusOr<v1::GetMetadataResponse> response);
  absl::Status CheckAnswer(const v1::GetMetadataResponse& response) const;
  // True if anything is different now.
  bool TakeIn(const v1::GetMetadataResponse& response);
  bool TakeIn(const v1::TopicMetadata& metadata, Topic& topic);
  std::vector<std::string> Candidates() const;

  const Options options_;
  Transport& transport_;
  Executor& executor_;
  Random random_;
  const std::function<void()> changed_;

  std::string cluster_id_;
  uint64_t index_ = 0;
  std::map<BrokerId, std::string> brokers_;
  // Those watched; nullopt before the first answer.
  std::map<std::string, std::optional<Topic>> topics_;

  std::string endpoint_;
  bool wanted_ = false;
  bool asking_ = false;
  MonotonicTime ask_not_before_;
  TimerId timer_;
  TimerId age_timer_;
  Backoff unchanged_pause_;
  Backoff failed_pause_;
  absl::Status last_failure_;
  // Answers in a row that the service is not there.
  size_t not_served_ = 0;
  uint64_t asked_ = 0;
  Lifetime lifetime_;
};

}  // namespace conclave

#endif  // CONCLAVE_CLIENT_METADATA_METADATA_CACHE_H_
