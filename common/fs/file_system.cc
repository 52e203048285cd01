#include "common/fs/file_system.h"

#include "absl/strings/str_cat.h"
#include "common/error/error.h"

namespace conclave {

absl::StatusOr<std::string> ReadWholeFile(FileSystem& fs, const std::string& path,
                                          uint64_t limit_bytes) {
  auto file = fs.Open(path, FileSystem::OpenMode::kReadOnly);
  if (!file.ok()) return file.status();
  if ((*file)->size() > limit_bytes) {
    return MakeError(
        v1::STORAGE_ERROR,
        absl::StrCat(path, " has ", (*file)->size(), " bytes, more than the ", limit_bytes,
                     " that such a file can have: it is damaged, or "
                     "not one of ours"));
  }
  return (*file)->ReadAt(0, (*file)->size());
}

absl::Status WriteFileAtomically(FileSystem& fs, const std::string& path, std::string_view bytes) {
  const std::string side = path + kSideSuffix;
  // One left by a crash is of no use.
  if (absl::Status removed = fs.RemoveFile(side); !removed.ok() && !absl::IsNotFound(removed)) {
    return removed;
  }
  auto file = fs.Open(side, FileSystem::OpenMode::kCreateBriefly);
  if (!file.ok()) return file.status();
  if (absl::Status status = (*file)->Append(Buffer(std::string(bytes))); !status.ok())
    return status;
  if (absl::Status status = (*file)->Sync(); !status.ok()) return status;
  file->reset();
  if (absl::Status status = fs.Rename(side, path); !status.ok()) return status;
  return fs.SyncDirectory(ParentPath(path));
}

absl::Status CreateDirectories(FileSystem& fs, const std::string& path) {
  auto exists = fs.Exists(path);
  if (!exists.ok()) return exists.status();
  if (*exists) return absl::OkStatus();
  const std::string parent = ParentPath(path);
  if (absl::Status status = CreateDirectories(fs, parent); !status.ok()) return status;
  if (absl::Status status = fs.CreateDirectory(path); !status.ok()) return status;
  return fs.SyncDirectory(parent);
}

std::string JoinPath(const std::string& directory, const std::string& name) {
  if (directory.empty()) return name;
  return directory.back() == '/' ? directory + name : directory + "/" + name;
}

std::string ParentPath(const std::string& path) {
  size_t end = path.size();
  while (end > 1 && path[end - 1] == '/') --end;
  const size_t slash = path.rfind('/', end - 1);
  if (slash == std::string::npos) return ".";
  if (slash == 0) return "/";
  return path.substr(0, slash);
}

}  // namespace conclave
