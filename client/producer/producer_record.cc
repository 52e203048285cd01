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

}  // namespace conclave
