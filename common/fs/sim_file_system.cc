#include "common/fs/sim_file_system.h"

#include <glog/logging.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"

namespace conclave {
namespace {

absl::Status IoError(const char* operation, const std::string& path, int error) {
  const std::string text = absl::StrCat(operation, " ", path, ": ", std::strerror(error));
  if (error == ENOENT) return absl::NotFoundError(text);
  return MakeError(error == ENOSPC ? v1::OUT_OF_RESOURCES : v1::STORAGE_ERROR, text);
}

absl::Status Dead(const char* operation, const std::string& path) {
  return MakeError(v1::STORAGE_ERROR,
                   absl::StrCat(operation, " ", path, ": the simulated machine stands still"));
}

std::vector<std::string> PartsOf(const std::string& path) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= path.size();) {
    size_t end = path.find('/', begin);
    if (end == std::string::npos) end = path.size();
    const std::string part = path.substr(begin, end - begin);
    if (!part.empty() && part != ".") parts.push_back(part);
    begin = end + 1;
  }
  return parts;
}

struct Node;
using NodePtr = std::shared_ptr<Node>;
using Names = std::map<std::string, NodePtr>;

// A file or a directory.
struct Node {
  explicit Node(bool is_directory) : is_directory(is_directory) {}

  const bool is_directory;

  // --- Of a directory: what a process sees, and what would survive.
  Names names;
  Names durable_names;

  // --- Of a file: what a process sees, and what a sync has made durable: the first `kept` of those
  // bytes, followed by what was truncated away since the sync.
  std::string bytes;
  size_t kept = 0;
  std::string durable_tail;
  WallTime last_written;
  // What a failed sync has left unwritten, [begin, end): no later sync writes it. Empty: nothing.
  size_t lost_begin = 0;
  size_t lost_end = 0;
  bool locked = false;

  void Truncate(size_t size) {
    if (size < kept) {
      durable_tail = bytes.substr(size, kept - size) + durable_tail;
      kept = size;
    }
    bytes.resize(size);
    lost_end = std::min(lost_end, size);
  }
  bool HasLost() const { return lost_begin < lost_end; }
  void FailSync() {
    lost_begin = HasLost() ? std::min(lost_begin, kept) : kept;
    lost_end = bytes.size();
  }
  void Rewrite(size_t from) { lost_end = std::min(lost_end, from); }
  void Sync() {
    kept = HasLost() ? lost_begin : bytes.size();
    durable_tail.clear();
  }
  void Crash(Random& random, double zero_tails) {
    const bool truncation_survives = durable_tail.empty() || random.Chance(0.5);
    if (!truncation_survives) {
      bytes = bytes.substr(0, kept) + durable_tail;
    } else {
      const size_t unsynced = bytes.size() - kept;
      const size_t survive = random.Below(unsynced + 1);
      bytes.resize(kept + survive);
      if (random.Chance(zero_tails)) bytes.append(random.Below(unsynced - survive + 1), '\0');
    }
    lost_end = 0;
    Sync();
  }
};

// One change of names: all of it survives a crash or none.
struct NameChange {
  struct Setting {
    NodePtr directory;
    std::string name;
    NodePtr node;  // Null: the name is gone.
    NodePtr before;
  };
  std::vector<Setting> settings;

  // Whether `other` can only have happened if this has.
  bool Concerns(const NameChange& other) const {
    for (const Setting& a : settings) {
      for (const Setting& b : other.settings) {
        if (a.directory == b.directory && a.name == b.name) return true;
        if (a.node != nullptr && (a.node == b.node || a.node == b.before)) return true;
      }
    }
    return false;
  }
  bool Touches(const NodePtr& directory) const {
    return std::any_of(settings.begin(), settings.end(),
                       [&](const Setting& s) { return s.directory == directory; });
  }
  void Apply(Names Node::*names) const {
    for (const Setting& s : settings) {
      if (s.node == nullptr) {
        ((*s.directory).*names).erase(s.name);
      } else {
        ((*s.directory).*names)[s.name] = s.node;
      }
    }
  }
};

}  // namespace

class SimFileSystem::Disk {
 public:
  explicit Disk(const Options& options)
      : capacity(options.capacity_bytes), zero_tails(options.zero_tails), clock(options.clock) {}

