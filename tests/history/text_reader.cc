#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/history/text.h"

namespace conclave::history {
namespace {

using Json = nlohmann::json;

// Takes the fields out of one line's object; the first error stays.
class Fields {
 public:
  Fields(const Json& object, History& history) : object_(object), history_(history) {}

  const std::string& error() const { return error_; }
  void Fail(std::string why) {
    if (error_.empty()) error_ = std::move(why);
  }

  // nullptr: it is not there, which is an error if it is required.
  const Json* Find(const char* name, bool required) {
    taken_.insert(name);
    const auto found = object_.find(name);
    if (found != object_.end()) return &*found;
    if (required) Fail(absl::StrCat("\"", name, "\" is missing"));
    return nullptr;
  }

  int64_t Integer(const Json& json, const std::string& what, int64_t min, int64_t max) {
    const bool fits = json.is_number_unsigned()
                          ? json.get<uint64_t>() <= static_cast<uint64_t>(max)
                          : json.is_number_integer() && json.get<int64_t>() <= max;
    if (fits && json.get<int64_t>() >= min) return json.get<int64_t>();
    Fail(absl::StrCat(what, " is no number from ", min, " to ", max));
    return min;
  }
  int64_t Number(const char* name, int64_t min = 0,
                 int64_t max = std::numeric_limits<int64_t>::max()) {
    const Json* found = Find(name, true);
    return found == nullptr ? min : Integer(*found, absl::StrCat("\"", name, "\""), min, max);
  }
  int64_t NumberOr(const char* name, int64_t absent) {
    const Json* found = Find(name, false);
    return found == nullptr ? absent
                            : Integer(*found, absl::StrCat("\"", name, "\""), 0,
                                      std::numeric_limits<int64_t>::max());
  }

  std::string Text(const char* name) {
    const Json* found = Find(name, true);
    if (found == nullptr) return "";
    if (!found->is_string()) Fail(absl::StrCat("\"", name, "\" is no string"));
    return found->is_string() ? found->get<std::string>() : "";
  }
  Name NameFrom(const Json& json, const std::string& what) {
    const std::string text = json.is_string() ? json.get<std::string>() : "";
    if (!json.is_string()) Fail(absl::StrCat(what, " is no string"));
    if (text.empty()) Fail(absl::StrCat(what, " is empty"));
    return error_.empty() ? history_.NameOf(text) : Name::kNone;
  }
  Name NameAt(const char* name) {
    const Json* found = Find(name, true);
    return found == nullptr ? Name::kNone : NameFrom(*found, absl::StrCat("\"", name, "\""));
  }
  Name Group() {
    return object_.contains("group") ? NameAt("group") : (Find("group", false), Name::kNone);
  }

  bool Flag(const char* name) {
    const Json* found = Find(name, true);
    if (found == nullptr) return false;
    if (!found->is_boolean()) Fail(absl::StrCat("\"", name, "\" is neither true nor false"));
    return found->is_boolean() && found->get<bool>();
  }

  // The place of the text in `choices`.
  size_t Choice(const char* name, const std::vector<std::string>& choices) {
    const std::string text = Text(name);
    for (size_t i = 0; i < choices.size(); ++i) {
      if (text == choices[i]) return i;
    }
    Fail(absl::StrCat("\"", name, "\" is none of ", absl::StrJoin(choices, ", ")));
    return 0;
  }

  std::string Value(const Json& json) {
    if (json.is_string()) return json.get<std::string>();
    const auto hex = json.is_object() && json.size() == 1 ? json.find("hex") : json.end();
    if (hex != json.end() && hex->is_string()) {
      const std::string digits = hex->get<std::string>();
      if (digits.size() % 2 == 0 &&
          digits.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos) {
        return absl::HexStringToBytes(digits);
      }
    }
    Fail("a value is neither a string nor {\"hex\": digits}");
    return "";
  }

