#include "common/record/record_conversion.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "common/record/batch_builder.h"
#include "common/record/batch_reader.h"
#include "common/text/utf8.h"

namespace conclave {

absl::StatusOr<Buffer> BatchFromRecords(
    const google::protobuf::RepeatedPtrField<v1::Record>& records, WallTime now,
    Compression codec) {
  if (records.empty()) {
    return MakeError(v1::INVALID_RECORD, "there are no records to store; send one at least");
  }
  BatchBuilder builder(codec);
  RecordView view;
  for (const v1::Record& record : records) {
    view.timestamp_ms = record.has_timestamp_ms() ? record.timestamp_ms() : now.unix_millis();
    if (view.timestamp_ms < 0) {
      return MakeError(v1::INVALID_TIMESTAMP, absl::StrCat("timestamp_ms is ", view.timestamp_ms,
                                                           "; it counts milliseconds since 1970"));
    }
    view.key.reset();
    if (record.has_key()) view.key = record.key();
    view.value.reset();
    if (record.has_value()) view.value = record.value();
    view.headers.clear();
    for (const v1::RecordHeader& header : record.headers()) {
      HeaderView& added = view.headers.emplace_back();
      added.key = header.key();
      if (header.has_value()) added.value = header.value();
    }
    builder.Add(view);
  }
  return builder.Finish();
}

void FillRecord(const RecordView& view, v1::Record& out) {
  out.set_offset(view.offset.value());
  out.set_timestamp_ms(view.timestamp_ms);
  if (view.key) out.set_key(std::string(*view.key));
  if (view.value) out.set_value(std::string(*view.value));
  for (const HeaderView& header : view.headers) {
    v1::RecordHeader* added = out.add_headers();
    added->set_key(ToValidUtf8(header.key));
    if (header.value) added->set_value(std::string(*header.value));
  }
}

absl::Status AppendRecords(const Buffer& batch, Offset from,
                           google::protobuf::RepeatedPtrField<v1::Record>& out) {
  auto reader = BatchReader::Open(batch);
  if (!reader.ok()) return reader.status();
  RecordView view;
  for (;;) {
    const auto more = reader->Next(view);
    if (!more.ok()) return more.status();
    if (!*more) return absl::OkStatus();
    if (view.offset >= from) FillRecord(view, *out.Add());
  }
}

namespace {

size_t WeightOf(const RecordView& record) {
  size_t weight = kRecordWeight + record.key.value_or("").size() + record.value.value_or("").size();
  for (const HeaderView& header : record.headers) {
    weight += kRecordWeight + header.key.size() + header.value.value_or("").size();
  }
  return weight;
}

}  // namespace

AppendedRecords AppendRecordsWithin(const RecordLimits& limits, const Buffer& batch, Offset from,
                                    google::protobuf::RepeatedPtrField<v1::Record>& out) {
  AppendedRecords appended;
  appended.next = from;
  auto reader = BatchReader::Open(batch, limits.max_unpacked_bytes);
  appended.status = reader.status();
  if (!reader.ok()) {
    appended.unpacked_bytes = limits.max_unpacked_bytes;
    const auto header = ParseBatchHeader(batch, 0);
    if (header && ErrorCodeOf(appended.status) != v1::MESSAGE_TOO_LARGE) {
      appended.next = header->next_offset();
    }
    return appended;
  }
  appended.unpacked_bytes = reader->unpacked_bytes();
  RecordView view;
  for (;;) {
    const auto more = reader->Next(view);
    if (!more.ok() || !*more) {
      appended.status = more.status();
      appended.next = reader->header().next_offset();
      return appended;
    }
    if (view.offset < from) continue;
    const size_t weight = WeightOf(view);
    const bool must = limits.at_least_one && appended.bytes == 0;
    if (!must && appended.bytes + weight > limits.max_bytes) return appended;
    FillRecord(view, *out.Add());
    appended.bytes += weight;
    appended.next = view.offset + 1;
  }
}

}  // namespace conclave
