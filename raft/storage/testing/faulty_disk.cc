#include "raft/storage/testing/faulty_disk.h"

#include <glog/logging.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <mutex>
#include <utility>
#include <vector>

namespace conclave::raft::testing {
namespace {

// RocksDB joins paths carelessly, and means the same file by "a//b" and "a/b".
std::string Normalized(const std::string& path) {
  std::string normal;
  for (char c : path) {
    if (c != '/' || normal.empty() || normal.back() != '/') normal.push_back(c);
  }
  if (normal.size() > 1 && normal.back() == '/') normal.pop_back();
  return normal;
}

std::string DirectoryOf(const std::string& path) { return path.substr(0, path.find_last_of('/')); }

// RocksDB's own diary, in which nothing is kept that is read again.
bool IsDiary(const std::string& path) {
  return path.compare(path.find_last_of('/') + 1, 3, "LOG") == 0 &&
         path.compare(path.find_last_of('/') + 1, 4, "LOCK") != 0;
}

struct FileData {
  std::string bytes;
  size_t synced = 0;
  // A sync failed: what it did not write no later one writes.
  bool stuck = false;
};

}  // namespace

class FaultyDisk::State {
 public:
  using FilePtr = std::shared_ptr<FileData>;

  FilePtr Create(const std::string& path) {
    auto file = std::make_shared<FileData>();
    Change({path, file});
    return file;
  }
  void Remove(const std::string& path) { Change({path, nullptr}); }
  // One step of the directory: after a loss of power it has happened or not.
  void Rename(const std::string& from, const std::string& to) {
    {
      std::lock_guard lock(mutex_);
      const auto it = names_.find(from);
      const NameStep step =
          it == names_.end()
              ? NameStep{.directory = DirectoryOf(from), .moved_from = from, .moved_to = to}
              : NameStep{.directory = DirectoryOf(from),
                         .changes = {{from, nullptr}, {to, it->second}}};
      Apply(step, names_);
      changes_.push_back(step);
    }
    Step("rename to " + to);
  }

  void Append(const FilePtr& file, const std::string& path, const rocksdb::Slice& bytes) {
    {
      std::lock_guard lock(mutex_);
      file->bytes.append(bytes.data(), bytes.size());
    }
    Step("write of " + path);
  }

  rocksdb::IOStatus Sync(const FilePtr& file, const std::string& path) {
    {
      std::lock_guard lock(mutex_);
      if (syncs_to_failure_ > 0 && --syncs_to_failure_ == 0) {
        rocksdb::IOStatus failed = rocksdb::IOStatus::IOError("injected EIO", path);
        failed.SetRetryable(failure_is_retriable_);
        file->stuck = true;
        return failed;
      }
      if (!file->stuck) file->synced = file->bytes.size();
    }
    Step("sync of " + path);
    return rocksdb::IOStatus::OK();
  }

  void SyncDirectory(const std::string& path) {
    {
      std::lock_guard lock(mutex_);
      std::vector<NameStep> others;
      for (NameStep& step : changes_) {
        if (step.directory == path) {
          Apply(step, durable_names_);
        } else {
          others.push_back(std::move(step));
        }
      }
      changes_ = std::move(others);
    }
    Step("sync of directory " + path);
  }

  void Load(const DiskImage& image) {
    std::lock_guard lock(mutex_);
    for (const auto& [path, bytes] : image) {
      auto file = std::make_shared<FileData>(FileData{.bytes = bytes, .synced = bytes.size()});
      names_[path] = file;
      durable_names_[path] = file;
    }
  }

  DiskImage Contents() const {
    std::lock_guard lock(mutex_);
    DiskImage image;
    for (const auto& [path, file] : names_) image[path] = file->bytes;
    return image;
  }

  DiskImage AfterPowerLoss(Loss loss, Random& random) const {
    std::lock_guard lock(mutex_);
    std::map<std::string, FilePtr> names = durable_names_;
    if (loss == Loss::kTorn) {
      const size_t survive = random.Below(changes_.size() + 1);
      for (size_t i = 0; i < survive; ++i) Apply(changes_[i], names);
    }
    DiskImage image;
    for (const auto& [path, file] : names) {
      size_t length = file->synced;
      if (loss == Loss::kTorn) length += random.Below(file->bytes.size() - length + 1);
      image[path] = file->bytes.substr(0, length);
    }
    return image;
  }

