#include "raft/storage/rocksdb_log_storage.h"

#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/listener.h>
#include <rocksdb/options.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <atomic>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "raft/storage/entry_codec.h"
#include "raft/storage/tail_check.h"

namespace conclave::raft {
namespace {

rocksdb::Slice ToSlice(std::string_view bytes) { return {bytes.data(), bytes.size()}; }
std::string_view ToView(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

absl::Status StorageError(const std::string& path, const char* doing,
                          const rocksdb::Status& status) {
  return MakeError(v1::STORAGE_ERROR,
                   absl::StrCat("the Raft log in ", path, ": ", doing, ": ", status.ToString()));
}

absl::Status InLog(const std::string& path, const std::string& where, const absl::Status& status) {
  return MakeError(
      ErrorCodeOf(status),
      absl::StrCat("the Raft log in ", path, ", ", where, ": ", std::string(status.message()),
                   "; this controller will not start from it. Restore the directory from a backup, "
                   "or format an empty one, which joins as an observer"));
}

// Refuses all writes once RocksDB has reported an error of its background work.
class ErrorListener : public rocksdb::EventListener {
 public:
  void OnBackgroundError(rocksdb::BackgroundErrorReason, rocksdb::Status* status) override {
    if (!status->ok()) failed_ = true;
  }
  bool failed() const { return failed_; }

 private:
  std::atomic<bool> failed_ = false;
};

rocksdb::Options MakeOptions(rocksdb::Env* env, std::shared_ptr<ErrorListener> listener) {
  rocksdb::Options options;
  if (env != nullptr) options.env = env;
  options.create_if_missing = false;
  options.paranoid_checks = true;
  // The default mode cuts the log at the first damage without a word.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  // A log that was ended when the next was begun is of the length it had then.
  options.track_and_verify_wals_in_manifest = true;
  // A failed sync or flush is final for the process.
  options.max_bgerror_resume_count = 0;
  options.listeners.push_back(std::move(listener));
  // The log is small and read once: little memory, few files, no compression to link against.
  options.write_buffer_size = 8 << 20;
  options.max_open_files = 64;
  options.compression = rocksdb::kNoCompression;
  options.keep_log_file_num = 2;
  options.info_log_level = rocksdb::WARN_LEVEL;
  options.max_background_jobs = 1;
  return options;
}

// Refuses what RocksDB would take for a crash's torn last write, and cut in silence.
absl::Status CheckTails(const std::string& path, rocksdb::Env* env) {
  if (env == nullptr) env = rocksdb::Env::Default();
  std::vector<std::string> names;
  // What is wrong with the directory itself, opening it tells better.
  if (!env->GetChildren(path, &names).ok()) return absl::OkStatus();
  for (const std::string& name : names) {
    const bool manifest = name.compare(0, 9, "MANIFEST-") == 0;
    const bool log = name.size() > 4 && name.compare(name.size() - 4, 4, ".log") == 0;
    if (!manifest && !log) continue;
    std::string bytes;
    const std::string file = path + "/" + name;
    const rocksdb::Status read = rocksdb::ReadFileToString(env, file, &bytes);
    if (read.IsNotFound()) continue;  // Beside a running node files go.
    if (!read.ok()) return StorageError(path, "reading its files", read);
    if (const auto damage = FindTailDamage(bytes)) {
      return InLog(path, name,
                   MakeError(v1::STORAGE_ERROR,
                             absl::StrCat("the record at byte ", damage->at,
                                          " is damaged, and whole ones follow it, at byte ",
                                          damage->whole_at, " for one")));
    }
  }
  return absl::OkStatus();
}

absl::Status MakeDatabase(const std::string& path, const RecoveredState& initial,
                          rocksdb::Env* env) {
  rocksdb::Options options = MakeOptions(env, std::make_shared<ErrorListener>());
  options.create_if_missing = true;
  options.error_if_exists = true;
  rocksdb::DB* raw = nullptr;
  const rocksdb::Status opened = rocksdb::DB::Open(options, path, &raw);
  if (!opened.ok()) return StorageError(path, "making it", opened);
  const std::unique_ptr<rocksdb::DB> db(raw);
  rocksdb::WriteBatch batch;
  batch.Put(ToSlice(codec::kFormatKey), codec::EncodeFormat());
  batch.Put(ToSlice(codec::kHardStateKey), codec::EncodeHardState(initial.hard_state));
  for (const Entry& entry : initial.entries) {
    batch.Put(codec::EntryKey(entry.index), codec::EncodeEntry(entry));
  }
  rocksdb::WriteOptions synced;
  synced.sync = true;
  const rocksdb::Status written = db->Write(synced, &batch);
  if (!written.ok()) return StorageError(path, "writing its first state", written);
  const rocksdb::Status closed = db->Close();
  if (!closed.ok()) return StorageError(path, "closing it", closed);
  return absl::OkStatus();
}

std::string ParentOf(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

absl::Status SyncDirectory(const std::string& path, rocksdb::Env* env) {
  std::unique_ptr<rocksdb::Directory> directory;
  rocksdb::Status status = env->NewDirectory(path, &directory);
  if (status.ok()) status = directory->Fsync();
  if (!status.ok()) return StorageError(path, "syncing the directory", status);
  return absl::OkStatus();
}

// With the files in it; none if it is not there.
absl::Status RemoveDirectory(const std::string& path, rocksdb::Env* env) {
  std::vector<std::string> names;
  rocksdb::Status status = env->GetChildren(path, &names);
  if (status.IsNotFound()) return absl::OkStatus();
  for (const std::string& name : names) {
    if (!status.ok()) break;
    if (name == "." || name == "..") continue;
    status = env->DeleteFile(path + "/" + name);
  }
  if (status.ok()) status = env->DeleteDir(path);
  if (!status.ok()) {
    return StorageError(path, "removing what an interrupted creation left", status);
  }
  return absl::OkStatus();
}

// False where there is nothing but what opening a database that is not there leaves.
absl::StatusOr<bool> HoldsData(const std::string& path, rocksdb::Env* env) {
  std::vector<std::string> names;
  const rocksdb::Status listed = env->GetChildren(path, &names);
  if (listed.IsNotFound()) return false;
  if (!listed.ok()) return StorageError(path, "looking for it", listed);
  return std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return name != "." && name != ".." && name != "LOCK" && name.compare(0, 3, "LOG") != 0;
  });
}

bool SameEntry(const Entry& a, const Entry& b) {
  return a.index == b.index && a.term == b.term && a.kind == b.kind && *a.data == *b.data;
}

// OK if the database at `path` is as Create with `initial` leaves it.
absl::Status CheckIsMade(const std::string& path, const RecoveredState& initial,
                         rocksdb::Env* env) {
  const auto refused = [&](const std::string& why) {
    return absl::FailedPreconditionError(
        absl::StrCat("the Raft log in ", path, " is there already ", why,
                     ". Nothing was touched; choose another directory, or remove this one to give "
                     "its data up"));
  };
  auto log = RocksDbLogStorage::OpenReadOnly(path, env);
  if (!log.ok()) {
    return refused(absl::StrCat("and cannot be read: ", std::string(log.status().message())));
  }
  const auto state = (*log)->Load();
  if (!state.ok()) {
    return refused(absl::StrCat("and cannot be read: ", std::string(state.status().message())));
  }
  if (!(state->hard_state == initial.hard_state) ||
      !std::equal(state->entries.begin(), state->entries.end(), initial.entries.begin(),
                  initial.entries.end(), SameEntry)) {
    return refused(absl::StrCat("and holds other data: ", state->entries.size(),
                                " entries, at term ", state->hard_state.term.value()));
  }
  return absl::OkStatus();
}

}  // namespace

class RocksDbLogStorage::Impl {
 public:
  Impl(std::string path, std::shared_ptr<ErrorListener> listener, std::unique_ptr<rocksdb::DB> db)
      : path_(std::move(path)), listener_(std::move(listener)), db_(std::move(db)) {}

