#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "tests/history/text.h"

namespace conclave::history {
namespace {

// In the order of its fields here.
using Json = nlohmann::ordered_json;

class Writer {
 public:
  explicit Writer(const History& history) : history_(history) {}

  template <class Kind>
  std::string Line(const Kind& operation) const {
    Json out;
    out["op"] = NameOf(operation);
    out["process"] = Text(operation.process);
    out["invoke"] = operation.invoke;
    if (operation.complete != kNever) out["complete"] = operation.complete;
    out["outcome"] = operation.outcome == Outcome::kOk     ? "ok"
                     : operation.outcome == Outcome::kFail ? "fail"
                                                           : "info";
    Write(operation, out);
    // Names that are no UTF-8 are written all the same.
    return out.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

 private:
  static const char* NameOf(const Send&) { return "send"; }
  static const char* NameOf(const Poll&) { return "poll"; }
  static const char* NameOf(const Position&) { return "position"; }
  static const char* NameOf(const Assignment&) { return "assignment"; }
  static const char* NameOf(const GroupEpoch&) { return "group_epoch"; }
  static const char* NameOf(const Commit&) { return "commit"; }
  static const char* NameOf(const CommittedRead&) { return "committed_read"; }
  static const char* NameOf(const LogStart&) { return "log_start"; }
  static const char* NameOf(const FinalRead&) { return "final_read"; }
  static const char* NameOf(const Metadata&) { return "metadata"; }
  static const char* NameOf(const Dump&) { return "dump"; }
  static const char* NameOf(const PowerLoss&) { return "power_loss"; }

  std::string Text(Name name) const { return std::string(history_.TextOf(name)); }

  static Json Value(const std::string& value) {
    Json json = value;
    try {
      json.dump();
    } catch (const Json::exception&) {  // It is no UTF-8.
      return {{"hex", absl::BytesToHexString({value.data(), value.size()})}};
    }
    return json;
  }

  void Log(KeyIndex key, Json& out) const {
    if (key == KeyIndex::kNone) return;
    out["topic"] = history_.KeyAt(key).topic_id;
    out["partition"] = history_.KeyAt(key).partition;
  }
  static void Optional(const char* name, int64_t number, Json& out) {
    if (number >= 0) out[name] = number;
  }
  void Group(Name group, Json& out) const {
    if (group != Name::kNone) out["group"] = Text(group);
  }
  static void Records(const std::vector<Record>& records, Json& out) {
    Json& all = out["records"] = Json::array();
    for (const Record& record : records) {
      all.push_back(Json::array({record.offset, Value(record.value)}));
    }
  }
  void Partitions(const std::vector<KeyIndex>& keys, Json& out) const {
    Json& all = out["partitions"] = Json::array();
    for (const KeyIndex key : keys) {
      all.push_back(Json::array({history_.KeyAt(key).topic_id, history_.KeyAt(key).partition}));
    }
  }

  void Write(const Send& send, Json& out) const {
    Log(send.key, out);
    out["value"] = Value(send.value);
    out["acks"] = send.acks == Acks::kAll ? "all" : send.acks == Acks::kLeader ? "leader" : "none";
    out["idempotent"] = send.idempotent;
    Optional("offset", send.offset, out);
  }
  void Write(const Poll& poll, Json& out) const {
    Log(poll.key, out);
    Group(poll.group, out);
    Records(poll.records, out);
  }
  void Write(const Position& position, Json& out) const {
    Log(position.key, out);
    Group(position.group, out);
    Optional("from", position.from, out);
  }
  void Write(const Assignment& assignment, Json& out) const {
    out["group"] = Text(assignment.group);
    out["member"] = Text(assignment.member);
    out["epoch"] = assignment.epoch;
    Partitions(assignment.keys, out);
  }
  void Write(const GroupEpoch& epoch, Json& out) const {
    out["group"] = Text(epoch.group);
    out["epoch"] = epoch.epoch;
    Json& members = out["members"] = Json::array();
    for (const auto& [member, since] : epoch.members) {
      members.push_back(Json::array({Text(member), since}));
    }
    Partitions(epoch.keys, out);
  }
  void Write(const Commit& commit, Json& out) const {
    out["group"] = Text(commit.group);
    Log(commit.key, out);
    out["offset"] = commit.offset;
  }
  void Write(const CommittedRead& read, Json& out) const {
    out["group"] = Text(read.group);
    Log(read.key, out);
    Optional("offset", read.offset, out);
  }
  void Write(const LogStart& start, Json& out) const {
    Log(start.key, out);
    out["offset"] = start.offset;
  }
  void Write(const FinalRead& read, Json& out) const {
    Log(read.key, out);
    out["log_start"] = read.log_start;
    Records(read.records, out);
  }
  void Write(const Metadata& metadata, Json& out) const {
    if (metadata.controller) {
      out["controller"] = {{"term", metadata.controller->term},
                           {"leader", metadata.controller->leader}};
    }
    Log(metadata.key, out);
    if (metadata.leader) {
      out["leader"] = {{"epoch", metadata.leader->epoch}, {"leader", metadata.leader->leader}};
    }
    if (metadata.log) {
      out["log"] = {{"start", metadata.log->start},
                    {"high_watermark", metadata.log->high_watermark},
                    {"end", metadata.log->end}};
    }
  }
  void Write(const Dump& dump, Json& out) const {
    Log(dump.key, out);
    out["log_start"] = dump.log_start;
    out["high_watermark"] = dump.high_watermark;
    Json& rows = out["rows"] = Json::array();
    for (const DumpRow& row : dump.rows) {
      rows.push_back(Json::array({row.offset, row.epoch, row.crc}));
    }
  }
  void Write(const PowerLoss&, Json&) const {}

  const History& history_;
};

}  // namespace

void WriteLines(const History& history, const std::function<void(const std::string&)>& line) {
  const Writer writer(history);
  std::vector<std::pair<uint64_t, std::function<std::string()>>> lines;
  lines.reserve(history.operations());
  const auto add = [&](const auto& operations) {
    for (const auto& operation : operations) {
      lines.emplace_back(operation.sequence,
                         [&writer, &operation] { return writer.Line(operation); });
    }
  };
  add(history.Of<Send>());
  add(history.Of<Poll>());
  add(history.Of<Position>());
  add(history.Of<Assignment>());
  add(history.Of<GroupEpoch>());
  add(history.Of<Commit>());
  add(history.Of<CommittedRead>());
  add(history.Of<LogStart>());
  add(history.Of<FinalRead>());
  add(history.Of<Metadata>());
  add(history.Of<Dump>());
  add(history.Of<PowerLoss>());
  std::sort(lines.begin(), lines.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [sequence, write] : lines) line(write());
}

}  // namespace conclave::history
