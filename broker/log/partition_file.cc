#include "broker/log/partition_file.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "broker/log/sealed_json.h"

namespace conclave {
namespace {

constexpr int kVersion = 1;

}  // namespace

std::string PartitionDirectoryName(const std::string& topic, PartitionIndex partition) {
  return absl::StrCat(topic, "-", partition.value());
}

absl::Status WritePartitionFile(FileSystem& fs, const std::string& directory,
                                const PartitionIdentity& identity) {
  return WriteSealedJson(fs, JoinPath(directory, kPartitionFile), kVersion,
                         {{"topic", identity.topic},
                          {"topic_id", identity.topic_id.ToString()},
                          {"partition", identity.partition.value()}});
}

absl::StatusOr<PartitionIdentity> ReadPartitionFile(FileSystem& fs, const std::string& directory) {
  const std::string path = JoinPath(directory, kPartitionFile);
  const auto json = ReadSealedJson(fs, path, kVersion);
  if (!json.ok()) return json.status();
  try {
    const auto topic_id = TopicId::Parse(json->at("topic_id").get<std::string>());
    if (!topic_id) return BadSealedJson(path, "topic_id is no id");
    return PartitionIdentity{json->at("topic").get<std::string>(), *topic_id,
                             PartitionIndex(json->at("partition").get<int32_t>())};
  } catch (const nlohmann::json::exception& e) {
    return BadSealedJson(path, e.what());
  }
}

}  // namespace conclave
