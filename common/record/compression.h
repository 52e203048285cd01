#ifndef CONCLAVE_COMMON_RECORD_COMPRESSION_H_
#define CONCLAVE_COMMON_RECORD_COMPRESSION_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/record/batch_header.h"

// The codecs of record batches: lz4 in its standard frame format with independent blocks, as Kafka
// writes and demands it for v2 (KIP-57), and zstd (KIP-110). Others: UNSUPPORTED_COMPRESSION_TYPE.
namespace conclave {

// Appends the compressed bytes to `out`.
absl::Status Compress(Compression codec, std::string_view bytes, std::string& out);

// INVALID_RECORD if `bytes` are not one or more whole frames; MESSAGE_TOO_LARGE if they give more
// than `limit` bytes.
// Memory stays within `limit` and the codec's window (128 MiB at most, of zstd).
absl::StatusOr<std::string> Decompress(Compression codec, std::string_view bytes, size_t limit);

}  // namespace conclave

#endif  // CONCLAVE_COMMON_RECORD_COMPRESSION_H_
