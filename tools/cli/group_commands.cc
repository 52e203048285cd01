#include <CLI/CLI.hpp>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "tools/cli/admin_session.h"
#include "tools/cli/cli.h"
#include "tools/cli/option_checks.h"

namespace conclave::tools {
namespace {

// By topic and partition, as its leader tells it; absent where that does not answer.
using LogEnds = std::map<std::pair<std::string, int32_t>, int64_t>;

LogEnds FindLogEnds(AdminSession& session, const v1::GroupDescription& group) {
  std::set<std::string> topics;
  for (const v1::CommittedOffset& offset : group.offsets()) topics.insert(offset.topic());
  LogEnds ends;
  if (topics.empty()) return ends;
  v1::DescribeTopicsRequest request;
  for (const std::string& topic : topics) request.add_names(topic);
  const auto response = session.Call(&AdminClient::DescribeTopicsWithOffsets, std::move(request));
  // The group's state is known without.
  if (!response.ok()) return ends;
  std::map<std::string, std::string> ids;
  for (const v1::CommittedOffset& offset : group.offsets()) ids[offset.topic()] = offset.topic_id();
  for (const v1::TopicDescription& topic : response->topics()) {
    // One that was made anew under the name is another.
    if (topic.error().code() != v1::NONE || topic.topic_id() != ids[topic.name()]) continue;
    for (const v1::PartitionDescription& partition : topic.partitions()) {
      if (!partition.has_log_end_offset()) continue;
      ends[{topic.name(), partition.partition()}] = partition.log_end_offset();
    }
  }
  return ends;
}

Json OffsetsToJson(const v1::GroupDescription& group, const LogEnds& ends) {
  Json offsets = Json::array();
  for (const v1::CommittedOffset& offset : group.offsets()) {
    const auto end = ends.find({offset.topic(), offset.partition()});
    const bool known = end != ends.end();
    offsets.push_back({{"topic", offset.topic()},
                       {"partition", offset.partition()},
                       {"committed", offset.offset()},
                       {"log_end_offset", known ? Json(end->second) : Json(nullptr)},
                       {"lag", known ? Json(end->second - offset.offset()) : Json(nullptr)}});
  }
  return offsets;
}

void PrintOffsets(const v1::GroupDescription& group, const LogEnds& ends) {
  std::vector<std::vector<std::string>> rows;
  for (const v1::CommittedOffset& offset : group.offsets()) {
    const auto end = ends.find({offset.topic(), offset.partition()});
    const bool known = end != ends.end();
    rows.push_back({offset.topic(), std::to_string(offset.partition()),
                    std::to_string(offset.offset()), known ? std::to_string(end->second) : "-",
                    known ? std::to_string(end->second - offset.offset()) : "-"});
  }
  PrintTable({"TOPIC", "PARTITION", "COMMITTED", "LOG END", "LAG"}, rows);
}

Json ToJson(const v1::GroupDescription& group, const LogEnds& ends) {
  Json members = Json::array();
  for (const v1::MemberDescription& member : group.members()) {
    Json partitions = Json::array();
    for (const v1::GroupTopicPartitions& topic : member.assignment()) {
      for (const int32_t partition : topic.partitions()) {
        partitions.push_back({{"topic", topic.topic()}, {"partition", partition}});
      }
    }
    members.push_back({{"member_id", member.member_id()},
                       {"client_id", member.client_id()},
                       {"partitions", partitions}});
  }
  return {{"group", group.group()}, {"state", group.state()},
          {"epoch", group.epoch()}, {"coordinator", group.coordinator()},
          {"members", members},     {"offsets", OffsetsToJson(group, ends)}};
}

std::string Joined(const google::protobuf::RepeatedPtrField<v1::GroupTopicPartitions>& topics) {
  std::string text;
  for (const v1::GroupTopicPartitions& topic : topics) {
    for (const int32_t partition : topic.partitions()) {
      absl::StrAppend(&text, text.empty() ? "" : " ", topic.topic(), "-", partition);
    }
  }
  return text.empty() ? "-" : text;
}

void PrintGroup(const v1::GroupDescription& group, const LogEnds& ends) {
  std::cout << "group " << group.group() << ": " << group.state() << ", epoch " << group.epoch()
            << ", coordinated by broker " << group.coordinator() << "\n\n";
  std::vector<std::vector<std::string>> rows;
  for (const v1::MemberDescription& member : group.members()) {
    rows.push_back({member.member_id(), member.client_id(),
                    member.instance_id().empty() ? "-" : member.instance_id(),
                    Joined(member.assignment()), Joined(member.revoking())});
  }
  PrintTable({"MEMBER", "CLIENT", "INSTANCE", "PARTITIONS", "GIVES UP"}, rows);
  std::cout << '\n';
  PrintOffsets(group, ends);
}

int DescribeGroups(const Globals& globals, const std::vector<std::string>& names) {
  return WithSession(globals, [&](AdminSession& session) -> int {
    int exit_code = kDone;
    Json groups = Json::array();
    for (const std::string& name : names) {
      const auto group = session.DescribeGroup(name);
      if (!group.ok()) {
        exit_code = Report(group.status());
        continue;
      }
      const LogEnds ends = FindLogEnds(session, *group);
      if (globals.json()) {
        groups.push_back(ToJson(*group, ends));
      } else {
        PrintGroup(*group, ends);
      }
    }
    if (globals.json()) PrintJson({{"groups", groups}});
    return exit_code;
  });
}

int ListGroups(const Globals& globals) {
  return WithSession(globals, [&](AdminSession& session) -> int {
    const auto response = session.ListGroups();
    if (!response.ok()) return Report(response.status());
    Json groups = Json::array();
    std::vector<std::vector<std::string>> rows;
    for (const v1::GroupListing& group : response->groups()) {
      groups.push_back(
          {{"group", group.group()}, {"state", group.state()}, {"members", group.members()}});
      rows.push_back({group.group(), group.state(), std::to_string(group.members())});
    }
    if (globals.json()) {
      PrintJson({{"groups", groups}});
    } else {
      PrintTable({"GROUP", "STATE", "MEMBERS"}, rows);
    }
    return kDone;
  });
}

int GetOffsets(const Globals& globals, const std::string& name) {
  return WithSession(globals, [&](AdminSession& session) -> int {
    const auto group = session.DescribeGroup(name);
    if (!group.ok()) return Report(group.status());
    const LogEnds ends = FindLogEnds(session, *group);
    if (globals.json()) {
      PrintJson({{"group", group->group()}, {"offsets", OffsetsToJson(*group, ends)}});
    } else {
      PrintOffsets(*group, ends);
    }
    return kDone;
  });
}

}  // namespace

void AddGroupCommands(CLI::App& app, const Globals& globals, Run& run) {
  CLI::App* group = app.add_subcommand("group", "Consumer groups");
  group->require_subcommand(1)->fallthrough();
  CLI::App* list = group->add_subcommand("list", "All groups, as all brokers tell them");
  list->fallthrough();
  list->callback([&globals, &run] { run = [&globals] { return ListGroups(globals); }; });

  auto names = std::make_shared<std::vector<std::string>>();
  CLI::App* describe =
      group->add_subcommand("describe", "Members, what they hold, and how far the group is behind");
  describe->fallthrough();
  describe->add_option("groups", *names, "Which")->required()->check(Utf8Text());
  describe->callback([&globals, &run, names] {
    run = [&globals, names] { return DescribeGroups(globals, *names); };
  });

  auto name = std::make_shared<std::string>();
  CLI::App* offsets = app.add_subcommand("offsets", "What groups have committed");
  offsets->require_subcommand(1)->fallthrough();
  CLI::App* get = offsets->add_subcommand("get", "The offsets of one group, and its lag");
  get->fallthrough();
  get->add_option("group", *name, "Which")->required()->check(Utf8Text());
  get->callback(
      [&globals, &run, name] { run = [&globals, name] { return GetOffsets(globals, *name); }; });
}

}  // namespace conclave::tools
