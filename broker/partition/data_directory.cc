#include "broker/partition/data_directory.h"

#include <glog/logging.h>

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "broker/log/clean_stop.h"
#include "common/error/error.h"

namespace conclave::broker {
namespace {

constexpr char kNew[] = "new";
constexpr char kDeleted[] = "deleted";
constexpr char kDamaged[] = "damaged";
constexpr char kStray[] = "stray";

const char* FolderOf(DataDirectory::Aside where) {
  switch (where) {
    case DataDirectory::Aside::kDeleted:
      return kDeleted;
    case DataDirectory::Aside::kDamaged:
      return kDamaged;
    case DataDirectory::Aside::kStray:
      return kStray;
  }
  return kStray;
}

// "<topic id>-<partition>", with ".<copy>" behind it where there were more.
std::optional<PartitionId> ParseAsideName(const std::string& name) {
  const std::string whole = name.substr(0, name.find('.'));
  const size_t dash = whole.rfind('-');
  if (dash == std::string::npos) return std::nullopt;
  const auto topic = TopicId::Parse(whole.substr(0, dash));
  int32_t index = 0;
  if (!topic || !absl::SimpleAtoi(whole.substr(dash + 1), &index)) return std::nullopt;
  return PartitionId{*topic, PartitionIndex(index)};
}

// What is gone already is no error: that is what is wanted.
absl::Status RemoveTree(FileSystem& fs, const std::string& path) {
  const auto entries = fs.List(path);
  if (absl::IsNotFound(entries.status())) return absl::OkStatus();
  if (!entries.ok()) return entries.status();
  for (const DirectoryEntry& entry : *entries) {
    const std::string inner = JoinPath(path, entry.name);
    const absl::Status removed = entry.is_directory ? RemoveTree(fs, inner) : fs.RemoveFile(inner);
    if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
  }
  const absl::Status removed = fs.RemoveDirectory(path);
  return absl::IsNotFound(removed) ? absl::OkStatus() : removed;
}

absl::Status MakeFolder(FileSystem& fs, const std::string& path) {
  const auto exists = fs.Exists(path);
  if (!exists.ok()) return exists.status();
  if (*exists) return absl::OkStatus();
  if (absl::Status made = fs.CreateDirectory(path); !made.ok()) return made;
  return fs.SyncDirectory(ParentPath(path));
}

// What is damaged is not known: the safe values are the least.
OffsetCheckpoint::Offsets ReadOrNothing(FileSystem& fs, const std::string& path, const char* name) {
  auto offsets = OffsetCheckpoint(fs, path, name).Read();
  if (offsets.ok()) return *std::move(offsets);
  LOG(ERROR) << "every log is scanned from its start, for " << JoinPath(path, name)
             << " cannot be read: " << Describe(offsets.status());
  return {};
}

}  // namespace

DataDirectory::DataDirectory(FileSystem& fs, std::string path) : fs_(fs), path_(std::move(path)) {}

absl::StatusOr<std::unique_ptr<DataDirectory>> DataDirectory::Open(FileSystem& fs,
                                                                   std::string path) {
  std::unique_ptr<DataDirectory> directory(new DataDirectory(fs, std::move(path)));
  auto clean = TakeCleanStop(fs, directory->path_);
  if (!clean.ok()) return clean.status();
  directory->clean_stop_ = *clean;
  directory->recovery_points_ = ReadOrNothing(fs, directory->path_, kRecoveryPointsFile);
  directory->high_watermarks_ = ReadOrNothing(fs, directory->path_, kHighWatermarksFile);
  for (const char* folder : {kNew, kDeleted, kDamaged, kStray}) {
    absl::Status made = MakeFolder(fs, JoinPath(directory->path_, folder));
    if (!made.ok()) return made;
  }
  if (absl::Status scanned = directory->Scan(); !scanned.ok()) return scanned;
  return directory;
}

absl::Status DataDirectory::Scan() {
  const auto unfinished = fs_.List(JoinPath(path_, kNew));
  if (!unfinished.ok()) return unfinished.status();
  for (const DirectoryEntry& entry : *unfinished) {
    const std::string path = JoinPath(JoinPath(path_, kNew), entry.name);
    const absl::Status removed = entry.is_directory ? RemoveTree(fs_, path) : fs_.RemoveFile(path);
    if (!removed.ok()) return removed;
  }
  const auto entries = fs_.List(path_);
  if (!entries.ok()) return entries.status();
  for (const DirectoryEntry& entry : *entries) {
    if (!entry.is_directory || entry.name == kNew || entry.name == kDeleted ||
        entry.name == kDamaged || entry.name == kStray || entry.name == "lost+found") {
      continue;
    }
    const std::string directory = JoinPath(path_, entry.name);
    auto identity = ReadPartitionFile(fs_, directory);
    if (!identity.ok()) {
      return MakeError(
          v1::STORAGE_ERROR,
          absl::StrCat(directory, " is no partition's directory, for its ", kPartitionFile,
                       " is missing or damaged (", Describe(identity.status()),
                       "); move it out of the data directory if it is not Conclave's, else bring "
                       "the file back from a copy"));
    }
    if (PartitionDirectoryName(identity->topic, identity->partition) != entry.name) {
      return MakeError(v1::STORAGE_ERROR,
                       absl::StrCat(directory, " holds partition ", identity->partition.value(),
                                    " of topic \"", identity->topic, "\" according to its ",
                                    kPartitionFile, "; give it back its name, or move it away"));
    }
    found_.push_back({directory, *std::move(identity)});
  }
  return absl::OkStatus();
}

Offset DataDirectory::RecoveryPointOf(const PartitionId& id) const {
  const auto offset = [&id](const OffsetCheckpoint::Offsets& offsets) {
    const auto it = offsets.find({id.topic, id.index});
    return it == offsets.end() ? Offset(0) : it->second;
  };
  // High watermarks are stored more often, and as far as they are durable.
  return std::max(offset(recovery_points_), offset(high_watermarks_));
}

absl::StatusOr<std::string> DataDirectory::Create(const PartitionIdentity& identity) {
  const std::string beside =
      JoinPath(JoinPath(path_, kNew), ToString(PartitionId{identity.topic_id, identity.partition}));
  const auto left_over = fs_.Exists(beside);
  if (!left_over.ok()) return left_over.status();
  if (*left_over) {
    if (absl::Status removed = RemoveTree(fs_, beside); !removed.ok()) return removed;
  }
  if (absl::Status made = fs_.CreateDirectory(beside); !made.ok()) return made;
  if (absl::Status named = WritePartitionFile(fs_, beside, identity); !named.ok()) return named;
  const std::string directory =
      JoinPath(path_, PartitionDirectoryName(identity.topic, identity.partition));
  const auto occupied = fs_.Exists(directory);
  if (!occupied.ok()) return occupied.status();
  if (*occupied) {
    // Made before, when its log could not be.
    const auto there = ReadPartitionFile(fs_, directory);
    if (there.ok() && *there == identity) {
      if (absl::Status removed = RemoveTree(fs_, beside); !removed.ok()) return removed;
      return directory;
    }
    return MakeError(v1::STORAGE_ERROR,
                     absl::StrCat(directory, " is there already, and is not known; move it away"));
  }
  if (absl::Status renamed = fs_.Rename(beside, directory); !renamed.ok()) return renamed;
  if (absl::Status synced = fs_.SyncDirectory(path_); !synced.ok()) return synced;
  return directory;
}

absl::StatusOr<std::string> DataDirectory::SetAside(const std::string& directory,
                                                    const PartitionId& id, Aside where) {
  const std::string folder = JoinPath(path_, FolderOf(where));
  std::string to = JoinPath(folder, ToString(id));
  for (int copy = 2;; ++copy) {
    const auto occupied = fs_.Exists(to);
    if (!occupied.ok()) return occupied.status();
    if (!*occupied) break;
    to = JoinPath(folder, absl::StrCat(ToString(id), ".", copy));
  }
  if (absl::Status renamed = fs_.Rename(directory, to); !renamed.ok()) return renamed;
  for (const std::string& parent : {folder, path_}) {
    if (absl::Status synced = fs_.SyncDirectory(parent); !synced.ok()) return synced;
  }
  return to;
}

std::string DataDirectory::GivenUpPath(const PartitionId& id) const {
  for (int copy = 1;; ++copy) {
    // No name that ListAside takes for a log that goes once it is healed.
    std::string path =
        JoinPath(JoinPath(path_, kDamaged), absl::StrCat("given-up.", ToString(id), ".", copy));
    const auto occupied = fs_.Exists(path);
    // Whoever moves something there finds out about an error.
    if (!occupied.ok() || !*occupied) return path;
  }
}

absl::StatusOr<std::vector<DataDirectory::AsideLog>> DataDirectory::ListAside(Aside where) const {
  const auto entries = fs_.List(JoinPath(path_, FolderOf(where)));
  if (!entries.ok()) return entries.status();
  std::vector<AsideLog> logs;
  for (const DirectoryEntry& entry : *entries) {
    if (const auto id = ParseAsideName(entry.name)) logs.push_back({entry.name, *id});
  }
  return logs;
}

absl::Status DataDirectory::RemoveAside(Aside where, const std::string& name) const {
  return RemoveTree(fs_, JoinPath(JoinPath(path_, FolderOf(where)), name));
}

absl::Status DataDirectory::WriteRecoveryPoints(const OffsetCheckpoint::Offsets& offsets) const {
  return OffsetCheckpoint(fs_, path_, kRecoveryPointsFile).Write(offsets);
}

absl::Status DataDirectory::WriteHighWatermarks(const OffsetCheckpoint::Offsets& offsets) const {
  return OffsetCheckpoint(fs_, path_, kHighWatermarksFile).Write(offsets);
}

absl::Status DataDirectory::WriteCleanStop(BrokerEpoch epoch) const {
  return conclave::WriteCleanStop(fs_, path_, epoch);
}

}  // namespace conclave::broker
