#include "common/config/settings_file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "common/config/broker_config.h"
#include "common/config/controller_config.h"
#include "common/error/error.h"

namespace conclave {
namespace {

std::string ErrorOf(std::string_view text) {
  Settings settings(BrokerSettings());
  const absl::Status status = ReadSettingsText(text, "broker.toml", settings);
  EXPECT_EQ(ErrorCodeOf(status), v1::INVALID_CONFIG);
  return std::string(status.message());
}

TEST(SettingsFileTest, DottedKeysTablesAndArrays) {
  Settings settings(BrokerSettings());
  const absl::Status status = ReadSettingsText(
      "broker.id = 3\n"
      "controllers = [\"a:1\", \"b:2\"]\n"
      "\"data.dir\" = \"/var/lib/x\"\n"
      "[replica.lag.time]\n"
      "max.ms = 5000\n",
      "broker.toml", settings);
  ASSERT_TRUE(status.ok()) << status;
  const auto config = MakeBrokerConfig(settings);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->broker_id, BrokerId(3));
  EXPECT_EQ(config->controllers, (std::vector<Endpoint>{{"a", 1}, {"b", 2}}));
  EXPECT_EQ(config->data_dir, "/var/lib/x");
  EXPECT_EQ(config->replica_lag_time_max, Duration::Seconds(5));
  EXPECT_EQ(config->heartbeat_interval, Duration::Milliseconds(500));
  EXPECT_EQ(config->listener, (Endpoint{"localhost", 7400}));
  EXPECT_FALSE(config->advertised_listener.has_value());
}

TEST(SettingsFileTest, ErrorsNameFileLineKeyAndWhatIsAllowed) {
  const std::string unknown = ErrorOf("broker.id = 1\n\nreplica.lag.max.ms = 1\n");
  EXPECT_EQ(unknown.find("broker.toml:3: "), 0u) << unknown;
  EXPECT_NE(unknown.find("'replica.lag.time.max.ms'"), std::string::npos) << unknown;
  const std::string value = ErrorOf("\nbroker.id = -4\n");
  EXPECT_EQ(value.find("broker.toml:2: broker.id cannot be '-4'"), 0u) << value;
  EXPECT_NE(ErrorOf("broker.id = 1.5").find("broker.toml:1: broker.id has a value of a kind"),
            std::string::npos);
  EXPECT_EQ(ErrorOf("rack = \"a\"\nbroker.id = = 2\n").find("broker.toml:2: this is no TOML"), 0u);
  EXPECT_NE(ErrorOf("data.dir = \"a\"\n\"data.dir\" = \"b\"").find("already"), std::string::npos);
}

TEST(SettingsFileTest, OverridesWin) {
  const std::string path = std::string(std::getenv("TEST_TMPDIR")) + "/controller.toml";
  std::ofstream(path) << "node.id = 1\ndata.dir = \"/d\"\nlistener = \"localhost:0\"\n";
  const auto settings =
      LoadSettings(ControllerSettings(), path, {"node.id=2", "controller.bootstrap=1@a:1,2@b:2"});
  ASSERT_TRUE(settings.ok()) << settings.status();
  const auto config = MakeControllerConfig(*settings);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->node_id, NodeId(2));
  ASSERT_EQ(config->bootstrap.size(), 2u);
  EXPECT_EQ(config->bootstrap[1].node_id, NodeId(2));
  EXPECT_EQ(ToString(config->bootstrap[1].endpoint), "b:2");
  EXPECT_EQ(config->listener.port, 0);
  EXPECT_EQ(config->heartbeat_interval, Duration::Milliseconds(200));
  EXPECT_EQ(config->election_timeout_min, Duration::Milliseconds(500));
  EXPECT_EQ(config->election_timeout_max, Duration::Milliseconds(1000));
  EXPECT_EQ(config->broker_session_timeout, Duration::Seconds(6));
  EXPECT_EQ(config->broker_session_grace, Duration::Milliseconds(200));
}

TEST(SettingsFileTest, WhatIsMissingOrContradictsIsNamed) {
  const auto error = [](const std::vector<std::string>& overrides) {
    const auto settings = LoadSettings(ControllerSettings(), "", overrides);
    if (!settings.ok()) return std::string(settings.status().message());
    return std::string(MakeControllerConfig(*settings).status().message());
  };
  EXPECT_NE(error({}).find("node.id is not given"), std::string::npos);
  EXPECT_NE(error({"node.id"}).find("--set key=value"), std::string::npos);
  EXPECT_NE(error({"node.id=x"}).find("--set node.id=x: "), std::string::npos);
  EXPECT_NE(error({"node.id=1", "data.dir=/d", "quorum.election.timeout.max.ms=400"}).find("max"),
            std::string::npos);
  EXPECT_NE(error({"node.id=1", "data.dir=/d", "advertised.listener=h:0"}).find("port 0"),
            std::string::npos);
  EXPECT_NE(error({"node.id=1", "data.dir=/d", "listener=0.0.0.0:1"}).find("advertised.listener"),
            std::string::npos);
  EXPECT_EQ(error({"node.id=1", "data.dir=/d", "listener=[::]:1", "advertised.listener=h:1"}), "");
  EXPECT_EQ(error({"node.id=1", "data.dir=/d"}), "");
  EXPECT_FALSE(LoadSettings(ControllerSettings(), "/no/such/file", {}).ok());
}

TEST(SettingsOfOthersTest, ATopicsSettingIsNamedAsSuch) {
  const absl::Status status = BrokerSettings().UnknownKey("retention.ms");
  EXPECT_EQ(ErrorCodeOf(status), v1::INVALID_CONFIG);
  const std::string message(status.message());
  EXPECT_NE(message.find("is a topic setting"), std::string::npos) << message;
  EXPECT_NE(message.find("conclave topic alter"), std::string::npos) << message;
}

}  // namespace
}  // namespace conclave
