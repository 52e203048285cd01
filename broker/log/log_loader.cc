#include "broker/log/log_loader.h"

#include <glog/logging.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/log/log_damage.h"
#include "broker/log/producer_json.h"
#include "broker/log/sealed_json.h"
#include "common/error/error.h"

namespace conclave {
namespace {

constexpr int kVersion = 1;
constexpr size_t kCopyBytes = size_t{1} << 20;

absl::Status Announce(FileSystem& fs, const std::string& path, Offset offset) {
  return WriteSealedJson(fs, path, kVersion, {{"offset", offset.value()}});
}

// nullopt if there is no such announcement.
absl::StatusOr<std::optional<Offset>> Announced(FileSystem& fs, const std::string& path) {
  const auto json = ReadSealedJson(fs, path, kVersion);
  if (absl::IsNotFound(json.status())) return std::nullopt;
  if (!json.ok()) return json.status();
  const auto offset = json->find("offset");
  if (offset == json->end() || !offset->is_number_integer()) {
    return BadSealedJson(path, "offset is missing");
  }
  return Offset(offset->get<int64_t>());
}

absl::StatusOr<ProducerState::Producers> ProducersOfReset(FileSystem& fs, const std::string& path) {
  const auto json = ReadSealedJson(fs, path, kVersion);
  if (!json.ok()) return json.status();
  const auto producers = json->find("producers");
  if (producers == json->end()) return ProducerState::Producers();
  try {
    return ProducersFromJson(*producers);
  } catch (const nlohmann::json::exception& e) {
    return BadSealedJson(path, e.what());
  }
}

absl::StatusOr<std::set<Offset>> SegmentBases(FileSystem& fs, const std::string& directory) {
  const auto entries = fs.List(directory);
  if (!entries.ok()) return entries.status();
  std::set<Offset> bases;
  for (const DirectoryEntry& entry : *entries) {
    const auto base = ParseSegmentName(entry.name);
    if (base && !entry.is_directory) bases.insert(*base);
  }
  return bases;
}

absl::Status RemoveSegmentFiles(FileSystem& fs, const std::string& directory, Offset base) {
  for (const char* suffix : {".log", ".index", ".timeindex"}) {
    const absl::Status status = fs.RemoveFile(SegmentPath(directory, base, suffix));
    if (!status.ok() && !absl::IsNotFound(status)) return status;
  }
  return absl::OkStatus();
}

class Loader {
 public:
  Loader(FileSystem& fs, const std::string& directory, const LoadOptions& options)
      : fs_(fs), directory_(directory), options_(options) {}

  absl::StatusOr<LoadedLog> Load();

 private:
  absl::Status Unreadable(const char* file, const absl::Status& status) const;
  absl::StatusOr<std::optional<Offset>> ReadAnnouncement(const char* file);
  absl::Status ReadAnnouncements();
  // Holds the first segment against the stored log start.
  absl::Status CheckStart();
  absl::Status BeginAt(Offset start);
  absl::Status OpenAll();
  // Opens the segment at `base`; `next` is the base of the one behind it.
  absl::Status OpenOne(Offset base, std::optional<Offset> next);
  absl::Status Recover(Segment& segment, Offset known_durable, Offset end_missing);
  // Whether the segment at `base` may hold something past the recovery point.
  bool NeedsScan(std::optional<Offset> next) const {
    return !options_.clean_stop && (!next || *next > recovery_point_);
  }
  bool gives_up() const { return !options_.give_up_to.empty(); }
  absl::Status DropFrom(std::set<Offset>::const_iterator first);
  absl::Status GiveUp(Offset base);
  absl::Status GiveUpTail(const Segment& segment, uint64_t from);
  absl::Status LoadDerived();
  void Report(uint64_t bytes);

