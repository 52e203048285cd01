#include "broker/log/offset_checkpoint.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "broker/log/sealed_json.h"

namespace conclave {
namespace {

constexpr int kVersion = 1;

}  // namespace

OffsetCheckpoint::OffsetCheckpoint(FileSystem& fs, const std::string& data_directory,
                                   const std::string& name)
    : fs_(fs), path_(JoinPath(data_directory, name)) {}

absl::Status OffsetCheckpoint::Write(const Offsets& offsets) const {
  nlohmann::json entries = nlohmann::json::array();
  for (const auto& [key, offset] : offsets) {
    entries.push_back({key.topic_id.ToString(), key.partition.value(), offset.value()});
  }
  return WriteSealedJson(fs_, path_, kVersion, {{"offsets", std::move(entries)}});
}

absl::StatusOr<OffsetCheckpoint::Offsets> OffsetCheckpoint::Read() const {
  const auto json = ReadSealedJson(fs_, path_, kVersion);
  if (absl::IsNotFound(json.status())) return Offsets();
  if (!json.ok()) return json.status();
  Offsets offsets;
  try {
    for (const auto& entry : json->at("offsets")) {
      const auto topic_id = TopicId::Parse(entry.at(0).get<std::string>());
      if (!topic_id) return BadSealedJson(path_, "a topic id is none");
      offsets[{*topic_id, PartitionIndex(entry.at(1).get<int32_t>())}] =
          Offset(entry.at(2).get<int64_t>());
    }
  } catch (const nlohmann::json::exception& e) {
    return BadSealedJson(path_, e.what());
  }
  return offsets;
}

}  // namespace conclave
