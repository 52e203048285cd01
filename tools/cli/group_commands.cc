#include <CLI/CLI.hpp>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "tools/cli/admin_session.h"
#include "tools/cli/cli.h"
#include "tools/cli/option_checks.h"

namespace conclave::tools {
namespace {

// What is known of the group's progress on one partition.
struct GroupProgress {
  // Absent: the group has committed nothing.
  std::optional<int64_t> committed;
  // As the leader tells it; absent where that does not answer.
  std::optional<int64_t> log_end;

  std::optional<int64_t> lag() const {
    if (!committed || !log_end) return std::nullopt;
    return *log_end - *committed;
  }
};
// By topic and partition.
using Progresses = std::map<std::pair<std::string, int32_t>, GroupProgress>;

enum class Which { kCommitted, kCommittedOrAssigned };

void FillLogEnds(AdminSession& session, const std::map<std::string, std::string>& ids,
                 Progresses& progresses) {
  v1::DescribeTopicsRequest request;
  for (const auto& [topic, id] : ids) request.add_names(topic);
  const auto response = session.Call(&AdminClient::DescribeTopicsWithOffsets, std::move(request));
  // The group's state is known without.
  if (!response.ok()) return;
  for (const v1::TopicDescription& topic : response->topics()) {
    // One that was made anew under the name is another.
    if (topic.error().code() != v1::NONE || topic.topic_id() != ids.at(topic.name())) continue;
    for (const v1::PartitionDescription& partition : topic.partitions()) {
      const auto found = progresses.find({topic.name(), partition.partition()});
      if (found == progresses.end() || !partition.has_log_end_offset()) continue;
      found->second.log_end = partition.log_end_offset();
    }
  }
}

Progresses FindProgress(AdminSession& session, const v1::GroupDescription& group, Which which) {
  Progresses progresses;
  std::map<std::string, std::string> ids;
  if (which == Which::kCommittedOrAssigned) {
    for (const v1::MemberDescription& member : group.members()) {
      for (const v1::GroupTopicPartitions& topic : member.assignment()) {
        for (const int32_t partition : topic.partitions()) {
          progresses.try_emplace({topic.topic(), partition});
        }
        ids[topic.topic()] = topic.topic_id();
      }
    }
  }
  for (const v1::CommittedOffset& offset : group.offsets()) {
    progresses[{offset.topic(), offset.partition()}].committed = offset.offset();
    ids[offset.topic()] = offset.topic_id();
  }
  if (!ids.empty()) FillLogEnds(session, ids, progresses);
  return progresses;
}

Json ToJson(const Progresses& progresses) {
  const auto json = [](const std::optional<int64_t>& n) { return n ? Json(*n) : Json(nullptr); };
  Json offsets = Json::array();
  for (const auto& [name, progress] : progresses) {
    offsets.push_back({{"topic", name.first},
                       {"partition", name.second},
                       {"committed", json(progress.committed)},
                       {"log_end_offset", json(progress.log_end)},
                       {"lag", json(progress.lag())}});
  }
  return offsets;
}

void PrintProgress(const Progresses& progresses) {
  const auto text = [](const std::optional<int64_t>& n) { return n ? std::to_string(*n) : "-"; };
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, progress] : progresses) {
    rows.push_back({name.first, std::to_string(name.second), text(progress.committed),
                    text(progress.log_end), text(progress.lag())});
  }
  PrintTable({"TOPIC", "PARTITION", "COMMITTED", "LOG END", "LAG"}, rows);
}

Json ToJson(const v1::GroupDescription& group, const Progresses& progresses) {
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
          {"members", members},     {"offsets", ToJson(progresses)}};
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

void PrintGroup(const v1::GroupDescription& group, const Progresses& progresses) {
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
  PrintProgress(progresses);
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
      const Progresses progresses = FindProgress(session, *group, Which::kCommittedOrAssigned);
      if (globals.json()) {
        groups.push_back(ToJson(*group, progresses));
      } else {
        PrintGroup(*group, progresses);
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
    const Progresses progresses = FindProgress(session, *group, Which::kCommitted);
    if (globals.json()) {
      PrintJson({{"group", group->group()}, {"offsets", ToJson(progresses)}});
    } else {
      PrintProgress(progresses);
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
