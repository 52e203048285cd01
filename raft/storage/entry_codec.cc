#include "raft/storage/entry_codec.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/checksum/crc32c.h"
#include "common/error/error.h"
#include "conclave/v1/raft.pb.h"

namespace conclave::raft::codec {
namespace {

constexpr std::string_view kFormatVersion = "conclave-raft-log 1";

std::string WithChecksum(std::string bytes) {
  const uint32_t crc = Crc32c(bytes);
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(crc >> shift));
  return bytes;
}

absl::Status Damaged(const char* what, const std::string& how) {
  return MakeError(v1::STORAGE_ERROR, absl::StrCat("the ", what, " is damaged: ", how));
}

// The bytes before the checksum.
absl::StatusOr<std::string_view> Checked(const char* what, std::string_view value) {
  if (value.size() < 4) return Damaged(what, absl::StrCat("it has ", value.size(), " bytes"));
  const std::string_view body = value.substr(0, value.size() - 4);
  uint32_t stored = 0;
  for (char c : value.substr(body.size())) stored = stored << 8 | static_cast<uint8_t>(c);
  if (stored != Crc32c(body)) return Damaged(what, "its checksum does not match");
  return body;
}

template <class Message>
absl::StatusOr<Message> Parsed(const char* what, std::string_view value) {
  const auto body = Checked(what, value);
  if (!body.ok()) return body.status();
  Message message;
  if (!message.ParseFromArray(body->data(), static_cast<int>(body->size()))) {
    return Damaged(what,
                   "its checksum matches and its bytes are no such record; was it written "
                   "by another version?");
  }
  return message;
}

v1::RaftEntryKind ToProto(EntryKind kind) {
  switch (kind) {
    case EntryKind::kNoop:
      return v1::RAFT_ENTRY_KIND_NOOP;
    case EntryKind::kVoters:
      return v1::RAFT_ENTRY_KIND_VOTERS;
    case EntryKind::kData:
      return v1::RAFT_ENTRY_KIND_DATA;
  }
  return v1::RAFT_ENTRY_KIND_UNSPECIFIED;
}

std::optional<EntryKind> FromProto(v1::RaftEntryKind kind) {
  switch (kind) {
    case v1::RAFT_ENTRY_KIND_NOOP:
      return EntryKind::kNoop;
    case v1::RAFT_ENTRY_KIND_VOTERS:
      return EntryKind::kVoters;
    case v1::RAFT_ENTRY_KIND_DATA:
      return EntryKind::kData;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::string EncodeFormat() { return WithChecksum(std::string(kFormatVersion)); }

absl::Status CheckFormat(std::string_view value) {
  const auto body = Checked("format record", value);
  if (!body.ok()) return body.status();
  if (*body == kFormatVersion) return absl::OkStatus();
  return MakeError(v1::UNSUPPORTED_VERSION,
                   absl::StrCat("the log's format is \"", std::string(*body),
                                "\", and this version "
                                "reads \"",
                                std::string(kFormatVersion), "\""));
}

std::string EntryKey(LogIndex index) {
  std::string key(1, kEntryPrefix);
  for (int shift = 56; shift >= 0; shift -= 8) {
    key.push_back(static_cast<char>(index.value() >> shift));
  }
  return key;
}

std::optional<LogIndex> ParseEntryKey(std::string_view key) {
  if (key.size() != 9 || key[0] != kEntryPrefix) return std::nullopt;
  uint64_t index = 0;
  for (char c : key.substr(1)) index = index << 8 | static_cast<uint8_t>(c);
  return LogIndex(index);
}

std::string EncodeEntry(const Entry& entry) {
  v1::RaftEntry message;
  message.set_index(entry.index.value());
  message.set_term(entry.term.value());
  message.set_kind(ToProto(entry.kind));
  message.set_data(*entry.data);
  return WithChecksum(message.SerializeAsString());
}

absl::StatusOr<Entry> DecodeEntry(std::string_view value) {
  auto message = Parsed<v1::RaftEntry>("entry", value);
  if (!message.ok()) return message.status();
  const auto kind = FromProto(message->kind());
  if (!kind) {
    return Damaged("entry", absl::StrCat("its kind is ", static_cast<int>(message->kind())));
  }
  Entry entry;
  entry.index = LogIndex(message->index());
  entry.term = Term(message->term());
  entry.kind = *kind;
  entry.data = std::make_shared<const std::string>(std::move(*message->mutable_data()));
  return entry;
}

std::string EncodeHardState(const HardState& state) {
  v1::HardState message;
  message.set_term(state.term.value());
  if (state.vote) {
    message.mutable_vote()->set_node_id(state.vote->node.value());
    message.mutable_vote()->set_directory_id(state.vote->directory.ToBytes());
  }
  return WithChecksum(message.SerializeAsString());
}

absl::StatusOr<HardState> DecodeHardState(std::string_view value) {
  const auto message = Parsed<v1::HardState>("term and vote", value);
  if (!message.ok()) return message.status();
  HardState state;
  state.term = Term(message->term());
  if (message->has_vote()) {
    const auto directory = DirectoryId::FromBytes(message->vote().directory_id());
    if (!directory) return Damaged("term and vote", "the directory id is no 16 bytes");
    state.vote = ReplicaKey{NodeId(message->vote().node_id()), *directory};
  }
  return state;
}

}  // namespace conclave::raft::codec