  void OnStep(std::function<void(const std::string&)> observer) {
    std::lock_guard lock(mutex_);
    observer_ = std::move(observer);
  }

  void FailSync(int nth, bool retriable) {
    std::lock_guard lock(mutex_);
    syncs_to_failure_ = nth;
    failure_is_retriable_ = retriable;
  }

 private:
  struct NameChange {
    std::string path;
    FilePtr file;  // Null: the name is gone.
  };
  struct NameStep {
    std::string directory;
    std::vector<NameChange> changes = {};
    // Of a directory, with whatever it holds by then.
    std::string moved_from = {};
    std::string moved_to = {};
  };

  static void Apply(const NameStep& step, std::map<std::string, FilePtr>& names) {
    if (!step.moved_from.empty()) {
      const std::string prefix = step.moved_from + "/";
      auto it = names.lower_bound(prefix);
      while (it != names.end() && it->first.compare(0, prefix.size(), prefix) == 0) {
        names[step.moved_to + "/" + it->first.substr(prefix.size())] = it->second;
        it = names.erase(it);
      }
    }
    for (const NameChange& change : step.changes) {
      if (change.file == nullptr) {
        names.erase(change.path);
      } else {
        names[change.path] = change.file;
      }
    }
  }

  void Change(NameChange change) {
    const std::string path = change.path;
    {
      std::lock_guard lock(mutex_);
      const NameStep step{.directory = DirectoryOf(path), .changes = {std::move(change)}};
      Apply(step, names_);
      changes_.push_back(step);
    }
    Step("change of the name " + path);
  }

  void Step(const std::string& step) {
    std::function<void(const std::string&)> observer;
    {
      std::lock_guard lock(mutex_);
      observer = observer_;
    }
    if (observer) observer(step);
  }

  mutable std::mutex mutex_;
  std::map<std::string, FilePtr> names_;
  std::map<std::string, FilePtr> durable_names_;
  // Since the sync of their directory, in order.
  std::vector<NameStep> changes_;
  std::function<void(const std::string&)> observer_;
  int syncs_to_failure_ = 0;
  bool failure_is_retriable_ = false;
};

class FaultyDisk::TrackedFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  TrackedFile(std::unique_ptr<rocksdb::FSWritableFile> file, std::shared_ptr<State> state,
              std::string path, State::FilePtr data)
      : FSWritableFileOwnerWrapper(std::move(file)),
        state_(std::move(state)),
        path_(std::move(path)),
        data_(std::move(data)) {}

  rocksdb::IOStatus Append(const rocksdb::Slice& bytes, const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* debug) override {
    rocksdb::IOStatus status = FSWritableFileOwnerWrapper::Append(bytes, options, debug);
    if (status.ok()) state_->Append(data_, path_, bytes);
    return status;
  }
  rocksdb::IOStatus Append(const rocksdb::Slice& bytes, const rocksdb::IOOptions& options,
                           const rocksdb::DataVerificationInfo&,
                           rocksdb::IODebugContext* debug) override {
    return Append(bytes, options, debug);
  }
  rocksdb::IOStatus Sync(const rocksdb::IOOptions&, rocksdb::IODebugContext*) override {
    return state_->Sync(data_, path_);
  }
  rocksdb::IOStatus Fsync(const rocksdb::IOOptions&, rocksdb::IODebugContext*) override {
    return state_->Sync(data_, path_);
  }

 private:
  const std::shared_ptr<State> state_;
  const std::string path_;
  const State::FilePtr data_;
};

class FaultyDisk::TrackedDirectory : public rocksdb::FSDirectoryWrapper {
 public:
  TrackedDirectory(std::unique_ptr<rocksdb::FSDirectory> directory, std::shared_ptr<State> state,
                   std::string path)
      : FSDirectoryWrapper(std::move(directory)),
        state_(std::move(state)),
        path_(std::move(path)) {}

  rocksdb::IOStatus Fsync(const rocksdb::IOOptions&, rocksdb::IODebugContext*) override {
    state_->SyncDirectory(path_);
    return rocksdb::IOStatus::OK();
  }
  rocksdb::IOStatus FsyncWithDirOptions(const rocksdb::IOOptions& options,
                                        rocksdb::IODebugContext* debug,
                                        const rocksdb::DirFsyncOptions&) override {
    return Fsync(options, debug);
  }

