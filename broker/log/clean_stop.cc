#include "broker/log/clean_stop.h"

#include <glog/logging.h>

#include <nlohmann/json.hpp>

#include "broker/log/sealed_json.h"

namespace conclave {
namespace {

constexpr int kVersion = 1;

}  // namespace

absl::Status WriteCleanStop(FileSystem& fs, const std::string& data_directory, BrokerEpoch epoch) {
  return WriteSealedJson(fs, JoinPath(data_directory, kCleanStopFile), kVersion,
                         {{"broker_epoch", epoch.value()}});
}

absl::StatusOr<std::optional<BrokerEpoch>> TakeCleanStop(FileSystem& fs,
                                                         const std::string& data_directory) {
  const std::string path = JoinPath(data_directory, kCleanStopFile);
  const auto json = ReadSealedJson(fs, path, kVersion);
  const absl::Status removed = fs.RemoveFile(path);
  if (absl::IsNotFound(removed)) return std::nullopt;
  if (!removed.ok()) return removed;
  if (absl::Status status = fs.SyncDirectory(data_directory); !status.ok()) return status;
  if (!json.ok()) {
    LOG(WARNING) << "the stop before does not count as clean: " << json.status().message();
    return std::nullopt;
  }
  const auto epoch = json->find("broker_epoch");
  if (epoch == json->end() || !epoch->is_number_integer()) return std::nullopt;
  return BrokerEpoch(epoch->get<int64_t>());
}

}  // namespace conclave