  const std::string& path() const { return path_; }

  absl::Status CheckFormat() {
    std::string value;
    const rocksdb::Status got = db_->Get({}, ToSlice(codec::kFormatKey), &value);
    if (!got.ok()) return StorageError(path_, "reading its format", got);
    const absl::Status format = codec::CheckFormat(value);
    return format.ok() ? format : InLog(path_, "its format", format);
  }

  absl::StatusOr<RecoveredState> Load() {
    RecoveredState state;
    std::string value;
    const rocksdb::Status got = db_->Get({}, ToSlice(codec::kHardStateKey), &value);
    if (!got.ok()) return StorageError(path_, "reading term and vote", got);
    auto hard_state = codec::DecodeHardState(value);
    if (!hard_state.ok()) return InLog(path_, "term and vote", hard_state.status());
    state.hard_state = *hard_state;
    if (absl::Status entries = LoadEntries(state.entries); !entries.ok()) return entries;
    last_index_ = state.entries.empty() ? LogIndex() : state.entries.back().index;
    return state;
  }

  absl::Status Append(const std::vector<Write>& writes) {
    if (failed_ || listener_->failed()) {
      return MakeError(v1::STORAGE_ERROR,
                       absl::StrCat("the Raft log in ", path_,
                                    " failed before; no write to it "
                                    "counts until the process has started anew"));
    }
    rocksdb::WriteBatch batch;
    for (const Write& write : writes) AddToBatch(write, batch);
    rocksdb::WriteOptions synced;
    synced.sync = true;
    const rocksdb::Status written = db_->Write(synced, &batch);
    if (written.ok()) return absl::OkStatus();
    failed_ = true;
    return StorageError(path_, "writing", written);
  }

