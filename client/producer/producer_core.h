#ifndef CONCLAVE_CLIENT_PRODUCER_PRODUCER_CORE_H_
#define CONCLAVE_CLIENT_PRODUCER_PRODUCER_CORE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "client/base/lifetime.h"
#include "client/metadata/metadata_cache.h"
#include "client/producer/identity_source.h"
#include "client/producer/partition_queue.h"
#include "client/producer/produce_connection.h"
#include "client/producer/producer.h"
#include "client/producer/record_accumulator.h"

namespace conclave {

// Sends what gathers in the accumulator. On the executor, but for Send.
//
// Work is done where something happened, not for all partitions each time: a partition is ready
// while it may have something to send, and stands in its leader's list then. It leaves the list
// when it has nothing, and is put there again by a record (TakeIn), an answer, another leader or
// identity, or the time it waits for.
class Producer::Core : public std::enable_shared_from_this<Producer::Core>,
                       private ProduceConnection::Owner {
 public:
  Core(ProducerOptions options, Transport& transport, Executor& executor, const Random& random);
  ~Core() override;

  // From any thread.
  absl::Status Send(const ProducerRecord& record, DeliveryDone&& done);
  RecordAccumulator& accumulator() { return accumulator_; }

  void Flush(absl::AnyInvocable<void()> done);
  void Close(Duration timeout, absl::AnyInvocable<void()> done);

 private:
  struct Partition {
    Partition(LaneId lane_id, TopicPartition name, const PartitionQueue::Options& options,
              const Random& random)
        : lane(lane_id), queue(std::move(name), options, random) {}

    const TopicPartition& name() const { return queue.partition(); }

    const LaneId lane;
    PartitionQueue queue;
    // As the metadata has them.
    std::optional<MetadataCache::Leader> leader;
    TopicId topic_id;
    // It stands in its leader's list.
    bool ready = false;
  };
  struct FlushWait {
    uint64_t generation;
    absl::AnyInvocable<void()> done;
  };

  // ProduceConnection::Owner
  void OnAnswer(const ProduceConnection& from, const ProduceConnection::Item& item,
                const v1::ProducePartitionResult& result) override;
  void OnLost(const ProduceConnection& from, const ProduceConnection::Item& item,
              const absl::Status& status, bool unknown) override;
  void OnRoom() override { Wake(); }

  // `may_have_moved`: another broker may lead by now, or soon.
  void Failed(const ProduceConnection& from, const ProduceConnection::Item& item,
              const absl::Status& status, bool unknown, bool may_have_moved);
  // Those that wait after a failure, and have another leader since.
  void RetryMoved(MonotonicTime now);

  // Pump, soon; several wishes become one.
  void Wake();
  // One round: takes records in, sends what may be sent, tells what is done.
  void Pump();
  // Hears of new records.
  void TakeIn();
  // Brings partitions and leaders up to the metadata, and hands on or fails what waits for it. True
  // if there may be new records in lanes.
  bool Route(MonotonicTime now);
  void RouteTo(const std::string& name, const MetadataCache::Topic& metadata);
  void ServeUnknown(const std::string& name, const MetadataCache::Topic* metadata,
                    MonotonicTime now);
  void Relead();
  void FailWaiting(const std::string& name, MonotonicTime sent_until, const absl::Status& why);
  void FailRecord(RecordAccumulator::Waiting waiting, PartitionIndex partition,
                  const absl::Status& why);
  // Gives up what is too old.
  void Expire(MonotonicTime now);
  void Activate(Partition& partition);
  // To be looked at; or to be forgotten, if it has nothing.
  void MakeReady(Partition& partition);
  bool IsIdle(const Partition& partition) const;
  void MakeAllReady();
  // It has nothing to send now.
  void Rest(Partition& partition, MonotonicTime now, std::optional<MonotonicTime> ready_at);
  void SendAll(MonotonicTime now);
  // Of the partitions at the front of the list. False: nothing more can be sent now.
  bool SendRequest(std::deque<Partition*>& ready, MonotonicTime now);
  ProduceConnection& ConnectionTo(const MetadataCache::Leader& leader);
  void Collect(Partition& partition);
  void TellCompleted();
  void CheckFlushes();
  uint64_t OldestGeneration() const;
  void ArmTimer();
  void Abort();
  void CloseConnections();

  Partition& PartitionOf(const TopicPartition& name);
  Partition& PartitionOf(LaneId lane) { return *partitions_[lane.value()]; }
  // Why a partition gets nothing sent.
  absl::Status Obstacle(const TopicPartition& partition) const;
  bool hurry() const { return !flushes_.empty(); }

  const ProducerOptions options_;
  Transport& transport_;
  Executor& executor_;
  Random random_;
  RecordAccumulator accumulator_;
  MetadataCache metadata_;
  IdentitySource identity_;
  // Partitions of each topic that was sent to, by index.
  std::map<std::string, std::vector<LaneId>> topics_;
  // Those of whose records some wait for metadata.
  std::set<std::string> waiting_;
  bool metadata_changed_ = false;
  // By lane.
  std::vector<std::unique_ptr<Partition>> partitions_;
  // Those with something that is not done.
  std::set<LaneId> active_;
  // By leader; the next to send at the front.
  std::map<BrokerId, std::deque<Partition*>> ready_;
  // When those that rest are looked at again.
  MonotonicTime look_again_at_ = MonotonicTime::Never();
  // Nothing is too old before.
  MonotonicTime expire_at_;
  std::map<BrokerId, std::unique_ptr<ProduceConnection>> connections_;
  // Whose last attempt failed, with the leader that was known then.
  std::map<LaneId, std::optional<MetadataCache::Leader>> failed_;

  struct Completed {
    TopicPartition partition;
    std::shared_ptr<ProduceBatch> batch;
  };
  std::vector<Completed> completed_;
  // Of a batch, since one was last acknowledged.
  absl::Status last_failure_;

  // Each waits for the generations up to its own.
  std::deque<FlushWait> flushes_;

  bool pump_posted_ = false;
  TimerId timer_;
  MonotonicTime timer_at_ = MonotonicTime::Never();
  bool closed_ = false;
  TimerId close_timer_;
  absl::AnyInvocable<void()> close_done_;
  size_t closing_ = 0;
  Lifetime lifetime_;
};

}  // namespace conclave

#endif  // CONCLAVE_CLIENT_PRODUCER_PRODUCER_CORE_H_
