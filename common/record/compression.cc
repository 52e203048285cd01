#include "common/record/compression.h"

#include <lz4frame.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"

namespace conclave {
namespace {

// Where zstd's speed and ratio meet for log data; Kafka's default, too.
constexpr int kZstdLevel = 3;
constexpr size_t kGrowBytes = 64 * 1024;

absl::Status Unsupported(Compression codec) {
  return MakeError(
      v1::UNSUPPORTED_COMPRESSION_TYPE,
      absl::StrCat(CompressionName(codec), " comes in a later release; use lz4, zstd or none"));
}

absl::Status Malformed(Compression codec, const std::string& why) {
  return MakeError(v1::INVALID_RECORD,
                   absl::StrCat("its ", CompressionName(codec), " data is malformed: ", why));
}

absl::Status TooLarge(Compression codec, size_t limit) {
  return MakeError(
      v1::MESSAGE_TOO_LARGE,
      absl::StrCat("its ", CompressionName(codec), " data unpacks to more than ", limit, " bytes"));
}

absl::Status CompressLz4(std::string_view bytes, std::string& out) {
  LZ4F_preferences_t preferences;
  std::memset(&preferences, 0, sizeof(preferences));
  preferences.frameInfo.blockMode = LZ4F_blockIndependent;
  preferences.frameInfo.blockSizeID = LZ4F_max64KB;
  const size_t start = out.size();
  const size_t bound = LZ4F_compressFrameBound(bytes.size(), &preferences);
  out.resize(start + bound);
  const size_t size =
      LZ4F_compressFrame(out.data() + start, bound, bytes.data(), bytes.size(), &preferences);
  if (LZ4F_isError(size) != 0) {
    return MakeError(v1::UNKNOWN_SERVER_ERROR,
                     absl::StrCat("lz4 could not compress: ", LZ4F_getErrorName(size)));
  }
  out.resize(start + size);
  return absl::OkStatus();
}

absl::Status CompressZstd(std::string_view bytes, std::string& out) {
  const size_t start = out.size();
  const size_t bound = ZSTD_compressBound(bytes.size());
  out.resize(start + bound);
  const size_t size =
      ZSTD_compress(out.data() + start, bound, bytes.data(), bytes.size(), kZstdLevel);
  if (ZSTD_isError(size) != 0) {
    return MakeError(v1::UNKNOWN_SERVER_ERROR,
                     absl::StrCat("zstd could not compress: ", ZSTD_getErrorName(size)));
  }
  out.resize(start + size);
  return absl::OkStatus();
}

// Room for more, up to one byte past the limit: what fills that is too large.
size_t GrowTo(size_t have, size_t limit) {
  return std::min(std::max(2 * have, have + kGrowBytes), limit + 1);
}

absl::StatusOr<std::string> DecompressLz4(std::string_view bytes, size_t limit) {
  LZ4F_dctx* raw = nullptr;
  if (LZ4F_isError(LZ4F_createDecompressionContext(&raw, LZ4F_VERSION)) != 0) {
    return MakeError(v1::UNKNOWN_SERVER_ERROR, "lz4 could not start");
  }
  const std::unique_ptr<LZ4F_dctx, decltype(&LZ4F_freeDecompressionContext)> context(
      raw, &LZ4F_freeDecompressionContext);
  std::string out;
  size_t have = 0;
  // Not 0: a frame has begun, or none was there at all.
  size_t expected = 1;
  while (!bytes.empty() || expected != 0) {
    if (have == out.size()) out.resize(GrowTo(have, limit));
    size_t room = out.size() - have;
    size_t taken = bytes.size();
    expected =
        LZ4F_decompress(context.get(), out.data() + have, &room, bytes.data(), &taken, nullptr);
    if (LZ4F_isError(expected) != 0)
      return Malformed(Compression::kLz4, LZ4F_getErrorName(expected));
    have += room;
    bytes.remove_prefix(taken);
    if (have > limit) return TooLarge(Compression::kLz4, limit);
    if (taken == 0 && room == 0) return Malformed(Compression::kLz4, "it ends within a frame");
  }
  out.resize(have);
  return out;
}

absl::StatusOr<std::string> DecompressZstd(std::string_view bytes, size_t limit) {
  const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(),
                                                                     &ZSTD_freeDCtx);
  if (context == nullptr) return MakeError(v1::UNKNOWN_SERVER_ERROR, "zstd could not start");
  std::string out;
  ZSTD_inBuffer in = {bytes.data(), bytes.size(), 0};
  size_t have = 0;
  size_t expected = 1;
  while (in.pos < in.size || expected != 0) {
    if (have == out.size()) out.resize(GrowTo(have, limit));
    ZSTD_outBuffer room = {out.data(), out.size(), have};
    const size_t taken_before = in.pos;
    expected = ZSTD_decompressStream(context.get(), &room, &in);
    if (ZSTD_isError(expected) != 0) {
      return Malformed(Compression::kZstd, ZSTD_getErrorName(expected));
    }
    const bool stuck = room.pos == have && in.pos == taken_before;
    have = room.pos;
    if (have > limit) return TooLarge(Compression::kZstd, limit);
    if (stuck && expected != 0) return Malformed(Compression::kZstd, "it ends within a frame");
  }
  out.resize(have);
  return out;
}

}  // namespace

absl::Status Compress(Compression codec, std::string_view bytes, std::string& out) {
  switch (codec) {
    case Compression::kNone:
      out.append(bytes);
      return absl::OkStatus();
    case Compression::kLz4:
      return CompressLz4(bytes, out);
    case Compression::kZstd:
      return CompressZstd(bytes, out);
    default:
      return Unsupported(codec);
  }
}

absl::StatusOr<std::string> Decompress(Compression codec, std::string_view bytes, size_t limit) {
  switch (codec) {
    case Compression::kNone:
      if (bytes.size() > limit) return TooLarge(codec, limit);
      return std::string(bytes);
    case Compression::kLz4:
      return DecompressLz4(bytes, limit);
    case Compression::kZstd:
      return DecompressZstd(bytes, limit);
    default:
      return Unsupported(codec);
  }
}

}  // namespace conclave
