#ifndef CONCLAVE_BROKER_LOG_PARTITION_LOG_H_
#define CONCLAVE_BROKER_LOG_PARTITION_LOG_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/log/derived_state.h"
#include "broker/log/epoch_cache.h"
#include "broker/log/log_damage.h"
#include "broker/log/log_loader.h"
#include "broker/log/log_sync.h"
#include "broker/log/log_tail.h"
#include "broker/log/producer_state.h"
#include "broker/log/segment.h"
#include "common/buffer/buffer.h"
#include "common/fs/file_system.h"
#include "common/record/batch_check.h"
#include "common/record/batch_header.h"
#include "common/types/ids.h"
#include "common/types/time.h"

namespace conclave {

// When a segment is full, and what is kept. A topic's settings (common/config/topic_config.h).
struct LogConfig {
  int64_t segment_bytes = int64_t{1} << 30;
  Duration segment_age = Duration::Seconds(7 * 24 * 3600);
  int64_t index_interval_bytes = 4096;
  // Absent: kept for ever, without a limit.
  std::optional<Duration> retention_age;
  std::optional<int64_t> retention_bytes;
};

struct AppendResult {
  // Of the first record, and after the last.
  Offset base_offset;
  Offset next_offset;
  // The batch was in the log already, at these offsets; nothing was appended.
  bool duplicate = false;
};

struct LogRead {
  // Whole batches; empty if there is none to give. The first may begin below the offset asked for.
  Buffer batches;
  // Where the next read goes on.
  Offset next_offset;
};

// The log of one partition: a chain of segments, and what follows from them.
//
// Threads: one thread owns it (architecture, rule 4); only LogSync::Run runs elsewhere. Every other
// call may block for the disk; truncation, reset, retention and Checkpoint also sync.
//
// Offsets: log_start <= durable <= log_end. The log may start within a segment, and within a batch:
// what lies below is not read any more, but for the rest of that batch. The high watermark is the
// caller's; the log never moves by it.
//
// Errors: STORAGE_ERROR for the disk. A DamageError (LogDamage) where records that were there
// cannot be read. A failed append has appended nothing of its segment, and may be tried again, when
// there is room. After a failed sync the log takes no more appends, truncations or syncs.
class PartitionLog {
 public:
  struct OpenOptions {
    LogConfig config;
    // What was stored last for this log in `recovery-points`; 0 for a new one.
    Offset recovery_point;
    // The clean-stop marker was there and names the epoch last registered.
    bool clean_stop = false;
    // See LoadOptions.
    std::string give_up_to;
    std::function<void(const RecoveryProgress&)> progress;
    // For what this process appends as leader; see LogTail. Outlives the log; nullptr: none is
    // kept.
    TailBudget* tail_budget = nullptr;
  };

  // Opens the log in `directory`, making it if it is not there. `fs` outlives it.
  //
  // Damage below the recovery point: a DamageError, and nothing was cut. To give up what is
  // missing, open again with recovery_point = first_missing, clean_stop = false, and give_up_to:
  // what follows a gap is moved there, but for a gap at the log's start. Take the replica out of
  // the ISR first.
  static absl::StatusOr<std::unique_ptr<PartitionLog>> Open(FileSystem& fs, std::string directory,
                                                            OpenOptions options);

  const std::string& directory() const { return directory_; }
  // What a full disk kept from being carried out counts as done: a cut, or a reset.
  Offset log_start() const { return unfinished_reset_ ? unfinished_reset_->to : log_start_; }
  // Where the batch begins within which the log starts; log_start() where there is no such batch,
  // or its header cannot be read. May block for the disk.
  Offset first_batch() const;
  Offset log_end() const {
    if (unfinished_reset_) return unfinished_reset_->to;
    return unfinished_cut_.value_or(segments_.back()->next_offset());
  }
  // Below it everything is synced. Also what to store in `recovery-points`, after Checkpoint.
  Offset durable_offset() const { return durable_; }
  // Of the last record, also of one that retention took; -1: there was none, or none is known of.
  LeaderEpoch last_epoch() const;
  const EpochCache& epochs() const { return derived_->epochs(); }
  const ProducerState& producers() const { return derived_->producers(); }
  uint64_t size_bytes() const;
  size_t segment_count() const { return segments_.size(); }
  // What recovery cut at Open.
  uint64_t recovered_bytes_cut() const { return bytes_cut_; }
  // Records that cannot be read, which a process before came upon, and which this one, when it
  // opened the log, could not read either.
  const std::optional<LogDamage>& known_damage() const { return known_damage_; }
  // A read came upon damage at `at`: the next process is to look there.
  absl::Status RememberDamage(Offset at);
  // A failed sync; OK else.
  const absl::Status& failure() const { return failure_; }

