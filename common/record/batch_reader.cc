#include "common/record/batch_reader.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "common/record/batch_check.h"
#include "common/record/compression.h"
#include "common/record/varint.h"

namespace conclave {
namespace {

// Null is length -1; any other negative length is malformed.
bool TakeBytes(std::string_view& in, std::optional<std::string_view>& out) {
  int32_t length = 0;
  if (!TakeVarint(in, length) || length < -1) return false;
  out.reset();
  if (length == -1) return true;
  if (static_cast<size_t>(length) > in.size()) return false;
  out = in.substr(0, static_cast<size_t>(length));
  in.remove_prefix(static_cast<size_t>(length));
  return true;
}

bool TakeHeaders(std::string_view& in, std::vector<HeaderView>& headers) {
  headers.clear();
  int32_t count = 0;
  // A header has two bytes at least: a count beyond that is refused before it makes us allocate.
  if (!TakeVarint(in, count) || count < 0 || static_cast<size_t>(count) > in.size() / 2) {
    return false;
  }
  headers.reserve(static_cast<size_t>(count));
  for (int32_t i = 0; i < count; ++i) {
    std::optional<std::string_view> key;
    HeaderView header;
    if (!TakeBytes(in, key) || !key || !TakeBytes(in, header.value)) return false;
    header.key = *key;
    headers.push_back(header);
  }
  return true;
}

// The records' bytes in one piece.
absl::StatusOr<Slice> Records(const Buffer& batch, Compression codec, size_t limit) {
  const Buffer body = batch.Sub(kBatchHeaderBytes, batch.size() - kBatchHeaderBytes);
  if (body.empty()) return Slice();
  Slice whole =
      body.slices().size() == 1 ? body.slices().front() : Slice::FromString(body.ToString());
  if (codec == Compression::kNone) return whole;
  auto unpacked = Decompress(codec, whole.view(), limit);
  if (!unpacked.ok()) return unpacked.status();
  return Slice::FromString(*std::move(unpacked));
}

}  // namespace

absl::StatusOr<BatchReader> BatchReader::Open(const Buffer& batch, size_t max_unpacked_bytes) {
  const auto header = ParseBatchHeader(batch, 0);
  if (!header) return MakeError(v1::CORRUPT_MESSAGE, "the bytes end within a batch's header");
  if (absl::Status status = CheckBatchHeader(*header); !status.ok()) return status;
  if (header->size_bytes() != static_cast<int64_t>(batch.size())) {
    return MakeError(
        v1::CORRUPT_MESSAGE,
        absl::StrCat("the batch at offset ", header->base_offset.value(), " has ",
                     header->size_bytes(), " bytes, and ", batch.size(), " were given"));
  }
  if (absl::Status status = CheckCodec(*header); !status.ok()) {
    return MakeError(ErrorCodeOf(status),
                     absl::StrCat("the batch at offset ", header->base_offset.value(), ": ",
                                  std::string(status.message())));
  }
  BatchReader reader;
  reader.header_ = *header;
  auto records = Records(batch, *header->compression(), max_unpacked_bytes);
  if (ErrorCodeOf(records.status()) == v1::MESSAGE_TOO_LARGE) {
    return MakeError(v1::MESSAGE_TOO_LARGE,
                     absl::StrCat("the batch at offsets ", header->base_offset.value(), " to ",
                                  header->last_offset().value(), " is too large to be read: ",
                                  std::string(records.status().message())));
  }
  if (!records.ok()) return reader.Malformed(std::string(records.status().message()));
  reader.keep_ = *std::move(records);
  reader.rest_ = reader.keep_.view();
  return reader;
}

absl::Status BatchReader::Malformed(const std::string& what) {
  failed_ = MakeError(v1::INVALID_RECORD,
                      absl::StrCat("the batch at offsets ", header_.base_offset.value(), " to ",
                                   header_.last_offset().value(),
                                   " is malformed inside, as its producer sent it: ", what,
                                   ". Its records from there on cannot be read; go on at offset ",
                                   header_.next_offset().value()));
  return failed_;
}

absl::StatusOr<bool> BatchReader::Next(RecordView& record) {
  if (!failed_.ok()) return failed_;
  if (read_ == header_.count) {
    if (!rest_.empty()) {
      return Malformed(absl::StrCat(rest_.size(), " bytes follow its ", read_, " records"));
    }
    return false;
  }
  int32_t length = 0;
  if (!TakeVarint(rest_, length) || length < 0 || static_cast<size_t>(length) > rest_.size()) {
    return Malformed(absl::StrCat("record ", read_, " of ", header_.count, " is cut short"));
  }
  const std::string_view body = rest_.substr(0, static_cast<size_t>(length));
  rest_.remove_prefix(static_cast<size_t>(length));
  if (absl::Status status = ReadRecord(body, record); !status.ok()) return status;
  ++read_;
  return true;
}

absl::Status BatchReader::ReadRecord(std::string_view body, RecordView& record) {
  const auto malformed = [&](const char* part) {
    return Malformed(absl::StrCat("record ", read_, " has no valid ", part));
  };
  if (body.empty()) return malformed("attributes");
  body.remove_prefix(1);
  int64_t timestamp_delta = 0;
  if (!TakeVarint(body, timestamp_delta) ||
      __builtin_add_overflow(header_.base_timestamp_ms, timestamp_delta, &record.timestamp_ms)) {
    return malformed("timestamp");
  }
  if (header_.is_log_append_time()) record.timestamp_ms = header_.max_timestamp_ms;
  int32_t offset_delta = 0;
  if (!TakeVarint(body, offset_delta) || offset_delta <= last_delta_ ||
      offset_delta > header_.last_offset_delta) {
    return malformed("offset");
  }
  record.offset = header_.base_offset + offset_delta;
  if (!TakeBytes(body, record.key)) return malformed("key");
  if (!TakeBytes(body, record.value)) return malformed("value");
  if (!TakeHeaders(body, record.headers)) return malformed("headers");
  if (!body.empty()) return malformed("end");
  last_delta_ = offset_delta;
  return absl::OkStatus();
}

}  // namespace conclave
