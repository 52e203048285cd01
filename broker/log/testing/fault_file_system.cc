#include "broker/log/testing/fault_file_system.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"

namespace conclave {
namespace {

absl::Status Failed(const std::string& path, const char* why) {
  return MakeError(v1::STORAGE_ERROR, absl::StrCat(path, ": ", why));
}

class NoLock : public FileLock {};

}  // namespace

class FaultFile : public File {
 public:
  FaultFile(FaultFileSystem& fs, std::string path, std::shared_ptr<FaultFileSystem::Inode> inode)
      : fs_(fs), path_(std::move(path)), inode_(std::move(inode)) {}

  const std::string& path() const override { return path_; }
  uint64_t size() const override { return inode_->now.size(); }

  absl::Status Append(const Buffer& bytes) override {
    if (fs_.disk_full_) return Failed(path_, "no space is left");
    if (fs_.appends_left_ && --*fs_.appends_left_ < 0) {
      return MakeError(v1::OUT_OF_RESOURCES, absl::StrCat("append to ", path_, ": no space left"));
    }
    const std::string content = bytes.ToString();
    const bool alive = !fs_.die_at_ || fs_.operations_ < *fs_.die_at_;
    const absl::Status status = fs_.Operate(path_);
    if (!status.ok()) {
      // The write that the process died in may have got some way.
      if (alive) inode_->now += content.substr(0, fs_.random_.Below(content.size() + 1));
      return status;
    }
    inode_->now += content;
    inode_->last_written = fs_.wall_now_;
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> ReadAt(uint64_t offset, size_t length) const override {
    if (offset >= inode_->now.size()) return std::string();
    return inode_->now.substr(offset, length);
  }

  absl::Status Truncate(uint64_t size) override {
    if (absl::Status status = fs_.Operate(path_); !status.ok()) return status;
    CHECK_LE(size, inode_->now.size());
    inode_->now.resize(size);
    inode_->last_written = fs_.wall_now_;
    return absl::OkStatus();
  }

  absl::Status Rewrite(uint64_t) override { return fs_.Operate(path_); }

  absl::Status Sync() override {
    if (std::exchange(fs_.fail_next_sync_, false)) return Failed(path_, "the sync failed");
    if (absl::Status status = fs_.Operate(path_); !status.ok()) return status;
    ++fs_.syncs_;
    inode_->synced = inode_->now;
    return absl::OkStatus();
  }

  absl::StatusOr<WallTime> LastWritten() const override { return inode_->last_written; }

 private:
  FaultFileSystem& fs_;
  const std::string path_;
  const std::shared_ptr<FaultFileSystem::Inode> inode_;
};

absl::Status FaultFileSystem::Operate(const std::string& path) {
  if (die_at_ && operations_ >= *die_at_) {
    ++operations_;
    return Failed(path, "the process is dead");
  }
  ++operations_;
  return absl::OkStatus();
}

void FaultFileSystem::ChangeNames(const std::string& path, std::function<void(Names&)> change) {
  change(names_);
  pending_.push_back({ParentPath(path), std::move(change)});
}

std::string FaultFileSystem::Survivor(const Inode& inode) {
  const std::string& now = inode.now;
  const std::string& synced = inode.synced;
  if (now == synced) return now;
  switch (random_.Below(4)) {
    case 0:
      return synced;
    case 1:
      return now;
    default:
      break;
  }
  size_t same = 0;
  while (same < now.size() && same < synced.size() && now[same] == synced[same]) ++same;
  // The new bytes up to some point; behind it zeros, nothing, or what was there before.
  const size_t point = same + random_.Below(now.size() - same + 1);
  std::string survivor = now.substr(0, point);
  if (synced.size() > point && random_.Chance(0.7)) return survivor + synced.substr(point);
  if (random_.Chance(0.3)) survivor.resize(point + random_.Below(now.size() - point + 1), '\0');
  return survivor;
}

void FaultFileSystem::Crash() {
  // In order, as a journal has them, or each by itself.
  const bool ordered = random_.Chance(0.5);
  const size_t prefix = random_.Below(pending_.size() + 1);
  for (size_t i = 0; i < pending_.size(); ++i) {
    if (ordered ? i < prefix : random_.Chance(0.5)) pending_[i].apply(synced_names_);
  }
  pending_.clear();
  names_ = synced_names_;
  std::set<Inode*> seen;
  for (const auto& [path, inode] : names_) {
    if (!seen.insert(inode.get()).second) continue;
    inode->now = inode->synced = Survivor(*inode);
  }
  die_at_.reset();
  disk_full_ = fail_next_sync_ = false;
}

void FaultFileSystem::Change(const std::string& path,
                             const std::function<void(std::string&)>& change) {
  Inode& inode = *names_.at(path);
  change(inode.now);
  inode.synced = inode.now;
}

std::string FaultFileSystem::Contents(const std::string& path) const {
  return names_.at(path)->now;
}

void FaultFileSystem::Erase(const std::string& path) {
  CHECK_EQ(names_.erase(path), 1u) << path;
  synced_names_.erase(path);
}

std::vector<std::string> FaultFileSystem::Paths() const {
  std::vector<std::string> paths;
  for (const auto& [path, inode] : names_) paths.push_back(path);
  return paths;
}

absl::Status FaultFileSystem::TakeDescriptor(const std::string& path) {
  if (!opens_left_) return absl::OkStatus();
  if (*opens_left_ == 0) {
    return MakeError(v1::OUT_OF_RESOURCES, absl::StrCat("open ", path, ": too many open files"));
  }
  --*opens_left_;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<File>> FaultFileSystem::Open(const std::string& path,
                                                            OpenMode mode) {
  if (absl::Status status = TakeDescriptor(path); !status.ok()) return status;
  const auto found = names_.find(path);
  const bool there = found != names_.end();
  const bool anew = mode == OpenMode::kCreateNew || mode == OpenMode::kCreateBriefly;
  if (there && anew) return Failed(path, "it is there already");
  if (there) return std::make_unique<FaultFile>(*this, path, found->second);
  if (mode == OpenMode::kReadOnly || mode == OpenMode::kExisting) {
    return absl::NotFoundError(absl::StrCat(path, " is not there"));
  }
  if (absl::Status status = Operate(path); !status.ok()) return status;
  const auto inode = std::make_shared<Inode>();
  ChangeNames(path, [path, inode](Names& names) { names[path] = inode; });
  return std::make_unique<FaultFile>(*this, path, inode);
}

absl::Status FaultFileSystem::CreateDirectory(const std::string& path) {
  directories_.insert(path);
  return absl::OkStatus();
}

absl::Status FaultFileSystem::SyncDirectory(const std::string& path) {
  if (absl::Status status = TakeDescriptor(path); !status.ok()) return status;
  if (absl::Status status = Operate(path); !status.ok()) return status;
  ++syncs_;
  for (const Pending& pending : pending_) {
    if (pending.directory == path) pending.apply(synced_names_);
  }
  std::erase_if(pending_, [&](const Pending& pending) { return pending.directory == path; });
  return absl::OkStatus();
}

absl::Status FaultFileSystem::Rename(const std::string& from, const std::string& to) {
  if (absl::Status status = Operate(from); !status.ok()) return status;
  const auto found = names_.find(from);
  if (found == names_.end()) return absl::NotFoundError(from);
  const auto inode = found->second;
  ChangeNames(to, [from, to, inode](Names& names) {
    names.erase(from);
    names[to] = inode;
  });
  return absl::OkStatus();
}

absl::Status FaultFileSystem::RemoveFile(const std::string& path) {
  if (names_.count(path) == 0) return absl::NotFoundError(path);
  if (absl::Status status = Operate(path); !status.ok()) return status;
  ChangeNames(path, [path](Names& names) { names.erase(path); });
  return absl::OkStatus();
}

absl::Status FaultFileSystem::RemoveDirectory(const std::string& path) {
  directories_.erase(path);
  return absl::OkStatus();
}

absl::StatusOr<bool> FaultFileSystem::Exists(const std::string& path) {
  return names_.count(path) > 0 || directories_.count(path) > 0 || path == "/" || path == ".";
}

absl::StatusOr<std::vector<DirectoryEntry>> FaultFileSystem::List(const std::string& path) {
  std::vector<DirectoryEntry> entries;
  for (const auto& [name, inode] : names_) {
    if (ParentPath(name) != path) continue;
    entries.push_back({name.substr(path.size() + 1), false, inode->now.size()});
  }
  return entries;
}

absl::StatusOr<std::unique_ptr<FileLock>> FaultFileSystem::Lock(const std::string&) {
  return std::make_unique<NoLock>();
}

}  // namespace conclave
