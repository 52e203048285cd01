#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/history/rules.h"

namespace conclave::history {
namespace {

struct Replica {
  const Dump* dump = nullptr;
  std::vector<DumpRow> rows;
};

struct Replicas {
  std::map<Name, Replica> by_node;
  // What all replicas have to have is in between.
  int64_t greatest_start = 0;
  int64_t high_watermark = 0;
};

std::string Batch(const DumpRow& row) {
  return absl::StrCat("epoch ", row.epoch, " and checksum ", row.crc);
}

void CheckRising(KeyIndex key, const Replica& replica, Findings& findings) {
  for (size_t i = 1; i < replica.rows.size(); ++i) {
    const DumpRow& before = replica.rows[i - 1];
    const DumpRow& row = replica.rows[i];
    if (row.offset > before.offset && row.epoch >= before.epoch) continue;
    findings.Add(16, findings.Log(key), ": in the dump of ", findings.By(*replica.dump),
                 " the batch at offset ", row.offset, " of epoch ", row.epoch,
                 " follows the one at ", before.offset, " of epoch ", before.epoch);
  }
}

class Comparison {
 public:
  Comparison(KeyIndex key, const Replicas& all, Findings& findings)
      : key_(key), all_(all), findings_(findings) {}

  // Each difference is told once a replica, with the first that has it otherwise.
  void Compare(const Replica& one, const Replica& other) {
    auto a = Begin(one);
    auto b = Begin(other);
    for (;;) {
      const bool a_over = a == one.rows.end() || a->offset >= all_.high_watermark;
      const bool b_over = b == other.rows.end() || b->offset >= all_.high_watermark;
      if (a_over && b_over) return;
      if (b_over || (!a_over && a->offset < b->offset)) {
        Missing(*a++, one, other);
      } else if (a_over || b->offset < a->offset) {
        Missing(*b++, other, one);
      } else {
        if (a->epoch != b->epoch || a->crc != b->crc) {
          findings_.Add(16, findings_.Log(key_), ": at offset ", a->offset, " ",
                        findings_.By(*one.dump), " has ", Batch(*a), ", and ",
                        findings_.By(*other.dump), " has ", Batch(*b));
        }
        ++a;
        ++b;
      }
    }
  }

 private:
  std::vector<DumpRow>::const_iterator Begin(const Replica& replica) const {
    return std::find_if(replica.rows.begin(), replica.rows.end(),
                        [&](const DumpRow& row) { return row.offset >= all_.greatest_start; });
  }

  void Missing(const DumpRow& row, const Replica& has, const Replica& has_not) {
    findings_.Add(16, findings_.Log(key_), ": at offset ", row.offset, " ", findings_.By(*has.dump),
                  " has ", Batch(row), ", and ", findings_.By(*has_not.dump), " has no such batch");
  }

  const KeyIndex key_;
  const Replicas& all_;
  Findings& findings_;
};

}  // namespace

void CheckDumps(const History& history, Findings& findings) {
  std::map<KeyIndex, Replicas> logs;
  for (const Dump& dump : history.Of<Dump>()) {
    if (dump.outcome != Outcome::kOk) continue;
    Replicas& replicas = logs[dump.key];
    Replica& replica = replicas.by_node[dump.process];
    if (replica.dump == nullptr) replica.dump = &dump;
    replica.rows.insert(replica.rows.end(), dump.rows.begin(), dump.rows.end());
    replicas.greatest_start = std::max(replicas.greatest_start, dump.log_start);
    replicas.high_watermark = std::max(replicas.high_watermark, dump.high_watermark);
  }
  for (const auto& [key, replicas] : logs) {
    Comparison comparison(key, replicas, findings);
    const Replica& first = replicas.by_node.begin()->second;
    for (const auto& [node, replica] : replicas.by_node) {
      CheckRising(key, replica, findings);
      if (&replica != &first) comparison.Compare(first, replica);
    }
  }
}

}  // namespace conclave::history