  void SetConfig(const LogConfig& config) { config_ = config; }

  // --- Append ---

  // What the batch is to its producer (KIP-98). Before the minimum ISR is looked at: a duplicate is
  // answered, whatever the ISR.
  Classification Classify(const BatchHeader& header) const { return producers().Classify(header); }

  // As leader in `epoch`, at the log's end. `batch` passed CheckProduced, which gave `header`. Base
  // offset and leader epoch are set, the rest is stored as sent. Refused: FENCED_LEADER_EPOCH if
  // the log has a later epoch; what Classify refuses. A duplicate is answered with its offsets.
  absl::StatusOr<AppendResult> AppendAsLeader(const Buffer& batch, const BatchHeader& header,
                                              LeaderEpoch epoch, WallTime now);

  // As follower: batches as the leader has them, which passed CheckBatchRun, which gave `batches`.
  // The first begins at log_end, each follows the one before, epochs do not fall; CORRUPT_MESSAGE
  // otherwise, and nothing is appended. Where the disk fails midway, log_end tells how far it came.
  absl::Status AppendAsFollower(const Buffer& run, std::span<const PlacedBatch> batches,
                                WallTime now);

  // --- Read ---

  // From the batch that holds `from`, below `limit` (the high watermark for consumers, the log's
  // end for followers), `max_bytes` at most, but one whole batch at least. CRCs have been checked.
  // OFFSET_OUT_OF_RANGE outside [log_start, log_end]. Empty at `limit`.
  absl::StatusOr<LogRead> Read(Offset from, size_t max_bytes, Offset limit);

  // The first record below `limit` with a timestamp of `timestamp_ms` or later; nullopt if none.
  absl::StatusOr<std::optional<TimestampedOffset>> FindTimestamp(int64_t timestamp_ms,
                                                                 Offset limit);

  // The greatest epoch that is at most the one asked for, and where it ends (KIP-101, 279); epoch
  // -1 if there is none, with the log's start or the first epoch's.
  EpochEnd EndOfEpoch(LeaderEpoch epoch) const;

  // --- Truncate ---

  // Cuts everything at `offset` and later; a batch that `offset` is within goes as a whole. Nothing
  // if the log ends there. An empty log at 0 where `offset` lies below the log's start: what was
  // removed here differed already, which an unclean election alone can bring about. Lowers
  // durable_offset() to the new end if it was beyond. A caller that acknowledges positions does so
  // only once the cut is synced: until then NeedsSync() is true.
  absl::Status TruncateTo(Offset offset);

  // Drops everything; the log starts and ends at `offset`: for a follower whose log ends before the
  // leader's begins. Durable when it returns. `producers`: what the leader remembers of those whose
  // batches its log no longer has. Where there is no room for it, it is finished before anything
  // else is done: until then the log takes nothing.
  absl::Status ResetTo(Offset offset, const ProducerState::Producers& producers);

  // The log starts at `offset`, or at durable_offset() if that is less, unless it starts later
  // already; durable when it returns. Whole segments below go, the newest too, which is rolled
  // first; none goes while a sync is in flight: ask again.
  absl::Status RemoveBefore(Offset offset);

  // Removes segments, oldest first, that are too old or beyond the size kept, and end at
  // `high_watermark` or before. The newest is rolled first if it is due, too. True if any went;
  // none goes while a sync is in flight.
  //
  // A segment is as old as its greatest timestamp says, where that can be true. One that is ahead
  // of `now`, or so small that it must be in seconds, counts as the time at which the segment was
  // last written: it would keep the segment for years, or remove it at once.
  absl::StatusOr<bool> ApplyRetention(WallTime now, Offset high_watermark);

  // Starts a new segment if the newest one has reached segment.ms. Called now and then, so that the
  // segment of an idle partition ages, too.
  absl::Status RollIfAged(WallTime now);

