#ifndef CONCLAVE_COMMON_CONFIG_BROKER_CONFIG_H_
#define CONCLAVE_COMMON_CONFIG_BROKER_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/config/endpoint.h"
#include "common/config/setting.h"
#include "common/types/ids.h"
#include "common/types/time.h"

namespace conclave {

const SettingsSchema& BrokerSettings();

// What conclave-broker is told. All of it needs a restart to change.
struct BrokerConfig {
  BrokerId broker_id = kNoBroker;
  Endpoint listener;
  // Absent: what the listener is bound to.
  std::optional<Endpoint> advertised_listener;
  std::string data_dir;
  std::vector<Endpoint> controllers;
  // Empty: not given.
  std::string rack;
  Duration heartbeat_interval;
  Duration replica_lag_time_max;
  // How long the log of a deleted topic is kept aside.
  Duration file_delete_delay;
  Duration retention_check_interval = Duration::Seconds(60);
  // Under which records are refused.
  uint64_t free_bytes_min = 0;
  // Of what was appended last, kept in memory.
  size_t tail_bytes = size_t{32} << 20;
  int sync_threads = 4;
};

// INVALID_CONFIG where settings contradict each other. `settings` are of BrokerSettings(), with all
// that are required.
absl::StatusOr<BrokerConfig> MakeBrokerConfig(const Settings& settings);

}  // namespace conclave

#endif  // CONCLAVE_COMMON_CONFIG_BROKER_CONFIG_H_
