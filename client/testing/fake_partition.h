#ifndef CONCLAVE_CLIENT_TESTING_FAKE_PARTITION_H_
#define CONCLAVE_CLIENT_TESTING_FAKE_PARTITION_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "common/buffer/buffer.h"
#include "common/record/batch_header.h"
#include "common/types/ids.h"
#include "conclave/v1/errors.pb.h"
#include "conclave/v1/fetch.pb.h"
#include "conclave/v1/produce.pb.h"

namespace conclave::client_testing {

// The log of one partition as all its replicas have it, with idempotence (KIP-98). Written anew and
// simply, so that the client's tests do not lean on the broker's code.
class FakePartition {
 public:
  struct Batch {
    BatchHeader header;
    Buffer bytes;
  };

  BrokerId leader;
  LeaderEpoch leader_epoch;

  // Sets error, base_offset and duplicate.
  void Append(const Buffer& batch, v1::ProducePartitionResult& result);

  Offset log_start() const { return log_start_; }
  Offset end() const { return end_; }
  // Follows the end unless it is held.
  Offset high_watermark() const { return held_ ? high_watermark_ : end_; }
  void HoldHighWatermark(Offset at);
  void ReleaseHighWatermark() { held_ = false; }

  // Whole batches from the one that holds `from` on, below the high watermark: one at least if
  // there is one, and no more than `max_bytes` else. `next` is what follows them.
  std::string Read(Offset from, size_t max_bytes, Offset& next) const;

  // The first record at or after the time; -1 if there is none.
  std::pair<Offset, int64_t> Find(int64_t timestamp_ms) const;

  // The greatest epoch of a batch that is at most `asked`, -1 for none, and where it ends.
  std::pair<LeaderEpoch, Offset> EndOfEpoch(LeaderEpoch asked) const;

  // What retention does.
  void DeleteBefore(Offset offset);
  // What an unclean election does.
  void TruncateTo(Offset offset);
  void ForgetProducers() { producers_.clear(); }

  const std::vector<Batch>& batches() const { return batches_; }
  // Values of all records, in order.
  std::vector<std::string> Values() const;

 private:
  struct Remembered {
    int32_t first = 0;
    int32_t last = 0;
    Offset offset;
  };
  struct Producer {
    ProducerEpoch epoch;
    std::deque<Remembered> last_five;
  };

  // NONE: to be appended. Sets base_offset of a duplicate.
  v1::ErrorCode Classify(const BatchHeader& header, v1::ProducePartitionResult& result) const;

  std::vector<Batch> batches_;
  std::map<ProducerId, Producer> producers_;
  Offset log_start_;
  Offset end_;
  bool held_ = false;
  Offset high_watermark_;
};

}  // namespace conclave::client_testing

#endif  // CONCLAVE_CLIENT_TESTING_FAKE_PARTITION_H_
