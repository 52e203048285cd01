#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "tools/cli/admin_session.h"
#include "tools/cli/cli.h"
#include "tools/cli/delete_records_command.h"
#include "tools/cli/option_checks.h"

namespace conclave::tools {
namespace {

// What the controller gives where nothing is said, while as many brokers live.
constexpr int kUsualReplicas = 3;

struct CreateArguments {
  std::vector<std::string> names;
  int32_t partitions = 0;
  int32_t replication_factor = 0;
  bool partitions_given = false;
  bool replication_factor_given = false;
  std::vector<std::string> configs;
  bool validate_only = false;
};

struct AlterArguments {
  std::string name;
  std::vector<std::string> set;
  std::vector<std::string> unset;
  bool validate_only = false;
};

// Settings as they are typed, which passed KeyValue.
void Split(const std::vector<std::string>& given,
           google::protobuf::Map<std::string, std::string>& configs) {
  for (const std::string& config : given) {
    const size_t equals = config.find('=');
    configs[config.substr(0, equals)] = config.substr(equals + 1);
  }
}

v1::CreateTopicsRequest CreateRequest(const Globals& globals, const CreateArguments& arguments) {
  v1::CreateTopicsRequest request;
  request.set_validate_only(arguments.validate_only);
  request.set_timeout_ms(globals.timeout_seconds * 1000);
  for (const std::string& name : arguments.names) {
    v1::NewTopic* topic = request.add_topics();
    topic->set_name(name);
    if (arguments.partitions_given) topic->set_partitions(arguments.partitions);
    if (arguments.replication_factor_given) {
      topic->set_replication_factor(arguments.replication_factor);
    }
    Split(arguments.configs, *topic->mutable_configs());
  }
  return request;
}

int Create(const Globals& globals, const CreateArguments& arguments) {
  auto request = CreateRequest(globals, arguments);
  return WithSession(globals, [&](AdminSession& session) -> int {
    const auto response = session.Call(&AdminClient::CreateTopics, std::move(request));
    if (!response.ok()) return Report(response.status());
    int exit_code = kDone;
    Json topics = Json::array();
    std::vector<std::vector<std::string>> rows;
    for (const v1::CreateTopicResult& topic : response->topics()) {
      if (topic.error().code() != v1::NONE) {
        exit_code = Report(StatusFromError(topic.error()));
        continue;
      }
      if (!arguments.replication_factor_given && topic.replication_factor() < kUsualReplicas) {
        std::cerr << "conclave: topic " << topic.name() << " has " << topic.replication_factor()
                  << " replicas a partition instead of " << kUsualReplicas
                  << ", for no more brokers live; they are not added later. Create it when more "
                     "live, or say so with --replicas"
                  << std::endl;
      }
      topics.push_back({{"name", topic.name()},
                        {"topic_id", IdText(topic.topic_id())},
                        {"partitions", topic.partitions()},
                        {"replication_factor", topic.replication_factor()}});
      rows.push_back({topic.name(), std::to_string(topic.partitions()),
                      std::to_string(topic.replication_factor()), IdText(topic.topic_id())});
    }
    if (globals.json()) {
      PrintJson({{"topics", topics}});
    } else if (!rows.empty()) {
      PrintTable({arguments.validate_only ? "WOULD CREATE" : "CREATED", "PARTITIONS", "REPLICAS",
                  "TOPIC ID"},
                 rows);
    }
    return exit_code;
  });
}

std::string Joined(const google::protobuf::RepeatedField<int32_t>& ids) {
  std::string text;
  for (const int32_t id : ids) absl::StrAppend(&text, text.empty() ? "" : ",", id);
  return text.empty() ? "-" : text;
}

Json ToJson(const google::protobuf::RepeatedField<int32_t>& ids) {
  Json json = Json::array();
  for (const int32_t id : ids) json.push_back(id);
  return json;
}

const char* OriginName(v1::ConfigOrigin origin) {
  switch (origin) {
    case v1::CONFIG_ORIGIN_DEFAULT:
      return "default";
    case v1::CONFIG_ORIGIN_TOPIC:
      return "topic";
    case v1::CONFIG_ORIGIN_BROKER_FILE:
      return "broker-file";
    case v1::CONFIG_ORIGIN_BROKER_DYNAMIC:
      return "broker";
    default:
      return "unknown";
  }
}

Json ToJson(const v1::PartitionDescription& partition) {
  Json replicas = Json::array();
  for (const v1::Replica& replica : partition.replicas()) replicas.push_back(replica.broker_id());
  const auto offset = [](bool known, int64_t value) { return known ? Json(value) : Json(nullptr); };
  Json json = {
      {"partition", partition.partition()},
      {"leader", partition.leader()},
      {"leader_epoch", partition.leader_epoch()},
      {"partition_epoch", partition.partition_epoch()},
      {"replicas", replicas},
      {"isr", ToJson(partition.isr())},
      {"elr", ToJson(partition.elr())},
      {"flush_policy",
       partition.flush_policy() == v1::FLUSH_POLICY_REPLICATED ? "replicated" : "fsync"},
      {"log_start_offset", offset(partition.has_log_start_offset(), partition.log_start_offset())},
      {"high_watermark", offset(partition.has_high_watermark(), partition.high_watermark())},
      {"log_end_offset", offset(partition.has_log_end_offset(), partition.log_end_offset())}};
  if (partition.stopped_uncleanly_size() > 0) {
    json["stopped_uncleanly"] = ToJson(partition.stopped_uncleanly());
  }
  if (!partition.note().empty()) json["note"] = partition.note();
  return json;
}

Json ConfigToJson(const v1::TopicDescription& topic) {
  Json config = Json::object();
  for (const v1::ConfigEntry& entry : topic.configs()) {
    config[entry.key()] = {{"value", entry.value()}, {"origin", OriginName(entry.origin())}};
  }
  return config;
}

void PrintConfig(const v1::TopicDescription& topic) {
  std::vector<std::vector<std::string>> rows;
  for (const v1::ConfigEntry& entry : topic.configs()) {
    rows.push_back({entry.key(), entry.value(), OriginName(entry.origin())});
  }
  PrintTable({"SETTING", "VALUE", "ORIGIN"}, rows);
}

Json ToJson(const v1::TopicDescription& topic) {
  Json partitions = Json::array();
  for (const v1::PartitionDescription& partition : topic.partitions()) {
    partitions.push_back(ToJson(partition));
  }
  return {{"name", topic.name()},
          {"topic_id", IdText(topic.topic_id())},
          {"partitions", partitions},
          {"config", ConfigToJson(topic)}};
}

void PrintTopic(const v1::TopicDescription& topic) {
  std::cout << "topic " << topic.name() << ", id " << IdText(topic.topic_id()) << "\n\n";
  const auto offset = [](bool known, int64_t value) {
    return known ? std::to_string(value) : std::string("-");
  };
  std::vector<std::vector<std::string>> rows;
  for (const v1::PartitionDescription& p : topic.partitions()) {
    std::string replicas;
    for (const v1::Replica& r : p.replicas()) {
      absl::StrAppend(&replicas, replicas.empty() ? "" : ",", r.broker_id());
    }
    rows.push_back({std::to_string(p.partition()),
                    p.leader() < 0 ? "none" : std::to_string(p.leader()),
                    std::to_string(p.leader_epoch()), replicas, Joined(p.isr()), Joined(p.elr()),
                    offset(p.has_log_start_offset(), p.log_start_offset()),
                    offset(p.has_high_watermark(), p.high_watermark()), p.note()});
  }
  PrintTable({"PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "ELR", "LOG START",
              "HIGH WATERMARK", "NOTE"},
             rows);
  std::cout << '\n';
  PrintConfig(topic);
}

int DescribeTopic(const Globals& globals, const std::vector<std::string>& names) {
  return WithSession(globals, [&](AdminSession& session) -> int {
    v1::DescribeTopicsRequest request;
    for (const std::string& name : names) request.add_names(name);
    const auto response = session.Call(&AdminClient::DescribeTopicsWithOffsets, std::move(request));
    if (!response.ok()) return Report(response.status());
    int exit_code = kDone;
    Json topics = Json::array();
    for (const v1::TopicDescription& topic : response->topics()) {
      if (topic.error().code() != v1::NONE) {
        exit_code = Report(StatusFromError(topic.error()));
      } else if (globals.json()) {
        topics.push_back(ToJson(topic));
      } else {
        PrintTopic(topic);
      }
    }
    if (globals.json()) PrintJson({{"topics", topics}});
    return exit_code;
  });
}

int Alter(const Globals& globals, const AlterArguments& arguments) {
  v1::AlterConfigsRequest request;
  request.set_resource(v1::CONFIG_RESOURCE_TOPIC);
  request.set_name(arguments.name);
  request.set_validate_only(arguments.validate_only);
  request.set_timeout_ms(globals.timeout_seconds * 1000);
  for (const std::string& key : arguments.unset) request.add_unset(key);
  Split(arguments.set, *request.mutable_set());
  return WithSession(globals, [&](AdminSession& session) -> int {
    const auto altered = session.Call(&AdminClient::AlterConfigs, std::move(request));
    if (!altered.ok()) return Report(altered.status());
    v1::DescribeTopicsRequest describe;
    describe.add_names(arguments.name);
    const auto response = session.Call(&AdminClient::DescribeTopics, std::move(describe));
    if (!response.ok()) return Report(response.status());
    for (const v1::TopicDescription& topic : response->topics()) {
      if (topic.error().code() != v1::NONE) return Report(StatusFromError(topic.error()));
      if (globals.json()) {
        PrintJson({{"name", topic.name()}, {"config", ConfigToJson(topic)}});
      } else {
        PrintConfig(topic);
      }
    }
    return kDone;
  });
}

int ListTopics(const Globals& globals) {
  return WithSession(globals, [&](AdminSession& session) -> int {
    const auto response = session.Call(&AdminClient::DescribeTopics, v1::DescribeTopicsRequest());
    if (!response.ok()) return Report(response.status());
    Json topics = Json::array();
    std::vector<std::vector<std::string>> rows;
    for (const v1::TopicDescription& topic : response->topics()) {
      const int replicas = topic.partitions_size() == 0 ? 0 : topic.partitions(0).replicas_size();
      topics.push_back({{"name", topic.name()},
                        {"topic_id", IdText(topic.topic_id())},
                        {"partitions", topic.partitions_size()},
                        {"replication_factor", replicas}});
      rows.push_back({topic.name(), std::to_string(topic.partitions_size()),
                      std::to_string(replicas), IdText(topic.topic_id())});
    }
    if (globals.json()) {
      PrintJson({{"topics", topics}});
    } else {
      PrintTable({"TOPIC", "PARTITIONS", "REPLICAS", "TOPIC ID"}, rows);
    }
    return kDone;
  });
}

int Delete(const Globals& globals, const std::vector<std::string>& names) {
  return WithSession(globals, [&](AdminSession& session) -> int {
    v1::DeleteTopicsRequest request;
    request.set_timeout_ms(globals.timeout_seconds * 1000);
    for (const std::string& name : names) request.add_names(name);
    const auto response = session.Call(&AdminClient::DeleteTopics, std::move(request));
    if (!response.ok()) return Report(response.status());
    int exit_code = kDone;
    Json topics = Json::array();
    for (const v1::DeleteTopicResult& topic : response->topics()) {
      if (topic.error().code() != v1::NONE) {
        exit_code = Report(StatusFromError(topic.error()));
        continue;
      }
      topics.push_back({{"name", topic.name()}, {"topic_id", IdText(topic.topic_id())}});
      if (!globals.json()) std::cout << "deleted " << topic.name() << std::endl;
    }
    if (globals.json()) PrintJson({{"topics", topics}});
    return exit_code;
  });
}

}  // namespace

void AddTopicCommands(CLI::App& app, const Globals& globals, Run& run) {
  CLI::App* topic = app.add_subcommand("topic", "Topics");
  topic->require_subcommand(1)->fallthrough();

  auto arguments = std::make_shared<CreateArguments>();
  CLI::App* create = topic->add_subcommand("create", "Create topics");
  create->fallthrough();
  create->add_option("name", arguments->names, "Names")->required()->check(Utf8Text());
  CLI::Option* partitions =
      create->add_option("--partitions", arguments->partitions, "Of each (default 1)");
  CLI::Option* replicas =
      create->add_option("--replication-factor,--replicas", arguments->replication_factor,
                         "Of each partition (default 3, or as many as brokers live)");
  create->add_option("--config", arguments->configs, "key=value: a setting of the topics")
      ->allow_extra_args(false)
      ->check(KeyValue());
  create->add_flag("--validate-only", arguments->validate_only, "Check, and change nothing");
  create->callback([&globals, &run, arguments, partitions, replicas] {
    arguments->partitions_given = partitions->count() > 0;
    arguments->replication_factor_given = replicas->count() > 0;
    run = [&globals, arguments] { return Create(globals, *arguments); };
  });

  CLI::App* list = topic->add_subcommand("list", "All topics");
  list->fallthrough();
  list->callback([&globals, &run] { run = [&globals] { return ListTopics(globals); }; });

  auto described = std::make_shared<std::vector<std::string>>();
  CLI::App* describe = topic->add_subcommand("describe", "Partitions and settings of topics");
  describe->fallthrough();
  describe->add_option("name", *described, "Names")->required()->check(Utf8Text());
  describe->callback([&globals, &run, described] {
    run = [&globals, described] { return DescribeTopic(globals, *described); };
  });

  auto altered = std::make_shared<AlterArguments>();
  CLI::App* alter = topic->add_subcommand("alter", "Change settings of a topic, and show them all");
  alter->fallthrough();
  alter->add_option("name", altered->name, "Which")->required()->check(Utf8Text());
  CLI::Option* set = alter->add_option("--set", altered->set, "key=value (may be given again)")
                         ->allow_extra_args(false)
                         ->check(KeyValue());
  CLI::Option* unset =
      alter->add_option("--unset", altered->unset, "key: back to its default (may be given again)")
          ->allow_extra_args(false);
  alter->add_flag("--validate-only", altered->validate_only, "Check, and change nothing");
  alter->callback([&globals, &run, altered, set, unset] {
    if (set->count() + unset->count() == 0) {
      throw CLI::RequiredError("--set key=value or --unset key");
    }
    run = [&globals, altered] { return Alter(globals, *altered); };
  });

  auto deleted = std::make_shared<std::vector<std::string>>();
  CLI::App* remove = topic->add_subcommand("delete", "Delete topics with all they hold");
  remove->fallthrough();
  remove->add_option("name", *deleted, "Names")->required()->check(Utf8Text());
  remove->callback([&globals, &run, deleted] {
    run = [&globals, deleted] { return Delete(globals, *deleted); };
  });

  AddElectLeaderCommand(*topic, globals, run);
  AddDeleteRecords(*topic, globals, run);
}

}  // namespace conclave::tools