 private:
  const std::shared_ptr<State> state_;
  const std::string path_;
};

class FaultyDisk::TrackingFileSystem : public rocksdb::FileSystemWrapper {
 public:
  TrackingFileSystem(const std::shared_ptr<rocksdb::FileSystem>& memory,
                     std::shared_ptr<State> state)
      : FileSystemWrapper(memory), state_(std::move(state)) {}

  static const char* kClassName() { return "ConclaveFaultyDisk"; }
  const char* Name() const override { return kClassName(); }

  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override {
    std::unique_ptr<rocksdb::FSWritableFile> made;
    rocksdb::IOStatus status = FileSystemWrapper::NewWritableFile(path, options, &made, debug);
    if (!status.ok()) return status;
    const std::string name = Normalized(path);
    if (IsDiary(name)) {
      *file = std::move(made);
    } else {
      *file = std::make_unique<TrackedFile>(std::move(made), state_, name, state_->Create(name));
    }
    return status;
  }
  rocksdb::IOStatus ReopenWritableFile(const std::string& path, const rocksdb::FileOptions&,
                                       std::unique_ptr<rocksdb::FSWritableFile>*,
                                       rocksdb::IODebugContext*) override {
    return rocksdb::IOStatus::NotSupported("no file is written to twice", path);
  }
  rocksdb::IOStatus ReuseWritableFile(const std::string& path, const std::string&,
                                      const rocksdb::FileOptions&,
                                      std::unique_ptr<rocksdb::FSWritableFile>*,
                                      rocksdb::IODebugContext*) override {
    return rocksdb::IOStatus::NotSupported("no file is written to twice", path);
  }
  rocksdb::IOStatus NewDirectory(const std::string& path, const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* directory,
                                 rocksdb::IODebugContext* debug) override {
    std::unique_ptr<rocksdb::FSDirectory> made;
    rocksdb::IOStatus status = FileSystemWrapper::NewDirectory(path, options, &made, debug);
    if (!status.ok()) return status;
    *directory = std::make_unique<TrackedDirectory>(std::move(made), state_, Normalized(path));
    return status;
  }
  rocksdb::IOStatus DeleteFile(const std::string& path, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override {
    rocksdb::IOStatus status = FileSystemWrapper::DeleteFile(path, options, debug);
    if (status.ok() && !IsDiary(Normalized(path))) state_->Remove(Normalized(path));
    return status;
  }
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override {
    rocksdb::IOStatus status = FileSystemWrapper::RenameFile(from, to, options, debug);
    if (status.ok() && !IsDiary(Normalized(from))) {
      state_->Rename(Normalized(from), Normalized(to));
    }
    return status;
  }

 private:
  const std::shared_ptr<State> state_;
};

FaultyDisk::FaultyDisk(const DiskImage& image)
    : state_(std::make_shared<State>()), memory_(rocksdb::NewMemEnv(rocksdb::Env::Default())) {
  CHECK(memory_->CreateDirIfMissing(kDataDirectory).ok());
  for (const auto& [path, bytes] : image) {
    CHECK(memory_->CreateDirIfMissing(DirectoryOf(path)).ok());
    CHECK(rocksdb::WriteStringToFile(memory_.get(), bytes, path).ok());
  }
  state_->Load(image);
  env_ = rocksdb::NewCompositeEnv(
      std::make_shared<TrackingFileSystem>(memory_->GetFileSystem(), state_));
}

FaultyDisk::~FaultyDisk() = default;

rocksdb::Env* FaultyDisk::env() { return env_.get(); }
void FaultyDisk::OnStep(std::function<void(const std::string&)> observer) {
  state_->OnStep(std::move(observer));
}
DiskImage FaultyDisk::Contents() const { return state_->Contents(); }
DiskImage FaultyDisk::AfterPowerLoss(Loss loss, Random& random) const {
  return state_->AfterPowerLoss(loss, random);
}
void FaultyDisk::FailSync(int nth, bool retriable) { state_->FailSync(nth, retriable); }

}  // namespace conclave::raft::testing
