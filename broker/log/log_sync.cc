#include "broker/log/log_sync.h"

namespace conclave {

absl::Status LogSync::Run() const {
  for (const std::shared_ptr<File>& file : files_) {
    if (absl::Status status = file->Sync(); !status.ok()) return status;
  }
  return sync_directory_ ? fs_->SyncDirectory(directory_) : absl::OkStatus();
}

void LogSync::BeginWriteback() const {
  for (const std::shared_ptr<File>& file : files_) file->BeginWriteback();
}

}  // namespace conclave
