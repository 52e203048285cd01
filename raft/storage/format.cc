#include "raft/storage/format.h"

#include <charconv>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "raft/core/bootstrap.h"
#include "raft/storage/rocksdb_log_storage.h"

namespace conclave::raft {
namespace {

absl::Status Bad(const std::string& part, const std::string& why) {
  return MakeError(v1::INVALID_REQUEST,
                   absl::StrCat("initial voters: \"", part, "\" ", why,
                                "; a voter is written id@host:port#directory-id, and voters are "
                                "separated by commas"));
}

bool IsHostPort(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return false;
  int port = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data() + colon + 1, last, port);
  return error == std::errc() && end == last && port >= 1 && port <= 65535;
}

absl::StatusOr<VoterSet::Member> ParseVoter(const std::string& part) {
  const size_t at = part.find('@');
  const size_t hash = part.rfind('#');
  if (at == std::string::npos) return Bad(part, "has no @");
  if (hash == std::string::npos || hash < at) return Bad(part, "has no #directory-id");
  int32_t id = -1;
  const auto [end, error] = std::from_chars(part.data(), part.data() + at, id);
  if (error != std::errc() || end != part.data() + at || id < 0) {
    return Bad(part, "has no node id of 0 or more before the @");
  }
  VoterSet::Member member;
  member.endpoint = part.substr(at + 1, hash - at - 1);
  if (!IsHostPort(member.endpoint)) return Bad(part, "has no host:port after the @");
  const auto directory = DirectoryId::Parse(part.substr(hash + 1));
  if (!directory || directory->IsNone()) {
    return Bad(part, "has no directory id after the # ('conclave storage random-id' draws one)");
  }
  member.key = {.node = NodeId(id), .directory = *directory};
  return member;
}

}  // namespace

absl::StatusOr<VoterSet> ParseInitialVoters(const std::string& text) {
  std::vector<VoterSet::Member> members;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = text.find(',', begin);
    if (end == std::string::npos) end = text.size();
    auto member = ParseVoter(text.substr(begin, end - begin));
    if (!member.ok()) return member.status();
    members.push_back(*std::move(member));
    begin = end + 1;
  }
  auto voters = VoterSet::Of(std::move(members));
  if (!voters.ok()) {
    return MakeError(v1::INVALID_REQUEST,
                     absl::StrCat("initial voters: ", std::string(voters.status().message())));
  }
  return voters;
}

std::string InitialVotersText(const VoterSet& voters) {
  std::string text;
  for (const auto& member : voters.members()) {
    absl::StrAppend(&text, text.empty() ? "" : ",", member.key.node.value(), "@", member.endpoint,
                    "#", member.key.directory.ToString());
  }
  return text;
}

absl::Status FormatVoterLog(const std::string& path, const VoterSet& voters,
                            const ReplicaKey& self) {
  if (!voters.Contains(self)) {
    return MakeError(
        v1::INVALID_REQUEST,
        absl::StrCat("node ", self.node.value(), " with directory ", self.directory.ToString(),
                     " is not among the initial voters ", InitialVotersText(voters)));
  }
  return RocksDbLogStorage::Create(path, FormatInitialVoters(voters));
}

absl::Status FormatObserverLog(const std::string& path) {
  return RocksDbLogStorage::Create(path, RecoveredState());
}

}  // namespace conclave::raft
