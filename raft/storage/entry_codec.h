#ifndef CONCLAVE_RAFT_STORAGE_ENTRY_CODEC_H_
#define CONCLAVE_RAFT_STORAGE_ENTRY_CODEC_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "raft/core/types.h"

// Keys and values of the Raft log's database, to the byte (docs/formats.md). Every value ends with
// the CRC-32C of what is before it, for RocksDB's own checksums do not cover what a wrong program
// writes, and a dump can check a value by itself.
namespace conclave::raft::codec {

inline constexpr std::string_view kFormatKey = "f";
inline constexpr std::string_view kHardStateKey = "h";
inline constexpr char kEntryPrefix = 'l';

// The value under kFormatKey: the version of this layout.
std::string EncodeFormat();
// An error that names the version, if it is not ours.
absl::Status CheckFormat(std::string_view value);

// 'l' and the index as 8 bytes, big-endian, so that keys sort as indexes do.
std::string EntryKey(LogIndex index);
std::optional<LogIndex> ParseEntryKey(std::string_view key);

std::string EncodeEntry(const Entry& entry);
absl::StatusOr<Entry> DecodeEntry(std::string_view value);

std::string EncodeHardState(const HardState& state);
absl::StatusOr<HardState> DecodeHardState(std::string_view value);

}  // namespace conclave::raft::codec

#endif  // CONCLAVE_RAFT_STORAGE_ENTRY_CODEC_H_
