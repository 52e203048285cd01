#include "common/config/broker_config.h"

#include "common/config/definitions.h"
#include "common/config/topic_config.h"

namespace conclave {

const SettingsSchema& BrokerSettings() {
  static const auto* const kSchema = [] {
    auto* schema = new SettingsSchema(
        "broker",
        {
            RequiredId("broker.id", "The broker's number."),
            EndpointSetting("listener", "localhost:7400",
                            "Where the broker listens. Port 0: chosen, and printed."),
            OptionalEndpoint("advertised.listener", "what the listener is bound to",
                             "What clients and other brokers connect to."),
            RequiredText("data.dir", "Directory of the partitions' logs."),
            RequiredEndpointList("controllers", "Controllers to register with; one is enough."),
            OptionalText("rack", "none",
                         "Where the broker stands; replicas of a partition are spread over racks."),
            MillisecondsSetting("broker.heartbeat.interval.ms", 500, 10, 600000,
                                "How often the broker tells the active controller that it lives."),
            MillisecondsSetting(
                "replica.lag.time.max.ms", 10000, 100, 3600000,
                "A follower that has not caught up for so long leaves the in-sync replicas."),
            MillisecondsSetting("file.delete.delay.ms", 60000, 0, 7LL * 24 * 3600 * 1000,
                                "How long the logs of a deleted topic are kept aside."),
            MillisecondsSetting("log.retention.check.interval.ms", 60000, 100, 24LL * 3600 * 1000,
                                "How often the broker looks for segments that retention removes."),
            IntegerSetting("log.dir.free.bytes.min", 64 * 1024 * 1024, 0, INT64_MAX,
                           "Room on the disk of data.dir, in bytes, under which records are "
                           "refused; reading and deleting go on. 0: until it is full."),
            IntegerSetting("log.tail.bytes", 32 * 1024 * 1024, 0, int64_t{1} << 40,
                           "Of what was appended last to the logs that this broker leads, kept in "
                           "memory, in bytes in all, for followers and consumers that keep up. 0: "
                           "all is read from the files."),
            IntegerSetting(
                "log.sync.threads", 4, 1, 64,
                "Threads that open logs at the start, side by side, and sync them: one all that "
                "wait, another what a long sync would keep waiting."),
        });
    schema->NameOther(TopicSettings(),
                      "give it with 'conclave topic create NAME --config key=value', or change it "
                      "with 'conclave topic alter NAME --set key=value'");
    return schema;
  }();
  return *kSchema;
}

absl::StatusOr<BrokerConfig> MakeBrokerConfig(const Settings& settings) {
  BrokerConfig config;
  config.broker_id = BrokerId(static_cast<int32_t>(settings.Integer("broker.id")));
  config.listener = *settings.EndpointOf("listener");
  config.advertised_listener = settings.EndpointOf("advertised.listener");
  config.data_dir = *settings.Text("data.dir");
  config.controllers = settings.EndpointList("controllers");
  config.rack = settings.Text("rack").value_or("");
  config.heartbeat_interval = settings.Milliseconds("broker.heartbeat.interval.ms");
  config.replica_lag_time_max = settings.Milliseconds("replica.lag.time.max.ms");
  config.file_delete_delay = settings.Milliseconds("file.delete.delay.ms");
  config.retention_check_interval = settings.Milliseconds("log.retention.check.interval.ms");
  config.tail_bytes = static_cast<size_t>(settings.Integer("log.tail.bytes"));
  config.free_bytes_min = static_cast<uint64_t>(settings.Integer("log.dir.free.bytes.min"));
  config.sync_threads = static_cast<int>(settings.Integer("log.sync.threads"));
  if (auto status = CheckAdvertised(config.listener, config.advertised_listener); !status.ok())
    return status;
  return config;
}

}  // namespace conclave