  // What a path leads to: the directory it is in, its name there, and what is there, if anything.
  struct Place {
    NodePtr directory;
    std::string name;
    NodePtr node;
    int error = 0;  // Why there is no such directory.
  };

  Place Find(const std::string& path) const {
    Place place;
    place.node = root;
    const std::vector<std::string> parts = PartsOf(path);
    for (const std::string& part : parts) {
      if (place.node == nullptr) return {nullptr, "", nullptr, ENOENT};
      if (!place.node->is_directory) return {nullptr, "", nullptr, ENOTDIR};
      place.directory = place.node;
      place.name = part;
      const auto it = place.directory->names.find(part);
      place.node = it == place.directory->names.end() ? nullptr : it->second;
    }
    return place;
  }

  // False if the machine stands still.
  bool Step() {
    if (stopped) return false;
    if (steps_to_stop == 0) {
      stopped = true;
      return false;
    }
    --steps_to_stop;
    ++operations;
    return true;
  }

  void Change(NameChange change) {
    change.Apply(&Node::names);
    pending.push_back(std::move(change));
  }

  WallTime WallNow() const { return clock == nullptr ? WallTime() : clock->WallNow(); }

  bool SyncFails() { return syncs_to_failure > 0 && --syncs_to_failure == 0; }
  bool AppendFails() { return appends_to_failure > 0 && --appends_to_failure == 0; }

  void SyncNames(const NodePtr& directory) {
    std::vector<bool> due(pending.size(), false);
    for (size_t i = pending.size(); i-- > 0;) {
      due[i] = pending[i].Touches(directory);
      for (size_t later = i + 1; later < pending.size() && !due[i]; ++later) {
        due[i] = due[later] && pending[i].Concerns(pending[later]);
      }
    }
    std::vector<NameChange> others;
    for (size_t i = 0; i < pending.size(); ++i) {
      if (due[i]) {
        pending[i].Apply(&Node::durable_names);
      } else {
        others.push_back(std::move(pending[i]));
      }
    }
    pending = std::move(others);
  }

  void Crash(Random& random) {
    std::vector<const NameChange*> lost;
    for (const NameChange& change : pending) {
      const bool possible = std::none_of(lost.begin(), lost.end(), [&](const NameChange* earlier) {
        return earlier->Concerns(change);
      });
      if (possible && random.Chance(0.5)) {
        change.Apply(&Node::durable_names);
      } else {
        lost.push_back(&change);
      }
    }
    pending.clear();
    used = 0;
    CrashBelow(*root, random);
    Revive();
  }

  // Everything that was open is dead, and the machine runs.
  void Revive() {
    ++life;
    stopped = false;
    steps_to_stop = std::numeric_limits<uint64_t>::max();
    syncs_to_failure = 0;
    appends_to_failure = 0;
    for (const auto& weak : locked) {
      if (const NodePtr node = weak.lock()) node->locked = false;
    }
    locked.clear();
  }

  mutable std::mutex mutex;
  const NodePtr root = std::make_shared<Node>(true);
  // Not durable yet, oldest first.
  std::vector<NameChange> pending;
  uint64_t capacity;
  const double zero_tails;
  const Clock* const clock;
  uint64_t used = 0;
  // Raised when what is open dies.
  uint64_t life = 0;
  bool stopped = false;
  uint64_t steps_to_stop = std::numeric_limits<uint64_t>::max();
  uint64_t operations = 0;
  int syncs_to_failure = 0;
  int appends_to_failure = 0;
  std::vector<std::weak_ptr<Node>> locked;

 private:
  void CrashBelow(Node& directory, Random& random) {
    directory.names = directory.durable_names;
    for (auto& [name, node] : directory.names) {
      if (node->is_directory) {
        CrashBelow(*node, random);
      } else {
        node->Crash(random, zero_tails);
        used += node->bytes.size();
      }
    }
  }
};

class SimFileSystem::SimFile : public File {
 public:
  SimFile(std::shared_ptr<Disk> disk, std::string path, NodePtr node, bool writable)
      : disk_(std::move(disk)),
        path_(std::move(path)),
        node_(std::move(node)),
        writable_(writable),
        life_(disk_->life),
        size_(node_->bytes.size()) {}

  const std::string& path() const override { return path_; }
  uint64_t size() const override {
    std::lock_guard lock(disk_->mutex);
    return size_;
  }