  const Json& Array(const char* name) {
    static const Json kEmpty = Json::array();
    const Json* found = Find(name, true);
    if (found == nullptr) return kEmpty;
    if (!found->is_array()) Fail(absl::StrCat("\"", name, "\" is no array"));
    return found->is_array() ? *found : kEmpty;
  }
  // Its elements are arrays of so many.
  bool IsTuple(const Json& json, const char* of, size_t size) {
    if (json.is_array() && json.size() == size) return true;
    Fail(absl::StrCat("\"", of, "\" has an element that is no array of ", size));
    return false;
  }

  std::vector<Record> Records() {
    std::vector<Record> records;
    for (const Json& record : Array("records")) {
      if (!IsTuple(record, "records", 2)) break;
      records.push_back({Integer(record[0], "an offset", 0, std::numeric_limits<int64_t>::max()),
                         Value(record[1])});
    }
    return records;
  }

  KeyIndex KeyFrom(const std::string& topic, int64_t partition) {
    if (!error_.empty()) return KeyIndex::kNone;
    return history_.KeyOf(topic, static_cast<int32_t>(partition));
  }
  KeyIndex Log() {
    const std::string topic = Text("topic");
    return KeyFrom(topic, Number("partition", 0, std::numeric_limits<int32_t>::max()));
  }
  std::vector<KeyIndex> Partitions() {
    std::vector<KeyIndex> keys;
    for (const Json& key : Array("partitions")) {
      if (!IsTuple(key, "partitions", 2)) break;
      if (!key[0].is_string()) Fail("a topic in \"partitions\" is no string");
      const int64_t partition =
          Integer(key[1], "a partition", 0, std::numeric_limits<int32_t>::max());
      keys.push_back(KeyFrom(key[0].is_string() ? key[0].get<std::string>() : "", partition));
    }
    return keys;
  }

  // Of an object within the object; its fields are looked at, too.
  std::optional<std::vector<int64_t>> Numbers(const char* name,
                                              const std::vector<const char*>& fields) {
    const Json* found = Find(name, false);
    if (found == nullptr) return std::nullopt;
    std::vector<int64_t> numbers;
    if (!found->is_object()) {
      Fail(absl::StrCat("\"", name, "\" is no object"));
    } else {
      Fields within(*found, history_);
      for (const char* field : fields) numbers.push_back(within.Number(field, -1));
      within.RefuseOthers();
      if (!within.error().empty()) Fail(absl::StrCat("in \"", name, "\": ", within.error()));
    }
    numbers.resize(fields.size());
    return numbers;
  }

  void RefuseOthers() {
    for (const auto& [name, value] : object_.items()) {
      if (taken_.count(name) == 0)
        Fail(absl::StrCat("it can have no \"", absl::CHexEscape(name), "\""));
    }
  }