 private:
  absl::Status LoadEntries(std::vector<Entry>& entries) {
    rocksdb::ReadOptions options;
    options.verify_checksums = true;
    const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(options));
    const std::string prefix(1, codec::kEntryPrefix);
    for (it->Seek(prefix); it->Valid(); it->Next()) {
      const auto index = codec::ParseEntryKey(ToView(it->key()));
      const LogIndex expected = entries.empty() ? LogIndex(1) : entries.back().index + 1;
      const std::string where = absl::StrCat("entry ", expected.value());
      if (!index || *index != expected) {
        return InLog(path_, where, MakeError(v1::STORAGE_ERROR, "it is missing"));
      }
      auto entry = codec::DecodeEntry(ToView(it->value()));
      if (!entry.ok()) return InLog(path_, where, entry.status());
      if (entry->index != expected) {
        return InLog(path_, where,
                     MakeError(v1::STORAGE_ERROR,
                               absl::StrCat("it says it is entry ", entry->index.value())));
      }
      entries.push_back(*std::move(entry));
    }
    if (!it->status().ok()) return StorageError(path_, "reading entries", it->status());
    return absl::OkStatus();
  }

  void AddToBatch(const Write& write, rocksdb::WriteBatch& batch) {
    if (write.hard_state) {
      batch.Put(ToSlice(codec::kHardStateKey), codec::EncodeHardState(*write.hard_state));
    }
    if (write.truncate_from) {
      for (LogIndex i = *write.truncate_from; i <= last_index_; ++i) {
        batch.Delete(codec::EntryKey(i));
      }
      last_index_ = *write.truncate_from - 1;
    }
    for (const Entry& entry : write.entries) {
      batch.Put(codec::EntryKey(entry.index), codec::EncodeEntry(entry));
      last_index_ = entry.index;
    }
  }

  const std::string path_;
  const std::shared_ptr<ErrorListener> listener_;
  const std::unique_ptr<rocksdb::DB> db_;
  LogIndex last_index_;
  bool failed_ = false;
};

RocksDbLogStorage::RocksDbLogStorage(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RocksDbLogStorage::~RocksDbLogStorage() = default;

absl::Status RocksDbLogStorage::Create(const std::string& path, const RecoveredState& initial,
                                       rocksdb::Env* env) {
  if (env == nullptr) env = rocksdb::Env::Default();
  const auto there = HoldsData(path, env);
  if (!there.ok()) return there.status();
  if (*there) return CheckIsMade(path, initial, env);
  if (absl::Status cleared = RemoveDirectory(path, env); !cleared.ok()) return cleared;
  // Made to the side and renamed when all of it is durable: whatever stands under its own name is
  // whole, and what is left beside it by a crash was never anybody's.
  const std::string side = path + kSideSuffix;
  if (absl::Status cleared = RemoveDirectory(side, env); !cleared.ok()) return cleared;
  if (absl::Status made = MakeDatabase(side, initial, env); !made.ok()) return made;
  if (absl::Status synced = SyncDirectory(side, env); !synced.ok()) return synced;
  const rocksdb::Status renamed = env->RenameFile(side, path);
  if (!renamed.ok()) return StorageError(path, "giving it its name", renamed);
  return SyncDirectory(ParentOf(path), env);
}

absl::StatusOr<std::unique_ptr<RocksDbLogStorage>> RocksDbLogStorage::Open(const std::string& path,
                                                                           rocksdb::Env* env) {
  if (absl::Status tails = CheckTails(path, env); !tails.ok()) return tails;
  auto listener = std::make_shared<ErrorListener>();
  rocksdb::DB* raw = nullptr;
  const rocksdb::Status opened = rocksdb::DB::Open(MakeOptions(env, listener), path, &raw);
  if (!opened.ok()) return StorageError(path, "opening it", opened);
  auto impl = std::make_unique<Impl>(path, listener, std::unique_ptr<rocksdb::DB>(raw));
  if (absl::Status format = impl->CheckFormat(); !format.ok()) return format;
  return std::unique_ptr<RocksDbLogStorage>(new RocksDbLogStorage(std::move(impl)));
}

absl::StatusOr<std::unique_ptr<RocksDbLogStorage>> RocksDbLogStorage::OpenReadOnly(
    const std::string& path, rocksdb::Env* env) {
  if (absl::Status tails = CheckTails(path, env); !tails.ok()) return tails;
  auto listener = std::make_shared<ErrorListener>();
  rocksdb::DB* raw = nullptr;
  const rocksdb::Status opened =
      rocksdb::DB::OpenForReadOnly(MakeOptions(env, listener), path, &raw);
  if (!opened.ok()) return StorageError(path, "opening it", opened);
  auto impl = std::make_unique<Impl>(path, listener, std::unique_ptr<rocksdb::DB>(raw));
  if (absl::Status format = impl->CheckFormat(); !format.ok()) return format;
  return std::unique_ptr<RocksDbLogStorage>(new RocksDbLogStorage(std::move(impl)));
}

absl::StatusOr<RecoveredState> RocksDbLogStorage::Load() { return impl_->Load(); }

absl::Status RocksDbLogStorage::Append(const std::vector<Write>& writes) {
  return impl_->Append(writes);
}

}  // namespace conclave::raft
