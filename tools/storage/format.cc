#include "tools/storage/format.h"

#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "raft/storage/format.h"
#include "raft/storage/rocksdb_log_storage.h"

namespace conclave::tools {
namespace {

absl::Status Refused(const std::string& why) { return MakeError(v1::INVALID_REQUEST, why); }

// What a format that was interrupted leaves, before the identity is there. That the log is then
// still as format makes it, making it again checks.
bool MayBeLeftOver(NodeRole role, const std::string& name) {
  if (name == absl::StrCat(kIdentityFileName, kSideSuffix)) return true;
  return role == NodeRole::kController &&
         (name == kRaftDirectoryName ||
          name == absl::StrCat(kRaftDirectoryName, raft::RocksDbLogStorage::kSideSuffix));
}

// An absent or empty directory may be formatted, and one in which that was interrupted.
absl::Status CheckEmpty(FileSystem& fs, const std::string& directory, NodeRole role) {
  const auto exists = fs.Exists(directory);
  if (!exists.ok()) return exists.status();
  if (!*exists) return absl::OkStatus();
  const auto identity = ReadIdentity(fs, directory);
  if (identity.ok()) {
    return Refused(absl::StrCat(directory, " is formatted already: it belongs to ",
                                RoleName(identity->role), " ", identity->node_id, " of cluster ",
                                identity->cluster_id.ToString(),
                                ". Nothing was touched; to give its data up, remove the directory "
                                "first"));
  }
  const auto entries = fs.List(directory);
  if (!entries.ok()) return entries.status();
  for (const DirectoryEntry& entry : *entries) {
    if (MayBeLeftOver(role, entry.name)) continue;
    return Refused(absl::StrCat(directory, " is not empty (", entry.name,
                                " is there) and is not formatted. Nothing was touched; choose an "
                                "empty directory"));
  }
  return absl::OkStatus();
}

DirectoryId DrawDirectoryId(Random& random) {
  const uint64_t high = random.Next();
  return DirectoryId::FromRandom(high, random.Next());
}

// The directory id that the voters' text gives this node.
absl::StatusOr<DirectoryId> OwnDirectory(const raft::VoterSet& voters, int32_t node_id) {
  for (const auto& member : voters.members()) {
    if (member.key.node == NodeId(node_id)) return member.key.directory;
  }
  return Refused(absl::StrCat("node ", node_id, " is not among the initial voters ",
                              raft::InitialVotersText(voters),
                              "; without --initial-voters it would follow as an observer"));
}

absl::StatusOr<DirectoryId> FormatController(const FormatRequest& request, Random& random) {
  const std::string log = JoinPath(request.directory, kRaftDirectoryName);
  if (request.initial_voters.empty()) {
    if (absl::Status made = raft::FormatObserverLog(log); !made.ok()) return made;
    return DrawDirectoryId(random);
  }
  const auto voters = raft::ParseInitialVoters(request.initial_voters);
  if (!voters.ok()) return voters.status();
  const auto directory = OwnDirectory(*voters, request.node_id);
  if (!directory.ok()) return directory.status();
  const raft::ReplicaKey self{.node = NodeId(request.node_id), .directory = *directory};
  if (absl::Status made = raft::FormatVoterLog(log, *voters, self); !made.ok()) return made;
  return directory;
}

// What is wrong with the request itself, before anything is made.
absl::Status CheckRequest(const FormatRequest& request) {
  if (request.directory.empty()) return Refused("a data directory is needed (--data-dir)");
  if (request.node_id < 0) {
    return Refused(absl::StrCat("a node id is 0 or more, not ", request.node_id));
  }
  if (request.cluster_id.IsNone()) {
    return Refused(
        "a cluster id is needed ('conclave storage random-id' draws one; it is the same "
        "for all nodes of the cluster)");
  }
  if (request.initial_voters.empty()) return absl::OkStatus();
  if (request.role == NodeRole::kBroker) {
    return Refused("initial voters are for controllers, and this is a broker");
  }
  const auto voters = raft::ParseInitialVoters(request.initial_voters);
  if (!voters.ok()) return voters.status();
  return OwnDirectory(*voters, request.node_id).status();
}

}  // namespace

absl::StatusOr<Identity> FormatStorage(FileSystem& fs, const FormatRequest& request,
                                       Random& random) {
  if (absl::Status good = CheckRequest(request); !good.ok()) return good;
  if (absl::Status empty = CheckEmpty(fs, request.directory, request.role); !empty.ok())
    return empty;
  if (absl::Status made = CreateDirectories(fs, request.directory); !made.ok()) return made;
  Identity identity{.role = request.role,
                    .node_id = request.node_id,
                    .cluster_id = request.cluster_id,
                    .directory_id = DirectoryId()};
  if (request.role == NodeRole::kController) {
    const auto directory = FormatController(request, random);
    if (!directory.ok()) return directory.status();
    if (absl::Status synced = fs.SyncDirectory(request.directory); !synced.ok()) return synced;
    identity.directory_id = *directory;
  } else {
    identity.directory_id = DrawDirectoryId(random);
  }
  if (absl::Status written = WriteIdentity(fs, request.directory, identity); !written.ok()) {
    return written;
  }
  return identity;
}

}  // namespace conclave::tools
