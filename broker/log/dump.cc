#include "broker/log/dump.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "broker/log/batch_scanner.h"
#include "broker/log/segment.h"
#include "broker/log/segment_index.h"
#include "common/buffer/buffer.h"
#include "common/error/error.h"
#include "common/record/batch_header.h"
#include "common/record/batch_reader.h"
#include "common/record/record_view.h"
#include "common/text/utf8.h"

namespace conclave {
namespace {

void Put(nlohmann::json& object, const std::string& name,
         const std::optional<std::string_view>& bytes) {
  if (!bytes) {
    object[name] = nullptr;
  } else if (IsValidUtf8(*bytes)) {
    object[name] = std::string(*bytes);
  } else {
    object[name + "_base64"] = absl::Base64Escape(absl::string_view(bytes->data(), bytes->size()));
  }
}

nlohmann::json RecordJson(const RecordView& record) {
  nlohmann::json json = {{"offset", record.offset.value()}, {"timestamp", record.timestamp_ms}};
  Put(json, "key", record.key);
  Put(json, "value", record.value);
  if (!record.headers.empty()) json["headers"] = nlohmann::json::array();
  for (const HeaderView& header : record.headers) {
    nlohmann::json& added = json["headers"].emplace_back(nlohmann::json::object());
    Put(added, "key", header.key);
    Put(added, "value", header.value);
  }
  return json;
}

nlohmann::json BatchJson(const ScannedBatch& batch, const Buffer& bytes) {
  const BatchHeader& header = batch.header;
  nlohmann::json json = {
      {"position", batch.position},
      {"size", header.size_bytes()},
      {"base_offset", header.base_offset.value()},
      {"last_offset", header.last_offset().value()},
      {"leader_epoch", header.leader_epoch.value()},
      {"crc", absl::StrFormat("%08x", header.crc)},
      {"crc_valid", ComputeBatchCrc(bytes) == header.crc},
      {"codec", header.compression() ? CompressionName(*header.compression()) : "unknown"},
      {"timestamp_type", header.is_log_append_time() ? "LogAppendTime" : "CreateTime"},
      {"transactional", header.is_transactional()},
      {"control", header.is_control()},
      {"base_timestamp", header.base_timestamp_ms},
      {"max_timestamp", header.max_timestamp_ms},
      {"count", header.count},
  };
  if (header.has_producer()) {
    json["producer_id"] = header.producer_id.value();
    json["producer_epoch"] = header.producer_epoch.value();
    json["base_sequence"] = header.base_sequence;
    json["last_sequence"] = header.last_sequence();
  }
  return json;
}

void AddRecords(nlohmann::json& json, const Buffer& bytes) {
  json["records"] = nlohmann::json::array();
  auto reader = BatchReader::Open(bytes);
  absl::Status status = reader.status();
  RecordView record;
  while (status.ok()) {
    const auto more = reader->Next(record);
    status = more.status();
    if (!status.ok()) break;
    if (!*more) return;
    json["records"].push_back(RecordJson(record));
  }
  json["error"] = Describe(status);
}

absl::StatusOr<Offset> BaseOf(const std::string& path, std::string_view suffix) {
  const size_t slash = path.rfind('/');
  std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  if (!name.ends_with(suffix)) {
    return MakeError(v1::INVALID_REQUEST, absl::StrCat(path, " is no segment's index"));
  }
  name.replace(name.size() - suffix.size(), suffix.size(), ".log");
  const auto base = ParseSegmentName(name);
  if (base) return *base;
  return MakeError(v1::INVALID_REQUEST,
                   absl::StrCat(path, " is not named by a segment's base offset in 20 digits"));
}

}  // namespace

absl::Status DumpSegment(FileSystem& fs, const std::string& path, bool records,
                         const EmitLine& emit) {
  const auto file = fs.Open(path, FileSystem::OpenMode::kReadOnly);
  if (!file.ok()) return file.status();
  BatchScanner scanner(**file, 0, (*file)->size(), BatchScanner::Depth::kHeaders);
  for (;;) {
    const auto batch = scanner.Next();
    if (!batch.ok()) return batch.status();
    if (!*batch) break;
    auto bytes =
        (*file)->ReadAt((*batch)->position, static_cast<size_t>((*batch)->header.size_bytes()));
    if (!bytes.ok()) return bytes.status();
    const Buffer buffer(*std::move(bytes));
    nlohmann::json json = BatchJson(**batch, buffer);
    if (records) AddRecords(json, buffer);
    emit(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  if (scanner.stop_reason().empty()) return absl::OkStatus();
  return MakeError(v1::STORAGE_ERROR,
                   absl::StrCat(path, ": at byte ", scanner.position(), ": ", scanner.stop_reason(),
                                ". A live log may end so; else the file is damaged from there on"));
}

absl::Status DumpIndex(FileSystem& fs, const std::string& path, const EmitLine& emit) {
  const bool by_time = path.ends_with(".timeindex");
  const auto base = BaseOf(path, by_time ? ".timeindex" : ".index");
  if (!base.ok()) return base.status();
  const auto bytes = ReadWholeFile(fs, path, kMaxSegmentBytes);
  if (!bytes.ok()) return bytes.status();
  const size_t entry_bytes = by_time ? kTimeIndexEntryBytes : kIndexEntryBytes;
  for (size_t at = 0; at + entry_bytes <= bytes->size(); at += entry_bytes) {
    const std::string_view entry_view = std::string_view(*bytes).substr(at, entry_bytes);
    if (by_time) {
      const TimeIndexEntry entry = ParseTimeIndexEntry(entry_view);
      emit(nlohmann::json({{"timestamp", entry.timestamp_ms},
                           {"offset", base->value() + entry.relative_offset}})
               .dump());
    } else {
      const IndexEntry entry = ParseIndexEntry(entry_view);
      emit(nlohmann::json(
               {{"offset", base->value() + entry.relative_offset}, {"position", entry.position}})
               .dump());
    }
  }
  return absl::OkStatus();
}

}  // namespace conclave
