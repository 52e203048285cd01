#include "raft/storage/entry_codec.h"

#include <gtest/gtest.h>

#include <string>

#include "common/checksum/crc32c.h"
#include "common/error/error.h"
#include "raft/storage/testing/history.h"

namespace conclave::raft::codec {
namespace {

using conclave::raft::testing::MakeEntry;
using conclave::raft::testing::MakeKey;

std::string Hex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (char c : bytes) {
    hex.push_back(kDigits[static_cast<uint8_t>(c) >> 4]);
    hex.push_back(kDigits[static_cast<uint8_t>(c) & 15]);
  }
  return hex;
}

std::string WithChecksum(std::string bytes) {
  const uint32_t crc = Crc32c(bytes);
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(crc >> shift));
  return bytes;
}

const Entry kEntry = MakeEntry(300, 5, "abc");
const HardState kHardState{.term = Term(300), .vote = MakeKey(2)};

// What is on disks already must be readable for ever: these bytes change only with the format
// version.
TEST(EntryCodecTest, GoldenBytes) {
  EXPECT_EQ(Hex(EncodeFormat()),
            "636f6e636c6176652d726166742d6c6f672031"
            "f5ec311a");
  EXPECT_EQ(Hex(EntryKey(LogIndex(300))), "6c000000000000012c");
  EXPECT_EQ(Hex(EncodeEntry(kEntry)),
            "08ac02100518032203616263"
            "34781784");
  EXPECT_EQ(Hex(EncodeEntry(MakeEntry(1, 1, "", EntryKind::kNoop))),
            "080110011801"
            "13a29940");
  EXPECT_EQ(Hex(EncodeEntry(MakeEntry(2, 1, "v", EntryKind::kVoters))),
            "0802100118022201"
            "76"
            "fd173a8d");
  EXPECT_EQ(Hex(EncodeHardState(kHardState)),
            "08ac02121408021210"
            "0000000000000002"
            "0000000000000007"
            "ee0dcb9b");
  EXPECT_EQ(Hex(EncodeHardState(HardState())), "00000000");
}

TEST(EntryCodecTest, RoundTrips) {
  const std::string all_bytes = [] {
    std::string bytes;
    for (int i = 0; i < 256; ++i) bytes.push_back(static_cast<char>(i));
    return bytes;
  }();
  for (EntryKind kind : {EntryKind::kNoop, EntryKind::kVoters, EntryKind::kData}) {
    for (const std::string& data : {std::string(), all_bytes, std::string(100'000, '\0')}) {
      const auto entry = DecodeEntry(EncodeEntry(MakeEntry(~0ULL, ~0ULL - 1, data, kind)));
      ASSERT_TRUE(entry.ok()) << entry.status();
      EXPECT_EQ(entry->index, LogIndex(~0ULL));
      EXPECT_EQ(entry->term, Term(~0ULL - 1));
      EXPECT_EQ(entry->kind, kind);
      EXPECT_EQ(*entry->data, data);
    }
  }
  for (const HardState& state : {HardState(), HardState{Term(1), std::nullopt}, kHardState}) {
    const auto decoded = DecodeHardState(EncodeHardState(state));
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(*decoded, state);
  }
  EXPECT_TRUE(CheckFormat(EncodeFormat()).ok());
}

TEST(EntryCodecTest, KeysSortAsIndexesDo) {
  std::string previous;
  for (uint64_t index : {0ULL, 1ULL, 255ULL, 256ULL, 65536ULL, 1ULL << 32, 1ULL << 63, ~0ULL}) {
    const std::string key = EntryKey(LogIndex(index));
    EXPECT_LT(previous, key);
    EXPECT_EQ(ParseEntryKey(key), LogIndex(index));
    previous = key;
  }
  EXPECT_EQ(ParseEntryKey(""), std::nullopt);
  EXPECT_EQ(ParseEntryKey("l"), std::nullopt);
  EXPECT_EQ(ParseEntryKey(EntryKey(LogIndex(1)) + "x"), std::nullopt);
  EXPECT_EQ(ParseEntryKey("m" + EntryKey(LogIndex(1)).substr(1)), std::nullopt);
}

// Every flipped bit, every cut and every byte too many.
template <class Decode>
void ExpectRefusedWhenDamaged(const std::string& good, Decode decode) {
  for (size_t i = 0; i < good.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      EXPECT_EQ(ErrorCodeOf(decode(bad)), v1::STORAGE_ERROR) << "bit " << bit << " of byte " << i;
    }
    EXPECT_EQ(ErrorCodeOf(decode(good.substr(0, i))), v1::STORAGE_ERROR) << "cut at " << i;
  }
  EXPECT_EQ(ErrorCodeOf(decode(good + '\0')), v1::STORAGE_ERROR);
}

TEST(EntryCodecTest, DamageIsRefused) {
  ExpectRefusedWhenDamaged(EncodeFormat(), [](const std::string& v) { return CheckFormat(v); });
  ExpectRefusedWhenDamaged(EncodeEntry(kEntry),
                           [](const std::string& v) { return DecodeEntry(v).status(); });
  ExpectRefusedWhenDamaged(EncodeHardState(kHardState),
                           [](const std::string& v) { return DecodeHardState(v).status(); });
}

TEST(EntryCodecTest, WhatAnotherVersionWroteIsRefusedThoughItsChecksumMatches) {
  EXPECT_EQ(ErrorCodeOf(CheckFormat(WithChecksum("conclave-raft-log 2"))), v1::UNSUPPORTED_VERSION);
  // A kind that this version does not know; field 3 is the kind.
  EXPECT_EQ(ErrorCodeOf(DecodeEntry(WithChecksum("\x08\x01\x10\x01\x18\x09")).status()),
            v1::STORAGE_ERROR);
  EXPECT_EQ(ErrorCodeOf(DecodeEntry(WithChecksum("no message \xff")).status()), v1::STORAGE_ERROR);
  // A vote for a directory id of three bytes.
  EXPECT_EQ(ErrorCodeOf(DecodeHardState(WithChecksum("\x08\x01\x12\x05\x12\x03xyz")).status()),
            v1::STORAGE_ERROR);
}

}  // namespace
}  // namespace conclave::raft::codec
