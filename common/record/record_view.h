#ifndef CONCLAVE_COMMON_RECORD_RECORD_VIEW_H_
#define CONCLAVE_COMMON_RECORD_RECORD_VIEW_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "common/types/ids.h"

namespace conclave {

// Null and empty differ in keys and values, as in Kafka.
struct HeaderView {
  std::string_view key;
  std::optional<std::string_view> value;

  friend bool operator==(const HeaderView&, const HeaderView&) = default;
};

// A record whose bytes belong to somebody else.
struct RecordView {
  // Given by the batch; a builder counts from 0 by itself.
  Offset offset;
  // Milliseconds since 1970.
  int64_t timestamp_ms = 0;
  std::optional<std::string_view> key;
  std::optional<std::string_view> value;
  std::vector<HeaderView> headers;

  friend bool operator==(const RecordView&, const RecordView&) = default;
};

}  // namespace conclave

#endif  // CONCLAVE_COMMON_RECORD_RECORD_VIEW_H_
