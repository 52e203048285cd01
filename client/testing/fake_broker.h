#ifndef CONCLAVE_CLIENT_TESTING_FAKE_BROKER_H_
#define CONCLAVE_CLIENT_TESTING_FAKE_BROKER_H_

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/base/topic_partition.h"
#include "client/testing/fake_partition.h"
#include "common/executor/executor.h"
#include "common/rpc/server.h"
#include "common/transport/transport.h"
#include "common/types/ids.h"
#include "common/types/time.h"
#include "conclave/v1/fetch.pb.h"
#include "conclave/v1/metadata.pb.h"
#include "conclave/v1/produce.pb.h"

namespace conclave::client_testing {

class FakeBroker;

// What the brokers of a fake cluster share: one log a partition, as if replication took no time;
// who leads; and the faults that a test sets. Used on one executor, or in one virtual world.
class FakeWorld {
 public:
  struct Topic {
    TopicId id;
    std::vector<std::unique_ptr<FakePartition>> partitions;
  };

  // Leaders are given in turn to the brokers that are there. A name that exists is made anew.
  void CreateTopic(const std::string& name, int partitions);
  void DeleteTopic(const std::string& name);
  FakePartition& At(const std::string& topic, int partition);
  FakePartition* Find(const TopicPartition& partition);
  void MoveLeader(const std::string& topic, int partition, int broker);
  // No leader: -1 in the metadata, in a new epoch.
  void TakeLeader(const std::string& topic, int partition) { MoveLeader(topic, partition, -1); }
  // Records were added or became readable: streams go on.
  void Wake();

  v1::GetMetadataResponse Metadata(const v1::GetMetadataRequest& request) const;
  v1::Error NotLeader(const FakePartition& partition) const;

  std::string cluster_id = std::string(16, 'c');
  std::map<std::string, Topic> topics;
  std::map<int, FakeBroker*> brokers;
  std::map<int, std::string> endpoints;
  uint64_t metadata_index = 1;
  int64_t next_producer_id = 100;

  // Other services of a broker, where a test has some; called as it starts.
  std::function<void(int broker, MethodTable&, Executor&)> add_methods;

  // --- Faults and what was seen

  // Before the append; an error refuses it.
  std::function<v1::Error(const TopicPartition&, const BatchHeader&)> before_append;
  // After the append; an error is answered instead of success.
  std::function<v1::Error(const TopicPartition&, const BatchHeader&)> after_append;
  // The next so many produce answers are not sent; after the last the stream breaks.
  int drop_answers = 0;
  // Produce answers are held back until this is false and AnswerHeld is called.
  bool hold_answers = false;
  // Before produce answers.
  Duration answer_delay;
  // InitProducerId is refused.
  bool refuse_producer_ids = false;
  // NOT_LEADER errors name the leader.
  bool hints = true;
  // ListOffsets of "latest" answers OFFSET_NOT_AVAILABLE so many times.
  int offset_not_available = 0;
  // OffsetsForLeaderEpoch is not answered so many times: the streams break.
  int drop_epoch_answers = 0;
  // A fetched batch is passed on with a flipped bit so many times.
  int corrupt_fetches = 0;
  // What lies at this offset or later cannot be read (STORAGE_ERROR) where this broker leads.
  std::map<int, Offset> damaged_from;

  int produce_requests = 0;
  int greatest_in_flight = 0;
  int fetch_streams = 0;
  // Partitions asked for by OffsetsForLeaderEpoch.
  int epoch_queries = 0;
  int metadata_requests = 0;
  int inits = 0;
  // Of each batch that arrived, appended or not.
  std::vector<BatchHeader> arrived;
};

// One broker of it.
class FakeBroker {
 public:
  FakeBroker(FakeWorld& world, int id, Transport& transport, Executor& executor,
             const std::string& listen);
  // To be called after the executor has stopped, or on it.
  ~FakeBroker();

  // What is held back by hold_answers or has a delay is sent, in order.
  void AnswerHeld();
  // Partitions that this broker leads no more end their streams; others go on.
  void Wake();

 private:
  class ProduceStream;
  class FetchStream;
  using ProduceEnd = TypedServerStream<v1::ProduceRequest, v1::ProduceResponse>;
  using FetchEnd = TypedServerStream<v1::FetchRequest, v1::FetchResponse>;

  v1::ProduceResponse Handle(const v1::ProduceRequest& request);
  v1::ListOffsetsResult Lookup(const v1::ListOffsetsPartition& asked);
  v1::EpochEnd LookupEpoch(const v1::EpochQuery& asked);
  // The partition if this broker leads it, else null and the error.
  FakePartition* Led(const std::string& topic, const std::string& topic_id, int partition,
                     std::optional<int32_t> epoch, v1::Error& error);

  FakeWorld& world_;
  const int id_;
  Executor& executor_;
  std::list<std::unique_ptr<ProduceStream>> produce_streams_;
  std::list<std::unique_ptr<FetchStream>> fetch_streams_;
  std::unique_ptr<Server> server_;
};

}  // namespace conclave::client_testing

#endif  // CONCLAVE_CLIENT_TESTING_FAKE_BROKER_H_