  FileSystem& fs_;
  const std::string& directory_;
  const LoadOptions& options_;
  Offset recovery_point_;
  std::set<Offset> bases_;
  LoadedLog log_;
  uint64_t bytes_total_ = 0;
  uint64_t bytes_before_ = 0;
};

// Of a file that cannot be read nothing is guessed: it says which records count.
absl::Status Loader::Unreadable(const char* file, const absl::Status& status) const {
  if (ErrorCodeOf(status) != v1::STORAGE_ERROR) return status;
  return DamageError({JoinPath(directory_, file), 0, Offset(0),
                      std::max(recovery_point_, Offset(1)), std::string(status.message())});
}

absl::StatusOr<std::optional<Offset>> Loader::ReadAnnouncement(const char* file) {
  auto announced = Announced(fs_, JoinPath(directory_, file));
  if (announced.ok()) return announced;
  if (gives_up() && ErrorCodeOf(announced.status()) == v1::STORAGE_ERROR) {
    LOG(WARNING) << "goes on without what it said: " << Describe(announced.status());
    return std::nullopt;
  }
  return Unreadable(file, announced.status());
}

absl::Status Loader::ReadAnnouncements() {
  recovery_point_ = options_.recovery_point;
  const auto reset = ReadAnnouncement(kLogResetFile);
  if (!reset.ok()) return reset.status();
  if (*reset) {
    recovery_point_ = **reset;
    const auto producers = ProducersOfReset(fs_, JoinPath(directory_, kLogResetFile));
    if (!producers.ok()) return Unreadable(kLogResetFile, producers.status());
    const auto done =
        CarryOutReset(fs_, directory_, **reset, options_.index_interval_bytes, *producers);
    if (!done.ok()) return done.status();
  }
  const auto truncated = ReadAnnouncement(kTruncatedToFile);
  if (!truncated.ok()) return truncated.status();
  if (*truncated) recovery_point_ = std::min(recovery_point_, **truncated);
  return absl::OkStatus();
}

void Loader::Report(uint64_t bytes) {
  if (options_.progress) {
    options_.progress({directory_, bytes_before_ + bytes, bytes_total_});
  }
}

absl::Status Loader::Recover(Segment& segment, Offset known_durable, Offset end_missing) {
  const LeaderEpoch epoch =
      log_.segments.empty() ? LeaderEpoch(-1) : log_.segments.back()->last_epoch();
  const uint64_t size = segment.size_bytes();
  const auto cut = segment.Recover(
      known_durable, end_missing, epoch, [this](uint64_t bytes) { Report(bytes); },
      [this, &segment](uint64_t from) {
        return gives_up() ? GiveUpTail(segment, from) : absl::OkStatus();
      });
  bytes_before_ += size;
  Report(0);
  if (!cut.ok()) return cut.status();
  log_.bytes_cut += *cut;
  return absl::OkStatus();
}

absl::Status Loader::OpenOne(Offset base, std::optional<Offset> next) {
  auto segment = NeedsScan(next)
                     ? Segment::OpenToRecover(fs_, directory_, base, options_.index_interval_bytes)
                     : Segment::Open(fs_, directory_, base, options_.index_interval_bytes);
  if (!segment.ok()) return segment.status();
  const Offset end_missing = std::max(next.value_or(recovery_point_), recovery_point_);
  const Offset known_durable = std::min(recovery_point_, next.value_or(recovery_point_));
  // Where the next one begins at the end of its last good batch, nothing is missing: what comes
  // between them is of no batch.
  const bool may_be_cut = !next || *next > recovery_point_ || (*segment)->next_offset() >= *next;
  if (!(*segment)->sound() && may_be_cut) {
    const absl::Status recovered = Recover(**segment, known_durable, end_missing);
    if (!recovered.ok()) return recovered;
  } else if (!(*segment)->sound()) {
    return DamageError({(*segment)->path(), (*segment)->size_bytes(), (*segment)->next_offset(),
                        *next, (*segment)->unsound_reason()});
  }
  // An empty segment tells no epoch; the one before it does.
  log_.segments.push_back(*std::move(segment));
  return absl::OkStatus();
}

absl::Status Loader::GiveUp(Offset base) {
  if (absl::Status made = CreateDirectories(fs_, options_.give_up_to); !made.ok()) return made;
  for (const char* suffix : {".log", ".index", ".timeindex"}) {
    const absl::Status moved = fs_.Rename(SegmentPath(directory_, base, suffix),
                                          SegmentPath(options_.give_up_to, base, suffix));
    if (!moved.ok() && !absl::IsNotFound(moved)) return moved;
  }
  return fs_.SyncDirectory(options_.give_up_to);
}

absl::Status Loader::GiveUpTail(const Segment& segment, uint64_t from) {
  if (absl::Status made = CreateDirectories(fs_, options_.give_up_to); !made.ok()) return made;
  const std::string to = absl::StrCat(
      SegmentPath(options_.give_up_to, segment.base_offset(), ".log"), ".from-byte-", from);
  const auto source = fs_.Open(segment.path(), FileSystem::OpenMode::kReadOnly);
  if (!source.ok()) return source.status();
  const auto copy = fs_.Open(to, FileSystem::OpenMode::kCreateNew);
  if (!copy.ok()) return copy.status();
  for (uint64_t at = from; at < (*source)->size();) {
    auto bytes = (*source)->ReadAt(at, kCopyBytes);
    if (!bytes.ok()) return bytes.status();
    if (bytes->empty()) break;
    at += bytes->size();
    const absl::Status appended = (*copy)->Append(Buffer(*std::move(bytes)));
    if (!appended.ok()) return appended;
  }
  if (absl::Status synced = (*copy)->Sync(); !synced.ok()) return synced;
  return fs_.SyncDirectory(options_.give_up_to);
}

absl::Status Loader::DropFrom(std::set<Offset>::const_iterator first) {
  for (auto it = bases_.cend(); it != first;) {
    --it;
    LOG(WARNING) << SegmentPath(directory_, *it, ".log")
                 << (gives_up() ? " is moved to " + options_.give_up_to + ": it follows a gap"
                                : " is removed: it follows a gap, past what was known to be on "
                                  "disk");
    const auto file =
        fs_.Open(SegmentPath(directory_, *it, ".log"), FileSystem::OpenMode::kReadOnly);
    if (file.ok()) log_.bytes_cut += (*file)->size();
    const absl::Status dropped =
        gives_up() ? GiveUp(*it) : RemoveSegmentFiles(fs_, directory_, *it);
    if (!dropped.ok()) return dropped;
    if (absl::Status status = fs_.SyncDirectory(directory_); !status.ok()) return status;
  }
  bases_.erase(first, bases_.cend());
  return absl::OkStatus();
}

absl::Status Loader::CheckStart() {
  const auto stored = ReadAnnouncement(kLogStartFile);
  if (!stored.ok()) return stored.status();
  const Offset start = stored->value_or(Offset(0));
  if (bases_.empty()) {
    if (start == Offset(0)) return absl::OkStatus();
    if (gives_up()) return BeginAt(start);
    return DamageError(
        {directory_, 0, start, std::max(recovery_point_, start + 1),
         absl::StrCat("it has no segment, and its log began at offset ", start.value())});
  }
  const Offset first = *bases_.begin();
  if (first > start && gives_up()) {
    LOG(WARNING) << directory_ << ": begins at offset " << first << " from now on, and began at "
                 << start << ": what is missing is given up";
    log_.start = first;
    return StoreLogStart(fs_, directory_, first);
  }
  if (first > start) {
    return DamageError(
        {directory_, 0, start, first,
         absl::StrCat("its first segment begins at offset ", first.value(),
                      ", and the log began at ", start.value(), ": the first segment is missing")});
  }
  log_.start = start;
  return absl::OkStatus();
}

absl::Status Loader::BeginAt(Offset start) {
  const auto segment = CarryOutReset(fs_, directory_, start, options_.index_interval_bytes, {});
  if (!segment.ok()) return segment.status();
  bases_.insert(start);
  log_.start = start;
  return absl::OkStatus();
}

absl::Status Loader::OpenAll() {
  for (auto it = bases_.cbegin(); it != bases_.cend();) {
    const auto after = std::next(it);
    const auto next = after == bases_.cend() ? std::nullopt : std::optional<Offset>(*after);
    if (absl::Status status = OpenOne(*it, next); !status.ok()) return status;
    const Offset end = log_.segments.back()->next_offset();
    if (next && end != *next) {
      if (end < recovery_point_) {
        return DamageError({directory_, 0, end, std::max(*next, end + 1),
                            absl::StrCat(log_.segments.back()->path(), " ends at offset ",
                                         end.value(), " and the next segment begins at ",
                                         next->value(), ": a segment is missing, or cut")});
      }
      if (absl::Status status = DropFrom(after); !status.ok()) return status;
    }
    it = std::next(it);
  }
  const Offset end = log_.segments.back()->next_offset();
  if (end < recovery_point_) {
    return DamageError({directory_, 0, end, recovery_point_,
                        absl::StrCat("the log ends at offset ", end.value(), ", and up to ",
                                     recovery_point_.value(), " it was known to be on disk")});
  }
  return absl::OkStatus();
}

absl::Status Loader::LoadDerived() {
  const Offset start = log_.segments.front()->base_offset();
  const Offset end = log_.segments.back()->next_offset();
  log_.derived = std::make_unique<DerivedState>(fs_, directory_);
  if (absl::Status status = log_.derived->Load(start, end); !status.ok()) return status;
  const Offset from = log_.derived->incomplete_from();
  for (const auto& segment : log_.segments) {
    if (segment->next_offset() <= from) continue;
    absl::Status status =
        segment->VisitHeaders(std::max(from, segment->base_offset()),
                              [this](const BatchHeader& header) { log_.derived->Note(header); });
    if (!status.ok()) return status;
  }
  log_.derived->FinishLoad(log_.start);
  return absl::OkStatus();
}

absl::StatusOr<LoadedLog> Loader::Load() {
  if (absl::Status status = CreateDirectories(fs_, directory_); !status.ok()) return status;
  if (absl::Status status = ReadAnnouncements(); !status.ok()) return status;
  auto bases = SegmentBases(fs_, directory_);
  if (!bases.ok()) return bases.status();
  bases_ = *std::move(bases);
  if (absl::Status status = CheckStart(); !status.ok()) return status;
  if (bases_.empty()) {
    if (recovery_point_ > Offset(0) && !gives_up()) {
      return DamageError({directory_, 0, Offset(0), recovery_point_, "it has no segment"});
    }
    auto first = Segment::Create(fs_, directory_, Offset(0), options_.index_interval_bytes);
    if (!first.ok()) return first.status();
    // A later segment whose name alone survives would pass for a log that lost its first one.
    if (absl::Status status = fs_.SyncDirectory(directory_); !status.ok()) return status;
    log_.segments.push_back(*std::move(first));
  } else {
    // The log start may have moved past a recovery point that was stored long ago, and was durable.
    recovery_point_ = std::max(recovery_point_, log_.start);
    for (auto it = bases_.begin(); it != bases_.end(); ++it) {
      const auto after = std::next(it);
      if (!NeedsScan(after == bases_.end() ? std::nullopt : std::optional<Offset>(*after)))
        continue;
      const auto file =
          fs_.Open(SegmentPath(directory_, *it, ".log"), FileSystem::OpenMode::kReadOnly);
      if (!file.ok()) return file.status();
      bytes_total_ += (*file)->size();
    }
    if (absl::Status status = OpenAll(); !status.ok()) return status;
  }
  if (absl::Status status = LoadDerived(); !status.ok()) return status;
  log_.durable = options_.clean_stop && log_.bytes_cut == 0 ? log_.segments.back()->next_offset()
                                                            : recovery_point_;
  return std::move(log_);
}

}  // namespace

absl::StatusOr<LoadedLog> LoadLog(FileSystem& fs, const std::string& directory,
                                  const LoadOptions& options) {
  return Loader(fs, directory, options).Load();
}

absl::Status AnnounceTruncation(FileSystem& fs, const std::string& directory, Offset offset) {
  return Announce(fs, JoinPath(directory, kTruncatedToFile), offset);
}

absl::Status AnnounceReset(FileSystem& fs, const std::string& directory, Offset offset,
                           const ProducerState::Producers& producers) {
  return WriteSealedJson(fs, JoinPath(directory, kLogResetFile), kVersion,
                         {{"offset", offset.value()}, {"producers", ProducersToJson(producers)}});
}

absl::Status StoreLogStart(FileSystem& fs, const std::string& directory, Offset offset) {
  return Announce(fs, JoinPath(directory, kLogStartFile), offset);
}

absl::StatusOr<std::unique_ptr<Segment>> CarryOutReset(FileSystem& fs, const std::string& directory,
                                                       Offset offset, int64_t index_interval_bytes,
                                                       const ProducerState::Producers& producers) {
  const auto bases = SegmentBases(fs, directory);
  if (!bases.ok()) return bases.status();
  for (auto it = bases->rbegin(); it != bases->rend(); ++it) {
    if (absl::Status status = RemoveSegmentFiles(fs, directory, *it); !status.ok()) return status;
  }
  // What the log says of itself belongs to the batches that went.
  DerivedState derived(fs, directory);
  if (absl::Status status = derived.Reset(offset, producers); !status.ok()) return status;
  auto segment = Segment::Create(fs, directory, offset, index_interval_bytes);
  if (!segment.ok()) return segment;
  if (absl::Status status = fs.SyncDirectory(directory); !status.ok()) return status;
  if (absl::Status status = StoreLogStart(fs, directory, offset); !status.ok()) return status;
  const absl::Status removed = fs.RemoveFile(JoinPath(directory, kLogResetFile));
  if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
  if (absl::Status status = fs.SyncDirectory(directory); !status.ok()) return status;
  return segment;
}

}  // namespace conclave
