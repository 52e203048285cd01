#ifndef CONCLAVE_COMMON_IDENTITY_IDENTITY_H_
#define CONCLAVE_COMMON_IDENTITY_IDENTITY_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/fs/file_system.h"
#include "common/types/ids.h"

// Whose data a directory holds: the file meta.properties, which `conclave storage format` writes
// once and nothing changes. A node refuses a directory that is not its own (docs/formats.md).
namespace conclave {

enum class NodeRole { kController, kBroker };

// "controller" or "broker".
const char* RoleName(NodeRole role);

struct Identity {
  NodeRole role = NodeRole::kBroker;
  // A NodeId for a controller, a BrokerId for a broker.
  int32_t node_id = -1;
  ClusterId cluster_id;
  DirectoryId directory_id;

  friend bool operator==(const Identity&, const Identity&) = default;
};

inline constexpr char kIdentityFileName[] = "meta.properties";

// Written to the side, synced, renamed.
absl::Status WriteIdentity(FileSystem& fs, const std::string& directory, const Identity& identity);

// NotFound if there is no such file, STORAGE_ERROR, naming the file and the damage, if it is not
// whole.
absl::StatusOr<Identity> ReadIdentity(FileSystem& fs, const std::string& directory);

// The identity of the directory a node was started on. Refused, with what is there, what was
// expected, and the safe choices: a directory that is missing, empty, of another node, or whose
// identity is lost beside data. Changes nothing.
absl::StatusOr<Identity> OpenIdentity(FileSystem& fs, const std::string& directory, NodeRole role,
                                      int32_t node_id);

// Takes the directory for this process; another that has it is an error. The file stays behind.
absl::StatusOr<std::unique_ptr<FileLock>> LockDirectory(FileSystem& fs,
                                                        const std::string& directory);

}  // namespace conclave

#endif  // CONCLAVE_COMMON_IDENTITY_IDENTITY_H_
