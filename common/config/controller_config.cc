#include "common/config/controller_config.h"

#include "absl/strings/str_cat.h"
#include "common/config/definitions.h"
#include "common/error/error.h"

namespace conclave {

const SettingsSchema& ControllerSettings() {
  static const auto* const kSchema = new SettingsSchema(
      "controller",
      {
          RequiredId("node.id",
                     "The controller's number, the one its directory was formatted for."),
          EndpointSetting("listener", "localhost:7300",
                          "Where the controller listens. Port 0: chosen, and printed."),
          OptionalEndpoint("advertised.listener", "what the listener is bound to",
                           "What other nodes connect to."),
          RequiredText("data.dir", "Directory of the metadata log and its snapshots."),
          OptionalEndpointList("controller.bootstrap", "none",
                               "Controllers that a node which is no voter asks for the log."),
          MillisecondsSetting("quorum.heartbeat.interval.ms", 100, 10, 60000,
                              "How often the active controller writes to the others."),
          MillisecondsSetting("quorum.election.timeout.min.ms", 500, 50, 600000,
                              "Shortest silence of the active controller that starts an election."),
          MillisecondsSetting("quorum.election.timeout.max.ms", 1000, 50, 600000,
                              "Longest; each controller draws between the two."),
          MillisecondsSetting("broker.session.timeout.ms", 6000, 100, 3600000,
                              "A broker that is silent for so long is fenced."),
          MillisecondsSetting("broker.session.grace.ms", 200, 0, 3600000,
                              "A broker whose stream broke and is not back by then is fenced."),
      });
  return *kSchema;
}

absl::StatusOr<ControllerConfig> MakeControllerConfig(const Settings& settings) {
  ControllerConfig config;
  config.node_id = NodeId(static_cast<int32_t>(settings.Integer("node.id")));
  config.listener = *settings.EndpointOf("listener");
  config.advertised_listener = settings.EndpointOf("advertised.listener");
  config.data_dir = *settings.Text("data.dir");
  config.bootstrap = settings.EndpointList("controller.bootstrap");
  config.heartbeat_interval = settings.Milliseconds("quorum.heartbeat.interval.ms");
  config.election_timeout_min = settings.Milliseconds("quorum.election.timeout.min.ms");
  config.election_timeout_max = settings.Milliseconds("quorum.election.timeout.max.ms");
  config.broker_session_timeout = settings.Milliseconds("broker.session.timeout.ms");
  config.broker_session_grace = settings.Milliseconds("broker.session.grace.ms");
  if (config.election_timeout_min < config.heartbeat_interval * 2) {
    return MakeError(v1::INVALID_CONFIG,
                     "quorum.election.timeout.min.ms must be at least twice "
                     "quorum.heartbeat.interval.ms, or one lost heartbeat starts an election");
  }
  if (config.election_timeout_max <= config.election_timeout_min) {
    return MakeError(v1::INVALID_CONFIG,
                     "quorum.election.timeout.max.ms must exceed quorum.election.timeout.min.ms, "
                     "or controllers stand for election together");
  }
  if (config.broker_session_grace > config.broker_session_timeout) {
    return MakeError(v1::INVALID_CONFIG,
                     "broker.session.grace.ms must not exceed broker.session.timeout.ms");
  }
  if (auto status = CheckAdvertised(config.advertised_listener); !status.ok()) return status;
  return config;
}

}  // namespace conclave