 private:
  const Json& object_;
  History& history_;
  std::set<std::string> taken_;
  std::string error_;
};

void Read(Fields& in, Send& send) {
  send.key = in.Log();
  if (const Json* value = in.Find("value", true)) send.value = in.Value(*value);
  constexpr Acks kAcks[] = {Acks::kNone, Acks::kLeader, Acks::kAll};
  send.acks = kAcks[in.Choice("acks", {"none", "leader", "all"})];
  send.idempotent = in.Flag("idempotent");
  send.offset = in.NumberOr("offset", -1);
}

void Read(Fields& in, Poll& poll) {
  poll.key = in.Log();
  poll.group = in.Group();
  poll.records = in.Records();
}

void Read(Fields& in, Position& position) {
  position.key = in.Log();
  position.group = in.Group();
  position.from = in.NumberOr("from", -1);
}

void Read(Fields& in, Assignment& assignment) {
  assignment.group = in.NameAt("group");
  assignment.member = in.NameAt("member");
  assignment.epoch = in.Number("epoch");
  assignment.keys = in.Partitions();
}

void Read(Fields& in, GroupEpoch& epoch) {
  epoch.group = in.NameAt("group");
  epoch.epoch = in.Number("epoch");
  for (const Json& member : in.Array("members")) {
    if (!in.IsTuple(member, "members", 2)) break;
    epoch.members.emplace_back(
        in.NameFrom(member[0], "a member"),
        in.Integer(member[1], "an epoch", 0, std::numeric_limits<int64_t>::max()));
  }
  epoch.keys = in.Partitions();
}

void Read(Fields& in, Commit& commit) {
  commit.group = in.NameAt("group");
  commit.key = in.Log();
  commit.offset = in.Number("offset");
}

void Read(Fields& in, CommittedRead& read) {
  read.group = in.NameAt("group");
  read.key = in.Log();
  read.offset = in.NumberOr("offset", -1);
}

void Read(Fields& in, LogStart& start) {
  start.key = in.Log();
  start.offset = in.Number("offset");
}

void Read(Fields& in, FinalRead& read) {
  read.key = in.Log();
  read.log_start = in.Number("log_start");
  read.records = in.Records();
}

void Read(Fields& in, Metadata& metadata) {
  if (const auto seen = in.Numbers("controller", {"term", "leader"})) {
    metadata.controller = {(*seen)[0], (*seen)[1]};
  }
  if (const auto seen = in.Numbers("leader", {"epoch", "leader"})) {
    metadata.leader = {(*seen)[0], (*seen)[1]};
  }
  if (const auto seen = in.Numbers("log", {"start", "high_watermark", "end"})) {
    metadata.log = {(*seen)[0], (*seen)[1], (*seen)[2]};
  }
  if (metadata.leader || metadata.log) metadata.key = in.Log();
}

void Read(Fields& in, Dump& dump) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  dump.key = in.Log();
  dump.log_start = in.Number("log_start");
  dump.high_watermark = in.Number("high_watermark");
  for (const Json& row : in.Array("rows")) {
    if (!in.IsTuple(row, "rows", 3)) break;
    dump.rows.push_back({in.Integer(row[0], "an offset", 0, kMax),
                         in.Integer(row[1], "an epoch", 0, kMax),
                         static_cast<uint32_t>(in.Integer(row[2], "a checksum", 0,
                                                          std::numeric_limits<uint32_t>::max()))});
  }
}

void Read(Fields&, PowerLoss&) {}

template <class Kind>
void ReadOperation(Fields& in, History& history) {
  Kind operation;
  operation.process = in.NameAt("process");
  operation.invoke = in.Number("invoke");
  operation.complete = in.NumberOr("complete", kNever);
  constexpr Outcome kOutcomes[] = {Outcome::kOk, Outcome::kFail, Outcome::kInfo};
  operation.outcome = kOutcomes[in.Choice("outcome", {"ok", "fail", "info"})];
  Read(in, operation);
  if (operation.complete < operation.invoke) in.Fail("it is complete before it is invoked");
  in.RefuseOthers();
  if (in.error().empty()) history.Add(std::move(operation));
}

struct Kind {
  const char* name;
  void (*read)(Fields&, History&);
};

constexpr Kind kKinds[] = {
    {"send", ReadOperation<Send>},
    {"poll", ReadOperation<Poll>},
    {"position", ReadOperation<Position>},
    {"assignment", ReadOperation<Assignment>},
    {"group_epoch", ReadOperation<GroupEpoch>},
    {"commit", ReadOperation<Commit>},
    {"committed_read", ReadOperation<CommittedRead>},
    {"log_start", ReadOperation<LogStart>},
    {"final_read", ReadOperation<FinalRead>},
    {"metadata", ReadOperation<Metadata>},
    {"dump", ReadOperation<Dump>},
    {"power_loss", ReadOperation<PowerLoss>},
};

}  // namespace

absl::Status ReadLine(std::string_view line, History& history) {
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) return absl::OkStatus();
  const Json object = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return absl::InvalidArgumentError("it is no JSON object");
  Fields in(object, history);
  const std::string op = in.Text("op");
  for (const Kind& kind : kKinds) {
    if (op != kind.name) continue;
    kind.read(in, history);
    return in.error().empty() ? absl::OkStatus() : absl::InvalidArgumentError(in.error());
  }
  in.Fail(absl::StrCat("there is no \"op\" \"", absl::CHexEscape(op), "\""));
  return absl::InvalidArgumentError(in.error());
}

}  // namespace conclave::history
