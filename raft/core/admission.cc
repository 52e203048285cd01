#include "raft/core/admission.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "raft/core/voter_set.h"

namespace conclave::raft {
namespace {

using Body = v1::RaftMessage::BodyCase;

AdmissionResult Refuse(RejectionReason reason, const ReplicaKey& from, std::string detail) {
  return {.admitted = std::nullopt, .rejection = Rejection{reason, from, std::move(detail)}};
}

bool InRange(uint64_t term, uint64_t index) {
  return Term(term) <= kGreatestTerm && LogIndex(index) <= kGreatestIndex;
}

// A position is before the first entry or at an entry, and never half of each.
bool IsPosition(uint64_t term, uint64_t index) {
  return InRange(term, index) && (term == 0) == (index == 0);
}

// What is wrong with the append's own fields; empty for nothing.
std::string ReadAppend(const v1::AppendRequest& append, Term term, Admitted& into) {
  if (!IsPosition(append.prev_term(), append.prev_index())) {
    return absl::StrCat("an append after term ", append.prev_term(), " and index ",
                        append.prev_index());
  }
  if (LogIndex(append.commit_index()) > kGreatestIndex) return "a commit index out of range";
  into.prev = {.term = Term(append.prev_term()), .index = LogIndex(append.prev_index())};
  if (into.prev.term > term) return "an append after an entry of a later term";
  LogPosition last = into.prev;
  into.entries.reserve(static_cast<size_t>(append.entries_size()));
  for (const v1::RaftEntry& proto : append.entries()) {
    std::optional<Entry> entry = FromProto(proto);
    if (!entry) return absl::StrCat("an entry that cannot be read, at index ", proto.index());
    if (entry->index != last.index + 1) {
      return absl::StrCat("index ", entry->index.value(), " after ", last.index.value());
    }
    if (entry->term < last.term || entry->term > term) {
      return absl::StrCat("an entry of term ", entry->term.value(), " after one of ",
                          last.term.value(), " in an append of term ", term.value());
    }
    last = entry->position();
    into.entries.push_back(*std::move(entry));
  }
  return "";
}

std::string ReadBody(const v1::RaftMessage& message, Admitted& into) {
  switch (message.body_case()) {
    case Body::kPreVoteRequest: {
      const auto& body = message.pre_vote_request();
      if (!IsPosition(body.last_term(), body.last_index()) || Term(body.last_term()) > into.term) {
        return "a pre-vote request whose last entry is impossible";
      }
      return "";
    }
    case Body::kVoteRequest: {
      const auto& body = message.vote_request();
      if (!IsPosition(body.last_term(), body.last_index()) || Term(body.last_term()) >= into.term) {
        return "a vote request whose last entry is impossible";
      }
      return "";
    }
    case Body::kAppendRequest:
      if (into.term == Term(0)) return "an append in term 0";
      return ReadAppend(message.append_request(), into.term, into);
    case Body::kAppendResponse: {
      const auto& body = message.append_response();
      if (!InRange(body.conflict_term(), body.conflict_index()) ||
          !InRange(0, body.rejected_index()) || !InRange(0, body.match_index()) ||
          !InRange(0, body.received_index()) || body.received_index() < body.match_index()) {
        return "an append response with indexes out of range";
      }
      return "";
    }
    case Body::kPreVoteResponse:
    case Body::kVoteResponse:
    case Body::kObserverAnnouncement:
      return "";
    case Body::BODY_NOT_SET:
      return "no body that this version knows";
  }
  return "no body that this version knows";
}

}  // namespace

AdmissionResult Admit(const Config& config, const v1::RaftMessage& message) {
  Admitted admitted;
  admitted.message = &message;
  admitted.term = Term(message.term());
  admitted.from.node = message.has_from() ? NodeId(message.from().node_id()) : kNoNode;
  const auto from_directory = DirectoryId::FromBytes(message.from().directory_id());
  if (from_directory) admitted.from.directory = *from_directory;

  const auto cluster = ClusterId::FromBytes(message.cluster_id());
  if (cluster != config.cluster_id) {
    return Refuse(RejectionReason::kWrongCluster, admitted.from,
                  absl::StrCat("it is of cluster ", cluster ? cluster->ToString() : "(unreadable)",
                               ", we are of ", config.cluster_id.ToString()));
  }
  if (!from_directory || from_directory->IsNone() || admitted.from.node < NodeId(0)) {
    return Refuse(RejectionReason::kMalformed, admitted.from, "it does not tell who sent it");
  }
  if (!message.has_to() || NodeId(message.to().node_id()) != config.self.node) {
    return Refuse(RejectionReason::kWrongNode, admitted.from,
                  absl::StrCat("it is for node ", message.to().node_id(), ", we are ",
                               config.self.node.value()));
  }
  const bool any_directory =
      message.body_case() == Body::kObserverAnnouncement && message.to().directory_id().empty();
  const auto to_directory = DirectoryId::FromBytes(message.to().directory_id());
  if (!any_directory && to_directory != config.self.directory) {
    return Refuse(RejectionReason::kWrongDirectory, admitted.from,
                  absl::StrCat("it is for directory ",
                               to_directory ? to_directory->ToString() : "(unreadable)",
                               ", we are ", config.self.directory.ToString()));
  }
  if (admitted.from == config.self) {
    return Refuse(RejectionReason::kFromSelf, admitted.from, "we sent it ourselves");
  }
  if (admitted.term > kGreatestTerm) {
    return Refuse(RejectionReason::kMalformed, admitted.from,
                  absl::StrCat("term ", message.term(), " is out of range"));
  }
  if (std::string wrong = ReadBody(message, admitted); !wrong.empty()) {
    return Refuse(RejectionReason::kMalformed, admitted.from, std::move(wrong));
  }
  return {.admitted = std::move(admitted), .rejection = std::nullopt};
}

v1::RaftEntry ToProto(const Entry& entry) {
  v1::RaftEntry proto;
  proto.set_index(entry.index.value());
  proto.set_term(entry.term.value());
  switch (entry.kind) {
    case EntryKind::kNoop:
      proto.set_kind(v1::RAFT_ENTRY_KIND_NOOP);
      break;
    case EntryKind::kVoters:
      proto.set_kind(v1::RAFT_ENTRY_KIND_VOTERS);
      break;
    case EntryKind::kData:
      proto.set_kind(v1::RAFT_ENTRY_KIND_DATA);
      break;
  }
  proto.set_data(*entry.data);
  return proto;
}

std::optional<Entry> FromProto(const v1::RaftEntry& proto) {
  if (proto.index() == 0 || proto.term() == 0 || !InRange(proto.term(), proto.index())) {
    return std::nullopt;
  }
  Entry entry{.index = LogIndex(proto.index()), .term = Term(proto.term()), .data = nullptr};
  switch (proto.kind()) {
    case v1::RAFT_ENTRY_KIND_NOOP:
      entry.kind = EntryKind::kNoop;
      break;
    case v1::RAFT_ENTRY_KIND_VOTERS:
      if (!VoterSet::Parse(proto.data()).ok()) return std::nullopt;
      entry.kind = EntryKind::kVoters;
      break;
    case v1::RAFT_ENTRY_KIND_DATA:
      entry.kind = EntryKind::kData;
      break;
    default:
      return std::nullopt;
  }
  entry.data = std::make_shared<const std::string>(proto.data());
  return entry;
}

}  // namespace conclave::raft
