#ifndef CONCLAVE_COMMON_CONFIG_CONTROLLER_CONFIG_H_
#define CONCLAVE_COMMON_CONFIG_CONTROLLER_CONFIG_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/config/endpoint.h"
#include "common/config/setting.h"
#include "common/types/ids.h"
#include "common/types/time.h"

namespace conclave {

const SettingsSchema& ControllerSettings();

struct BootstrapController {
  NodeId node_id = kNoNode;
  Endpoint endpoint;
};

// What conclave-controller is told. All of it needs a restart to change.
struct ControllerConfig {
  NodeId node_id = kNoNode;
  Endpoint listener;
  // Absent: what the listener is bound to.
  std::optional<Endpoint> advertised_listener;
  std::string data_dir;
  // Whom a node that is no voter asks for the log.
  std::vector<BootstrapController> bootstrap;
  Duration heartbeat_interval;
  // An election timeout is drawn between the two.
  Duration election_timeout_min;
  Duration election_timeout_max;
  Duration broker_session_timeout;
  Duration broker_session_grace;
};

// INVALID_CONFIG where settings contradict each other. `settings` are of ControllerSettings(), with
// all that are required.
absl::StatusOr<ControllerConfig> MakeControllerConfig(const Settings& settings);

}  // namespace conclave

#endif  // CONCLAVE_COMMON_CONFIG_CONTROLLER_CONFIG_H_