  absl::Status Append(const Buffer& bytes) override {
    std::lock_guard lock(disk_->mutex);
    if (Gone() || !disk_->Step()) return Dead("append to", path_);
    if (!writable_) return IoError("append to", path_, EBADF);
    CHECK_EQ(size_, node_->bytes.size()) << path_ << " is written through two open files";
    if (disk_->AppendFails()) return IoError("append to", path_, EIO);
    if (disk_->used + bytes.size() > disk_->capacity) return IoError("append to", path_, ENOSPC);
    for (const Slice& slice : bytes.slices()) node_->bytes.append(slice.data(), slice.size());
    disk_->used += bytes.size();
    size_ = node_->bytes.size();
    node_->last_written = disk_->WallNow();
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> ReadAt(uint64_t offset, size_t length) const override {
    std::lock_guard lock(disk_->mutex);
    if (Gone() || disk_->stopped) return Dead("read", path_);
    if (offset >= node_->bytes.size()) return std::string();
    return node_->bytes.substr(offset, length);
  }

  absl::Status Truncate(uint64_t size) override {
    std::lock_guard lock(disk_->mutex);
    if (Gone() || !disk_->Step()) return Dead("truncate", path_);
    if (!writable_) return IoError("truncate", path_, EINVAL);
    CHECK_EQ(size_, node_->bytes.size()) << path_ << " is written through two open files";
    CHECK_LE(size, size_) << path_ << " would be lengthened";
    disk_->used -= size_ - size;
    node_->Truncate(size);
    size_ = size;
    node_->last_written = disk_->WallNow();
    return absl::OkStatus();
  }

  absl::Status Rewrite(uint64_t from) override {
    std::lock_guard lock(disk_->mutex);
    if (Gone() || !disk_->Step()) return Dead("rewrite", path_);
    if (!writable_) return IoError("rewrite", path_, EBADF);
    node_->Rewrite(from);
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    std::lock_guard lock(disk_->mutex);
    if (Gone() || !disk_->Step()) return Dead("sync", path_);
    if (disk_->SyncFails()) {
      node_->FailSync();
      return IoError("sync", path_, EIO);
    }
    node_->Sync();
    return absl::OkStatus();
  }

  absl::StatusOr<WallTime> LastWritten() const override {
    std::lock_guard lock(disk_->mutex);
    if (Gone() || disk_->stopped) return Dead("stat", path_);
    return node_->last_written;
  }

 private:
  bool Gone() const { return life_ != disk_->life; }

  const std::shared_ptr<Disk> disk_;
  const std::string path_;
  const NodePtr node_;
  const bool writable_;
  const uint64_t life_;
  uint64_t size_;
};

class SimFileSystem::SimLock : public FileLock {
 public:
  SimLock(std::shared_ptr<Disk> disk, NodePtr node)
      : disk_(std::move(disk)), node_(std::move(node)), life_(disk_->life) {}
  ~SimLock() override {
    std::lock_guard lock(disk_->mutex);
    // The next process may hold it by now.
    if (life_ == disk_->life) node_->locked = false;
  }