  // --- Durability ---

  // Whether something was appended, cut or renamed since the last sync began, or is yet to be cut.
  bool NeedsSync() const {
    return !dirty_.empty() || directory_dirty_ || unfinished_cut_ || unfinished_reset_;
  }
  bool SyncInFlight() const { return sync_in_flight_; }

  // Takes all that needs syncing. One at a time: SyncInFlight() is false.
  absl::StatusOr<LogSync> BeginSync();

  // With what Run returned. Moves durable_offset() to what the sync covers, unless the log was
  // truncated meanwhile: then its files need syncing again. An error fails the log, and is
  // returned.
  absl::Status FinishSync(const LogSync& sync, const absl::Status& result);

  // All of the above at once, on this thread.
  absl::Status SyncNow();

  // Before durable_offset() is stored as recovery point: writes epochs, and producers once a
  // segment, for which it may sync.
  absl::Status Checkpoint();
  // Once it has been stored, durably: what lowered it before is not needed any more.
  absl::Status RecoveryPointStored(Offset recovery_point);

  // Gives back the room on the disk that was set aside for records to come.
  void ReleaseReserved() { active().ReleaseReserved(); }
  // The same if none have come since the last call.
  void ReleaseReservedIfIdle();

  // Writes indexes, epochs and producers, and syncs: all of the log's part of a clean stop. No sync
  // is in flight. Nothing may be called afterwards but the getters.
  absl::Status Close();

 private:
  PartitionLog(FileSystem& fs, std::string directory, LogConfig config, TailBudget* tail_budget)
      : fs_(fs), directory_(std::move(directory)), config_(config), tail_(tail_budget) {}

  void FindKnownDamage();
  Segment& active() { return *segments_.back(); }
  size_t SegmentIndexOf(Offset offset) const;
  absl::Status RollFor(const BatchHeader& header, size_t bytes, WallTime now);
  bool IsActiveAged(WallTime now) const;
  absl::Status Roll();
  absl::Status AppendToActive(const Buffer& bytes, std::span<const BatchHeader> headers,
                              WallTime now);
  absl::Status CheckFollows(std::span<const PlacedBatch> batches) const;
  // With `with_indexes` the index files, too.
  void MarkDirty(Offset segment_base, bool with_indexes);
  // OK if the log may be changed; finishes a truncation that the disk interrupted.
  absl::Status Ready();
  absl::Status Cut(Offset offset);
  absl::Status RemoveOldest(size_t count);
  bool IsTooOld(const Segment& segment, WallTime now) const;
  absl::Status ReplayProducers();
  absl::Status StoreDerived();
  absl::Status SyncInPassing();

  FileSystem& fs_;
  const std::string directory_;
  LogConfig config_;
  std::vector<std::unique_ptr<Segment>> segments_;
  std::unique_ptr<DerivedState> derived_;
  LogTail tail_;
  // Within the first segment, or at its end if that is the only one.
  Offset log_start_;
  Offset durable_;
  uint64_t bytes_cut_ = 0;
  std::vector<Offset> damaged_at_;
  std::optional<LogDamage> known_damage_;
  // Segments that need syncing, and whether their indexes do.
  std::map<Offset, bool> dirty_;
  bool directory_dirty_ = false;
  bool sync_in_flight_ = false;
  // Raised by each truncation.
  uint64_t generation_ = 0;
  // The recovery point of the next start is held down by the file truncated-to.
  bool truncation_announced_ = false;
  // Of ReleaseReservedIfIdle.
  Offset end_at_last_look_;
  // A truncation that has begun and failed on the way; to be finished before anything else.
  std::optional<Offset> unfinished_cut_;
  struct Reset {
    Offset to;
    ProducerState::Producers producers;
  };
  // A reset that found no room on the way.
  std::optional<Reset> unfinished_reset_;
  bool replay_producers_ = false;
  // The wall clock at the first append to the newest segment, where this process made it. Not the
  // records' timestamps: a producer of old data would start a segment a batch.
  std::optional<WallTime> active_since_;
  absl::Status failure_;
};

}  // namespace conclave

#endif  // CONCLAVE_BROKER_LOG_PARTITION_LOG_H_
