#include "raft/storage/rocksdb_log_storage.h"

#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/listener.h>
#include <rocksdb/options.h>
#include <rocksdb/write_batch.h>

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
