#include "client/producer/producer_record.h"

namespace conclave {

size_t BufferBytes(const ProducerRecord& record) {
  // The callback, and the record's place in its batch.
  size_t bytes = 96;
  if (record.key) bytes += record.key->size();
  if (record.value) bytes += record.value->size();
  for (const auto& [key, value] : record.headers) {
    bytes += key.size() + (value ? value->size() : 0) + 16;
  }
  return bytes;
}

RecordView ViewOf(const ProducerRecord& record, int64_t now_ms) {
  RecordView view;
  view.timestamp_ms = record.timestamp_ms.value_or(now_ms);
  if (record.key) view.key = *record.key;
  if (record.value) view.value = *record.value;
  for (const auto& [key, value] : record.headers) {
    HeaderView& header = view.headers.emplace_back();
    header.key = key;
    if (value) header.value = *value;
  }
  return view;
}

}  // namespace conclave
