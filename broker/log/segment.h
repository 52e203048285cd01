#ifndef CONCLAVE_BROKER_LOG_SEGMENT_H_
#define CONCLAVE_BROKER_LOG_SEGMENT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/log/batch_scanner.h"
#include "broker/log/index_file.h"
#include "broker/log/log_damage.h"
#include "common/buffer/buffer.h"
#include "common/fs/file_system.h"
#include "common/record/batch_header.h"
#include "common/types/ids.h"
#include "common/types/time.h"

namespace conclave {

inline constexpr size_t kIndexEntryBytes = 8;
inline constexpr size_t kTimeIndexEntryBytes = 12;
// Positions in the index have 31 bits.
inline constexpr int64_t kMaxSegmentBytes = INT32_MAX;

// "dir/00000000000000000042.log" for 42 and ".log".
std::string SegmentPath(const std::string& directory, Offset base, const char* suffix);
// nullopt if the name is no segment's.
std::optional<Offset> ParseSegmentName(const std::string& name);

struct TimestampedOffset {
  Offset offset;
  int64_t timestamp_ms = 0;
  LeaderEpoch leader_epoch;
};

// One file of batches, back to back, and its two indexes, as Kafka lays them out. The indexes are
// hints: what they say is checked against the batches, and they are made anew if it is wrong.
// Thread-compatible; files may be synced on another thread meanwhile.
class Segment {
 public:
  // Makes an empty one. Its name is not durable before the directory is synced.
  static absl::StatusOr<std::unique_ptr<Segment>> Create(FileSystem& fs,
                                                         const std::string& directory, Offset base,
                                                         int64_t index_interval_bytes);

  // Opens one whose contents are trusted: finds its end from the last index entries. If what
  // follows them is no batch, sound() is false afterwards, and only Recover may be called.
  static absl::StatusOr<std::unique_ptr<Segment>> Open(FileSystem& fs, const std::string& directory,
                                                       Offset base, int64_t index_interval_bytes);
  // Opens one of which nothing is trusted: only Recover may be called.
  static absl::StatusOr<std::unique_ptr<Segment>> OpenToRecover(FileSystem& fs,
                                                                const std::string& directory,
                                                                Offset base,
                                                                int64_t index_interval_bytes);

  // Checks every batch, makes the indexes anew, and cuts what follows the longest valid prefix:
  // CRCs hold, offsets follow each other, epochs do not fall below `epoch_before`. Returns how many
  // bytes were cut. If the prefix ends below `recovery_point`, nothing is cut and the error is a
  // DamageError up to `end_missing`. What is past it is written again (File::Rewrite), and durable
  // after a sync to come. `progress` is told of bytes as they have been read, `before_cut` from
  // which byte on something is about to be cut.
  absl::StatusOr<uint64_t> Recover(Offset recovery_point, Offset end_missing,
                                   LeaderEpoch epoch_before,
                                   const std::function<void(uint64_t bytes)>& progress,
                                   const std::function<absl::Status(uint64_t from)>& before_cut);

  Offset base_offset() const { return base_offset_; }
  // The offset after its last batch; base_offset() if there is none.
  Offset next_offset() const { return next_offset_; }
  uint64_t size_bytes() const { return log_->size(); }
  bool empty() const { return log_->size() == 0; }
  // Of all records; nullopt if there are none.
  std::optional<int64_t> max_timestamp_ms() const { return max_timestamp_; }
  // Of the first batch, its greatest; nullopt if there is none.
  std::optional<int64_t> first_timestamp_ms() const { return first_timestamp_; }
  LeaderEpoch last_epoch() const { return last_epoch_; }
  // By the machine's clock (File::LastWritten).
  absl::StatusOr<WallTime> LastWritten() const { return log_->LastWritten(); }
  const std::string& path() const { return log_->path(); }
  bool sound() const { return unsound_.empty(); }
  const std::string& unsound_reason() const { return unsound_; }

  // Whether a batch fits: by position and by relative offset.
  bool HasRoomFor(const BatchHeader& header, size_t bytes) const;

  // Writes batches, back to back in `bytes`, in one piece. The headers are theirs, and follow on.
  absl::Status Append(const Buffer& bytes, std::span<const BatchHeader> headers);

  // Gives back the room on the disk that was set aside for what comes.
  void ReleaseReserved();

