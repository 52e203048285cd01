#include "common/config/controller_config.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

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
          OptionalText("controller.bootstrap", "none",
                       "Controllers that a node which is no voter asks for the log, written "
                       "id@host:port and separated by commas."),
          MillisecondsSetting("quorum.heartbeat.interval.ms", 200, 10, 60000,
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

namespace {

absl::StatusOr<BootstrapController> ParseBootstrapController(std::string_view text) {
  const size_t at = text.find('@');
  int32_t id = -1;
  const char* end = text.data() + std::min(at, text.size());
  const auto parsed = std::from_chars(text.data(), end, id);
  if (at == std::string_view::npos || parsed.ec != std::errc() || parsed.ptr != end || id < 0) {
    return MakeError(v1::INVALID_CONFIG,
                     absl::StrCat("controller.bootstrap: '", std::string(text),
                                  "' is not written id@host:port, such as 1@10.0.0.1:7300"));
  }
  auto endpoint = ParseEndpoint(text.substr(at + 1));
  if (!endpoint.ok()) return endpoint.status();
  return BootstrapController{NodeId(id), *std::move(endpoint)};
}

absl::StatusOr<std::vector<BootstrapController>> ParseBootstrap(std::string_view text) {
  std::vector<BootstrapController> controllers;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    auto controller = ParseBootstrapController(text.substr(0, comma));
    if (!controller.ok()) return controller.status();
    controllers.push_back(*std::move(controller));
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  return controllers;
}

}  // namespace

absl::StatusOr<ControllerConfig> MakeControllerConfig(const Settings& settings) {
  ControllerConfig config;
  config.node_id = NodeId(static_cast<int32_t>(settings.Integer("node.id")));
  config.listener = *settings.EndpointOf("listener");
  config.advertised_listener = settings.EndpointOf("advertised.listener");
  config.data_dir = *settings.Text("data.dir");
  auto bootstrap = ParseBootstrap(settings.Text("controller.bootstrap").value_or(""));
  if (!bootstrap.ok()) return bootstrap.status();
  config.bootstrap = *std::move(bootstrap);
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
  if (auto status = CheckAdvertised(config.listener, config.advertised_listener); !status.ok())
    return status;
  return config;
}

}  // namespace conclave
