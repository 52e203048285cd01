#include "tests/history/testing/generator.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/history/testing/model_clients.h"
#include "tests/history/testing/model_cluster.h"

namespace conclave::history {
namespace {

constexpr int kNodes = 3;

// A node that hears of elections late, each in its order.
class Observer {
 public:
  Observer(ModelCluster& cluster, int number, Time until)
      : cluster_(cluster),
        name_(cluster.history.NameOf("node-" + std::to_string(number))),
        until_(until),
        heard_(cluster.logs.size(), 0) {
    Observe();
  }

 private:
  void Observe() {
    if (cluster_.agenda.now() > until_) return;
    Random& random = cluster_.random;
    Metadata seen;
    seen.process = name_;
    seen.invoke = seen.complete = cluster_.agenda.now();
    seen.outcome = Outcome::kOk;
    if (random.Chance(0.3)) {
      term_ = static_cast<size_t>(random.Between(
          static_cast<int64_t>(term_), static_cast<int64_t>(cluster_.controllers.size()) - 1));
      seen.controller = {static_cast<int64_t>(term_), cluster_.controllers[term_]};
    }
    const ModelCluster::Log& log = cluster_.AnyLog();
    int64_t& heard = heard_[static_cast<size_t>(log.key)];
    heard = random.Between(heard, static_cast<int64_t>(log.leaders.size()) - 1);
    seen.key = log.key;
    seen.leader = {heard, random.Chance(0.1) ? -1 : log.leaders[static_cast<size_t>(heard)]};
    const int64_t mark = random.Between(log.start, log.end());
    seen.log = {log.start, mark, random.Between(mark, log.end())};
    cluster_.history.Add(seen);
    cluster_.agenda.At(cluster_.Soon(300), [this] { Observe(); });
  }

  ModelCluster& cluster_;
  const Name name_;
  const Time until_;
  size_t term_ = 0;
  // By log.
  std::vector<int64_t> heard_;
};

class Generator {
 public:
  explicit Generator(const GeneratorOptions& options) : options_(options), cluster_(options.seed) {
    for (int i = 0; i < kGeneratedLogs; ++i) {
      ModelCluster::Log log;
      log.key = cluster_.history.KeyOf("t", i);
      log.leaders.push_back(0);
      cluster_.logs.push_back(std::move(log));
    }
    cluster_.controllers.push_back(0);
  }

  History Run() {
    const Time all = options_.lasts;
    const Time readers = all - all / 20;
    std::vector<std::unique_ptr<ModelProducer>> producers;
    std::vector<std::unique_ptr<ModelConsumer>> consumers;
    std::vector<std::unique_ptr<Observer>> observers;
    for (int i = 0; i < options_.clients; ++i) {
      producers.push_back(std::make_unique<ModelProducer>(cluster_, i, all));
      consumers.push_back(std::make_unique<ModelConsumer>(cluster_, i, readers));
    }
    for (int i = 0; i < kNodes; ++i) {
      observers.push_back(std::make_unique<Observer>(cluster_, i, all));
    }
    ModelGroup group(cluster_, options_.clients, readers);
    ModelOffsets offsets(cluster_, all);
    Elect();
    RemoveSome();
    cluster_.agenda.Run();
    for (const ModelCluster::Log& log : cluster_.logs) {
      ReadAll(log);
      DumpAll(log);
    }
    return std::move(cluster_.history);
  }

 private:
  void Elect() {
    if (cluster_.agenda.now() > options_.lasts) return;
    const auto leader = static_cast<int64_t>(cluster_.random.Below(kNodes));
    if (cluster_.random.Chance(0.3)) {
      cluster_.controllers.push_back(leader);
    } else {
      cluster_.AnyLog().leaders.push_back(leader);
    }
    cluster_.agenda.At(cluster_.Soon(500), [this] { Elect(); });
  }

  void RemoveSome() {
    if (cluster_.agenda.now() > options_.lasts) return;
    ModelCluster::Log& log = cluster_.logs[kRemovedFromLog];
    log.start = cluster_.random.Between(log.start, log.end());
    cluster_.agenda.At(cluster_.Soon(3'000), [this] { RemoveSome(); });
  }

  template <class Kind>
  Kind AtTheEnd(const std::string& process, const ModelCluster::Log& log) {
    Kind operation;
    operation.process = cluster_.history.NameOf(process);
    operation.invoke = cluster_.agenda.now() + 1'000;
    operation.complete = operation.invoke + 100;
    operation.outcome = Outcome::kOk;
    operation.key = log.key;
    return operation;
  }

  void ReadAll(const ModelCluster::Log& log) {
    int64_t from = log.start;
    do {
      auto read = AtTheEnd<FinalRead>("final", log);
      read.log_start = log.start;
      const int64_t until = std::min(log.end(), from + 200);
      for (; from < until; ++from) {
        read.records.push_back({from, log.values[static_cast<size_t>(from)]});
      }
      cluster_.history.Add(std::move(read));
    } while (from < log.end());
  }

  void DumpAll(const ModelCluster::Log& log) {
    std::vector<DumpRow> rows;
    for (int64_t at = 0; at < log.end(); at += cluster_.random.Between(1, 5)) {
      const int64_t epoch = at * static_cast<int64_t>(log.leaders.size()) / log.end();
      rows.push_back({at, epoch, static_cast<uint32_t>(cluster_.random.Next())});
    }
    for (int node = 0; node < kNodes; ++node) {
      auto dump = AtTheEnd<Dump>("node-" + std::to_string(node), log);
      dump.high_watermark = log.end() - (node == 0 ? 0 : cluster_.random.Between(0, 1));
      // Each removes for itself.
      const size_t first = log.start == 0 || rows.empty() ? 0 : cluster_.random.Below(rows.size());
      dump.log_start = first == 0 ? 0 : rows[first].offset;
      dump.rows.assign(rows.begin() + static_cast<int64_t>(first), rows.end());
      cluster_.history.Add(std::move(dump));
    }
  }

  const GeneratorOptions options_;
  ModelCluster cluster_;
};

}  // namespace

History Generate(const GeneratorOptions& options) { return Generator(options).Run(); }

}  // namespace conclave::history