  // Whole batches from the one that holds `from` on, of `max_bytes` at most, all of whose records
  // are below `limit`. With `at_least_one` the first may be larger. Their CRCs are checked; a
  // DamageError names the first that fails, unless good batches come before it.
  absl::StatusOr<Buffer> Read(Offset from, size_t max_bytes, Offset limit, bool at_least_one);

  // The first record with a timestamp of `timestamp_ms` or later, at `from` or later and below
  // `limit`. A batch that is malformed inside is passed over, and logged. One that unpacks to more
  // than 32 MiB is not looked into: its first record passes for the one.
  absl::StatusOr<std::optional<TimestampedOffset>> FindTimestamp(int64_t timestamp_ms, Offset from,
                                                                 Offset limit);

  // Cuts the batch that holds `offset` and all later ones.
  absl::Status TruncateTo(Offset offset);

  // Calls `visit` for the header of each batch that ends after `from`.
  absl::Status VisitHeaders(Offset from, const std::function<void(const BatchHeader&)>& visit);

  // Completes and writes the indexes: when the segment gets no more batches, and at a clean stop.
  absl::Status FlushIndexes();

  // Calls `visit` for the header of the batch that holds `offset`, if there is one.
  absl::Status VisitBatchOf(Offset offset, const std::function<void(const BatchHeader&)>& visit);

  // The offset after the last of batches that Read returned; some.
  static Offset EndOf(const Buffer& batches);

  // What a sync must cover. Index files are among them once they hold a closed segment's entries.
  std::vector<std::shared_ptr<File>> Files(bool with_indexes) const;

  // Removes its files, log first. The object is no more to be used.
  absl::Status Remove(FileSystem& fs);

 private:
  Segment(std::string directory, Offset base, int64_t index_interval_bytes)
      : directory_(std::move(directory)),
        base_offset_(base),
        index_interval_bytes_(index_interval_bytes),
        next_offset_(base) {}

  absl::Status OpenFiles(FileSystem& fs, FileSystem::OpenMode log_mode);
  // Finds the end from the indexes; false if they are wrong.
  absl::StatusOr<bool> FindEnd();
  // From the last index entry to the end, noting marks; false if the entry is wrong, one is
  // missing, or what follows is no batch.
  absl::StatusOr<bool> WalkTail();
  absl::Status TakeMarksOfTimeIndex();
  absl::StatusOr<bool> LastTimeEntryHolds();
  absl::Status RebuildIndexes();
  // The same for a segment in use.
  absl::Status RepairIndexes();
  absl::Status ClearIndexes();
  // Before so many bytes are appended.
  void Reserve(size_t bytes);
  // A batch at the end, into indexes and marks.
  void Note(uint64_t position, const BatchHeader& header);
  void NoteMarks(const BatchHeader& header);
  void AppendTimeEntry();

  // Where to look for the batch that holds `offset`: a batch begins there. Makes the indexes anew
  // if the entry turns out wrong.
  absl::StatusOr<uint64_t> Lookup(Offset offset);
  // nullopt: the entry is wrong.
  absl::StatusOr<std::optional<uint64_t>> TryLookup(Offset offset);
  // The first batch that ends after `offset`; nullopt if there is none.
  absl::StatusOr<std::optional<ScannedBatch>> Find(Offset offset);
  // Where to look for the first record of that time or later.
  absl::StatusOr<Offset> LookupTimestamp(int64_t timestamp_ms);
  absl::StatusOr<std::optional<TimestampedOffset>> FindTimestampIn(const ScannedBatch& batch,
                                                                   int64_t timestamp_ms,
                                                                   Offset from, Offset limit);
  absl::Status DamageAt(uint64_t position, Offset first_missing, const std::string& what) const;

  const std::string directory_;
  const Offset base_offset_;
  const int64_t index_interval_bytes_;
  std::shared_ptr<File> log_;
  std::unique_ptr<IndexFile> index_;
  std::unique_ptr<IndexFile> time_index_;

  // Up to where room was asked for on the disk; 0 if nowhere yet.
  uint64_t reserved_end_ = 0;
  Offset next_offset_;
  LeaderEpoch last_epoch_{-1};
  std::optional<int64_t> first_timestamp_;
  std::optional<int64_t> max_timestamp_;
  // The last offset of the first batch that has the greatest timestamp.
  Offset max_timestamp_offset_;
  std::optional<int64_t> last_time_entry_;
  int64_t bytes_since_entry_ = 0;
  std::string unsound_;
};

}  // namespace conclave

#endif  // CONCLAVE_BROKER_LOG_SEGMENT_H_
