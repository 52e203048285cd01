#ifndef CONCLAVE_BROKER_LOG_DERIVED_STATE_H_
#define CONCLAVE_BROKER_LOG_DERIVED_STATE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/log/epoch_cache.h"
#include "broker/log/producer_state.h"
#include "common/fs/file_system.h"
#include "common/record/batch_header.h"
#include "common/types/ids.h"

namespace conclave {

inline constexpr char kLeaderEpochsFile[] = "leader-epochs";
inline constexpr char kProducersFile[] = "producers";

// What follows from a partition's batches: epochs and producers, and their files. Each file says up
// to which offset it is complete; what comes later is read from the batches again. A file that is
// missing or damaged is complete up to nothing. Not thread-safe.
class DerivedState {
 public:
  DerivedState(FileSystem& fs, std::string directory) : fs_(fs), directory_(std::move(directory)) {}

  // Reads both files for a log over [log_start, log_end). Files that go beyond the end are written
  // anew, cut, before this returns: the log may get other batches there.
  absl::Status Load(Offset log_start, Offset log_end);

  // From where on batches are missing in it after Load; log_start at least. EndReplay once they
  // have been noted.
  Offset incomplete_from() const;
  // `log_start` may lie further on than that of Load, within the first segment.
  void FinishLoad(Offset log_start);
  // A batch of the log, in order. What the state has already is passed over.
  void Note(const BatchHeader& header);

  // The log will be cut to `end`. What the files say beyond it is cut first. Returns true if
  // producers must be replayed from the log's start once it is cut.
  absl::StatusOr<bool> TruncateTo(Offset end);
  // The log begins at `start` now.
  void TrimTo(Offset start);
  // The log is empty, and begins at `start`; `producers`: what is known of those before.
  absl::Status Reset(Offset start, const ProducerState::Producers& producers);
  // The same, but for the files.
  void Forget(Offset start, const ProducerState::Producers& producers);
  // Producers are noted again, from the log's start: Note every batch between the two.
  void BeginReplay(Offset log_start);
  void EndReplay() { producers_.EndReplay(); }

  // Writes what changed of what lies below `durable`: batches beyond may be others after a crash.
  absl::Status StoreEpochsBelow(Offset durable);
  // Everything that was noted is durable.
  absl::Status StoreAll();
  Offset producers_through() const { return producers_through_; }

  const EpochCache& epochs() const { return epochs_; }
  const ProducerState& producers() const { return producers_; }

 private:
  absl::Status LoadEpochs();
  absl::Status LoadProducers();
  absl::Status StoreEpochs(Offset through);
  absl::Status StoreProducers(Offset through);

  FileSystem& fs_;
  const std::string directory_;
  EpochCache epochs_;
  ProducerState producers_;
  // What the files say to be complete up to.
  Offset epochs_through_;
  Offset producers_through_;
  // What the state in memory is complete up to.
  Offset epochs_noted_;
  Offset producers_noted_;
  bool epochs_changed_ = false;
};

}  // namespace conclave

#endif  // CONCLAVE_BROKER_LOG_DERIVED_STATE_H_