 private:
  const std::shared_ptr<Disk> disk_;
  const NodePtr node_;
  const uint64_t life_;
};

SimFileSystem::SimFileSystem() : SimFileSystem(Options()) {}
SimFileSystem::SimFileSystem(Options options) : disk_(std::make_shared<Disk>(options)) {}
SimFileSystem::~SimFileSystem() = default;

absl::StatusOr<std::unique_ptr<File>> SimFileSystem::Open(const std::string& path, OpenMode mode) {
  std::lock_guard lock(disk_->mutex);
  if (disk_->stopped) return Dead("open", path);
  Disk::Place place = disk_->Find(path);
  if (place.error != 0) return IoError("open", path, place.error);
  const bool writable = mode != OpenMode::kReadOnly;
  if (place.node == nullptr) {
    if (mode == OpenMode::kReadOnly || mode == OpenMode::kExisting) {
      return IoError("open", path, ENOENT);
    }
    if (!disk_->Step()) return Dead("open", path);
    place.node = std::make_shared<Node>(false);
    disk_->Change({{{place.directory, place.name, place.node, nullptr}}});
  } else if (mode == OpenMode::kCreateNew || mode == OpenMode::kCreateBriefly) {
    return IoError("open", path, EEXIST);
  } else if (place.node->is_directory) {
    return IoError("open", path, EISDIR);
  }
  return std::make_unique<SimFile>(disk_, path, place.node, writable);
}

absl::Status SimFileSystem::CreateDirectory(const std::string& path) {
  std::lock_guard lock(disk_->mutex);
  const Disk::Place place = disk_->Find(path);
  if (place.error != 0) return IoError("make directory", path, place.error);
  if (place.node != nullptr && !place.node->is_directory) {
    return IoError("make directory", path, EEXIST);
  }
  if (disk_->stopped) return Dead("make directory", path);
  if (place.node != nullptr) return absl::OkStatus();
  if (!disk_->Step()) return Dead("make directory", path);
  disk_->Change({{{place.directory, place.name, std::make_shared<Node>(true), nullptr}}});
  return absl::OkStatus();
}

absl::Status SimFileSystem::SyncDirectory(const std::string& path) {
  std::lock_guard lock(disk_->mutex);
  const Disk::Place place = disk_->Find(path);
  if (place.error != 0) return IoError("open directory", path, place.error);
  if (place.node == nullptr) return IoError("open directory", path, ENOENT);
  if (!place.node->is_directory) return IoError("open directory", path, ENOTDIR);
  if (!disk_->Step()) return Dead("sync directory", path);
  if (disk_->SyncFails()) return IoError("sync directory", path, EIO);
  disk_->SyncNames(place.node);
  return absl::OkStatus();
}

absl::Status SimFileSystem::Rename(const std::string& from, const std::string& to) {
  std::lock_guard lock(disk_->mutex);
  const std::string both = absl::StrCat(from, " to ", to);
  const Disk::Place old_place = disk_->Find(from);
  const Disk::Place new_place = disk_->Find(to);
  if (old_place.error != 0) return IoError("rename", both, old_place.error);
  if (old_place.node == nullptr) return IoError("rename", both, ENOENT);
  if (new_place.error != 0) return IoError("rename", both, new_place.error);
  if (old_place.directory == nullptr || new_place.directory == nullptr) {
    return IoError("rename", both, EBUSY);
  }
  if (new_place.node != nullptr && new_place.node != old_place.node) {
    if (!old_place.node->is_directory && new_place.node->is_directory) {
      return IoError("rename", both, EISDIR);
    }
    if (old_place.node->is_directory && !new_place.node->is_directory) {
      return IoError("rename", both, ENOTDIR);
    }
    if (!new_place.node->names.empty()) return IoError("rename", both, ENOTEMPTY);
  }
  const std::vector<std::string> from_parts = PartsOf(from);
  const std::vector<std::string> to_parts = PartsOf(to);
  if (old_place.node->is_directory && to_parts.size() > from_parts.size() &&
      std::equal(from_parts.begin(), from_parts.end(), to_parts.begin())) {
    return IoError("rename", both, EINVAL);
  }
  if (!disk_->Step()) return Dead("rename", both);
  if (new_place.node == old_place.node) return absl::OkStatus();
  if (new_place.node != nullptr) disk_->used -= new_place.node->bytes.size();
  disk_->Change({{{old_place.directory, old_place.name, nullptr, old_place.node},
                  {new_place.directory, new_place.name, old_place.node, new_place.node}}});
  return absl::OkStatus();
}

absl::Status SimFileSystem::RemoveFile(const std::string& path) {
  std::lock_guard lock(disk_->mutex);
  const Disk::Place place = disk_->Find(path);
  if (place.error != 0) return IoError("remove", path, place.error);
  if (place.node == nullptr) return IoError("remove", path, ENOENT);
  if (place.node->is_directory) return IoError("remove", path, EISDIR);
  if (!disk_->Step()) return Dead("remove", path);
  disk_->used -= place.node->bytes.size();
  disk_->Change({{{place.directory, place.name, nullptr, place.node}}});
  return absl::OkStatus();
}

absl::Status SimFileSystem::RemoveDirectory(const std::string& path) {
  std::lock_guard lock(disk_->mutex);
  const Disk::Place place = disk_->Find(path);
  if (place.error != 0) return IoError("remove directory", path, place.error);
  if (place.node == nullptr) return IoError("remove directory", path, ENOENT);
  if (!place.node->is_directory) return IoError("remove directory", path, ENOTDIR);
  if (!place.node->names.empty()) return IoError("remove directory", path, ENOTEMPTY);
  if (place.directory == nullptr) return IoError("remove directory", path, EBUSY);
  if (!disk_->Step()) return Dead("remove directory", path);
  disk_->Change({{{place.directory, place.name, nullptr, place.node}}});
  return absl::OkStatus();
}

absl::StatusOr<bool> SimFileSystem::Exists(const std::string& path) {
  std::lock_guard lock(disk_->mutex);
  if (disk_->stopped) return Dead("stat", path);
  return disk_->Find(path).node != nullptr;
}

absl::StatusOr<uint64_t> SimFileSystem::FreeBytes(const std::string& path) {
  std::lock_guard lock(disk_->mutex);
  if (disk_->stopped) return Dead("statvfs", path);
  return disk_->capacity - std::min(disk_->used, disk_->capacity);
}

absl::StatusOr<std::vector<DirectoryEntry>> SimFileSystem::List(const std::string& path) {
  std::lock_guard lock(disk_->mutex);
  if (disk_->stopped) return Dead("list", path);
  const Disk::Place place = disk_->Find(path);
  if (place.error != 0) return IoError("list", path, place.error);
  if (place.node == nullptr) return IoError("list", path, ENOENT);
  if (!place.node->is_directory) return IoError("list", path, ENOTDIR);
  std::vector<DirectoryEntry> entries;
  for (const auto& [name, node] : place.node->names) {
    entries.push_back({name, node->is_directory, node->bytes.size()});
  }
  return entries;
}

absl::StatusOr<std::unique_ptr<FileLock>> SimFileSystem::Lock(const std::string& path) {
  if (auto made = Open(path, OpenMode::kCreate); !made.ok()) {
    return absl::IsNotFound(made.status()) ? IoError("open lock file", path, ENOENT)
                                           : made.status();
  }
  std::lock_guard lock(disk_->mutex);
  const NodePtr node = disk_->Find(path).node;
  if (node->locked) {
    return MakeError(v1::STORAGE_ERROR,
                     absl::StrCat(path, " is locked: another process uses this directory"));
  }
  node->locked = true;
  disk_->locked.push_back(node);
  return std::make_unique<SimLock>(disk_, node);
}

void SimFileSystem::Crash(Random& random) {
  std::lock_guard lock(disk_->mutex);
  disk_->Crash(random);
}
void SimFileSystem::KillProcess() {
  std::lock_guard lock(disk_->mutex);
  disk_->Revive();
}
void SimFileSystem::FailSync(int nth) {
  std::lock_guard lock(disk_->mutex);
  disk_->syncs_to_failure = nth;
}
void SimFileSystem::FailAppend(int nth) {
  std::lock_guard lock(disk_->mutex);
  disk_->appends_to_failure = nth;
}
void SimFileSystem::SetCapacity(uint64_t bytes) {
  std::lock_guard lock(disk_->mutex);
  disk_->capacity = bytes;
}
void SimFileSystem::Rot(const std::string& path, uint64_t offset, uint8_t flipped_bits) {
  std::lock_guard lock(disk_->mutex);
  const NodePtr node = disk_->Find(path).node;
  CHECK(node != nullptr) << path;
  CHECK_LT(offset, node->bytes.size()) << path;
  node->bytes[offset] = static_cast<char>(node->bytes[offset] ^ flipped_bits);
}
void SimFileSystem::StopAfter(uint64_t operations) {
  std::lock_guard lock(disk_->mutex);
  disk_->steps_to_stop = operations;
}
uint64_t SimFileSystem::operations() const {
  std::lock_guard lock(disk_->mutex);
  return disk_->operations;
}
uint64_t SimFileSystem::DurableSize(const std::string& path) const {
  std::lock_guard lock(disk_->mutex);
  const NodePtr seen = disk_->Find(path).node;
  NodePtr durable = disk_->root;
  for (const std::string& part : PartsOf(path)) {
    const auto it = durable->durable_names.find(part);
    if (it == durable->durable_names.end()) return 0;
    durable = it->second;
  }
  return durable == seen && !durable->is_directory ? durable->kept : 0;
}

uint64_t SimFileSystem::used_bytes() const {
  std::lock_guard lock(disk_->mutex);
  return disk_->used;
}

}  // namespace conclave
