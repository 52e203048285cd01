#include "common/identity/identity.h"

#include <charconv>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/checksum/crc32c.h"
#include "common/error/error.h"

namespace conclave {
namespace {

constexpr char kVersion[] = "1";
constexpr char kLockFileName[] = ".lock";
constexpr uint64_t kMaxFileBytes = 4096;

std::string Body(const Identity& identity) {
  return absl::StrCat("version=", kVersion, "\n",                           //
                      "role=", RoleName(identity.role), "\n",               //
                      "node.id=", identity.node_id, "\n",                   //
                      "cluster.id=", identity.cluster_id.ToString(), "\n",  //
                      "directory.id=", identity.directory_id.ToString(), "\n");
}

absl::Status Damaged(const std::string& path, const std::string& how) {
  return MakeError(v1::STORAGE_ERROR,
                   absl::StrCat(path, " is damaged: ", how,
                                ". It says whose data the directory holds, so nothing there was "
                                "touched. Restore the file from a backup; or, if the data can be "
                                "given up, move the directory away and format an empty one"));
}

std::map<std::string, std::string> ParseLines(std::string_view text) {
  std::map<std::string, std::string> values;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    values[std::string(line.substr(0, equals))] = std::string(line.substr(equals + 1));
  }
  return values;
}

std::optional<NodeRole> ParseRole(const std::string& text) {
  if (text == "controller") return NodeRole::kController;
  if (text == "broker") return NodeRole::kBroker;
  return std::nullopt;
}

absl::StatusOr<Identity> Parse(const std::string& path, const std::string& text) {
  const size_t checksum_at = text.rfind("crc32c=");
  if (checksum_at == std::string::npos) return Damaged(path, "its last line, crc32c, is missing");
  const std::string body = text.substr(0, checksum_at);
  if (text.substr(checksum_at) != absl::StrFormat("crc32c=%08x\n", Crc32c(body))) {
    return Damaged(path, "its checksum does not match");
  }
  std::map<std::string, std::string> values = ParseLines(body);
  if (values["version"] != kVersion) {
    return MakeError(v1::UNSUPPORTED_VERSION,
                     absl::StrCat(path, " has version ", values["version"],
                                  ", and this program reads version ", kVersion));
  }
  Identity identity;
  const auto role = ParseRole(values["role"]);
  const auto cluster = ClusterId::Parse(values["cluster.id"]);
  const auto directory = DirectoryId::Parse(values["directory.id"]);
  const std::string& id = values["node.id"];
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), identity.node_id);
  if (!role || !cluster || !directory || error != std::errc() || end != id.data() + id.size()) {
    return Damaged(path, "its checksum matches, and a value is missing or no such value");
  }
  identity.role = *role;
  identity.cluster_id = *cluster;
  identity.directory_id = *directory;
  return identity;
}

std::string FormatCommand(const std::string& directory, NodeRole role, int32_t node_id) {
  return absl::StrCat("conclave storage format --role ", RoleName(role), " --data-dir ", directory,
                      " --node-id ", node_id, " --cluster-id <id>",
                      role == NodeRole::kController ? " [--initial-voters <voters>]" : "");
}

// The file is not there: an empty directory is only not formatted yet, one with data has lost it.
absl::Status Missing(FileSystem& fs, const std::string& directory, NodeRole role, int32_t node_id) {
  const auto entries = fs.List(directory);
  std::string first;
  if (entries.ok()) {
    for (const DirectoryEntry& entry : *entries) {
      if (entry.name != kLockFileName && first.empty()) first = entry.name;
    }
  }
  if (first.empty()) {
    return MakeError(v1::INVALID_CONFIG,
                     absl::StrCat(directory, " is not formatted (it has no ", kIdentityFileName,
                                  "). Format it once: ", FormatCommand(directory, role, node_id)));
  }
  return MakeError(
      v1::STORAGE_ERROR,
      absl::StrCat(JoinPath(directory, kIdentityFileName), " is missing beside data (", first,
                   "): whose data this is cannot be told, so nothing was touched. "
                   "Restore the file from a backup; or, if the data can be given up, "
                   "move the directory away and format an empty one"));
}

}  // namespace

const char* RoleName(NodeRole role) {
  return role == NodeRole::kController ? "controller" : "broker";
}

absl::Status WriteIdentity(FileSystem& fs, const std::string& directory, const Identity& identity) {
  const std::string body = Body(identity);
  return WriteFileAtomically(fs, JoinPath(directory, kIdentityFileName),
                             body + absl::StrFormat("crc32c=%08x\n", Crc32c(body)));
}

absl::StatusOr<Identity> ReadIdentity(FileSystem& fs, const std::string& directory) {
  const std::string path = JoinPath(directory, kIdentityFileName);
  const auto text = ReadWholeFile(fs, path, kMaxFileBytes);
  if (!text.ok()) return text.status();
  return Parse(path, *text);
}

absl::StatusOr<Identity> OpenIdentity(FileSystem& fs, const std::string& directory, NodeRole role,
                                      int32_t node_id) {
  const auto exists = fs.Exists(directory);
  if (!exists.ok()) return exists.status();
  if (!*exists) {
    return MakeError(v1::INVALID_CONFIG, absl::StrCat("data directory ", directory,
                                                      " does not exist. If its disk is "
                                                      "not mounted, mount it; for a new node: ",
                                                      FormatCommand(directory, role, node_id)));
  }
  auto identity = ReadIdentity(fs, directory);
  if (absl::IsNotFound(identity.status())) return Missing(fs, directory, role, node_id);
  if (!identity.ok()) return identity.status();
  if (identity->role != role || identity->node_id != node_id) {
    return MakeError(
        v1::INVALID_CONFIG,
        absl::StrCat(directory, " belongs to ", RoleName(identity->role), " ", identity->node_id,
                     ", and this is ", RoleName(role), " ", node_id, " (",
                     JoinPath(directory, kIdentityFileName),
                     "). Nothing was touched. Start the node it belongs to, or give this node its "
                     "own data.dir"));
  }
  return identity;
}

absl::StatusOr<std::unique_ptr<FileLock>> LockDirectory(FileSystem& fs,
                                                        const std::string& directory) {
  return fs.Lock(JoinPath(directory, kLockFileName));
}

}  // namespace conclave
