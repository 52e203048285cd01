#include "broker/log/known_damage.h"

#include <glog/logging.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "broker/log/sealed_json.h"

namespace conclave {
namespace {

constexpr int kVersion = 1;

}  // namespace

absl::Status StoreKnownDamage(FileSystem& fs, const std::string& directory,
                              const std::vector<Offset>& at) {
  const std::string path = JoinPath(directory, kKnownDamageFile);
  if (at.empty()) {
    const absl::Status removed = fs.RemoveFile(path);
    if (absl::IsNotFound(removed)) return absl::OkStatus();
    return removed.ok() ? fs.SyncDirectory(directory) : removed;
  }
  nlohmann::json offsets = nlohmann::json::array();
  for (const Offset offset : at) offsets.push_back(offset.value());
  return WriteSealedJson(fs, path, kVersion, {{"offsets", std::move(offsets)}});
}

std::vector<Offset> ReadKnownDamage(FileSystem& fs, const std::string& directory) {
  const std::string path = JoinPath(directory, kKnownDamageFile);
  const auto json = ReadSealedJson(fs, path, kVersion);
  if (absl::IsNotFound(json.status())) return {};
  std::vector<Offset> at;
  if (!json.ok()) {
    LOG(WARNING) << path << " is passed over: " << json.status().message();
    return at;
  }
  try {
    for (const auto& offset : json->at("offsets")) at.emplace_back(offset.get<int64_t>());
  } catch (const nlohmann::json::exception& e) {
    LOG(WARNING) << path << " is passed over: " << e.what();
    at.clear();
  }
  return at;
}

}  // namespace conclave
