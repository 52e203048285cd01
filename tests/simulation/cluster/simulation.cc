#include "tests/simulation/cluster/simulation.h"

#include <functional>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "common/error/error.h"
#include "common/random/random.h"
#include "tests/simulation/cluster/cluster.h"
#include "tests/simulation/cluster/consumer_workload.h"
#include "tests/simulation/cluster/group_workload.h"
#include "tests/simulation/cluster/metadata_coverage.h"
#include "tests/simulation/cluster/nemesis.h"
#include "tests/simulation/cluster/offsets_workload.h"
#include "tests/simulation/cluster/producer_workload.h"
#include "tests/simulation/cluster/recorder.h"
#include "tests/simulation/cluster/removal_workload.h"
#include "tests/simulation/cluster/swarm.h"

namespace conclave::cluster_sim {
namespace {

constexpr char kTopic[] = "t";
// A full session, elections, catching up, and pauses between attempts.
constexpr Duration kWholeWithin = Duration::Seconds(60);
// Longer than any delivery or request is given.
constexpr Duration kQuietWithin = Duration::Seconds(90);
// Of members of a group that take over from each other, and of one whose session has to end.
constexpr Duration kReadWithin = Duration::Seconds(60);

std::string SecondsText(Duration duration) {
  return std::to_string(duration.milliseconds() / 1000) + " s";
}

class Run : private control_sim::ControlPlane::Observer {
 public:
  Run(const RunOptions& options, RunResult& result)
      : result_(result),
        random_(options.seed),
        swarm_(Draw(random_.Fork("swarm"), options)),
        cluster_(options.seed, WithTrace(swarm_.cluster, options.trace)),
        recorder_(cluster_),
        metadata_(result.coverage) {
    cluster_.plane().SetObserver(this);
  }

  void Execute() {
    const std::string created =
        cluster_.CreateTopic(kTopic, swarm_.partitions, swarm_.replicas, swarm_.topic_settings);
    if (!created.empty()) {
      cluster_.Break(created);
    } else {
      StartClients();
      Nemesis nemesis(cluster_, random_.Fork("nemesis"), result_.coverage, kTopic, clients_,
                      group_.get(), swarm_.acknowledges_unsynced);
      nemesis.Begin();
      cluster_.RunFor(swarm_.faults_for);
      nemesis.End();
      if (cluster_.violation().empty()) Recover();
    }
    Report();
  }

 private:
  static Swarm Draw(const Random& random, const RunOptions& options) {
    Swarm swarm = Swarm::Draw(random);
    if (options.sends_a_second > 0) swarm.KeepOneProducer(options.sends_a_second);
    return swarm;
  }

  static control_sim::ControlPlane::Options WithTrace(control_sim::ControlPlane::Options options,
                                                      std::ostream* trace) {
    options.text = trace;
    return options;
  }

  void OnImage(int node, const MetadataImage& image) override {
    metadata_.Observe(image);
    recorder_.Observe(node, image, kTopic);
  }
  void OnActive(int controller, Term term) override { recorder_.ObserveActive(controller, term); }

  void StartClients() {
    for (int i = 0; i < swarm_.producers; ++i) {
      producers_.push_back(std::make_unique<ProducerWorkload>(
          cluster_, random_.Fork("producer " + std::to_string(i)), recorder_, kTopic,
          swarm_.partitions, i));
      producers_.back()->Start(swarm_.between_sends);
      clients_.push_back(producers_.back()->name());
    }
    clients_.push_back("client");
    if (!swarm_.retention) {
      consumer_.emplace(cluster_, random_.Fork("consumer"), recorder_, kTopic, swarm_.partitions);
      consumer_->Start();
    }
    if (swarm_.offsets) {
      offsets_.emplace(cluster_, random_.Fork("offsets"), recorder_, kTopic);
      offsets_->Start();
    }
    if (swarm_.group_members > 0) {
      group_ = std::make_unique<GroupWorkload>(cluster_, random_.Fork("group"), recorder_, kTopic,
                                               swarm_.partitions, swarm_.group_members,
                                               result_.coverage);
      group_->Start();
      for (const std::string& name : group_->names()) clients_.push_back(name);
    }
    if (swarm_.between_removals) {
      removals_.emplace(cluster_, random_.Fork("removals"), kTopic, swarm_.partitions);
      removals_->Start(*swarm_.between_removals);
    }
    if (swarm_.admin) cluster_.plane().admin().Start(swarm_.between_admin_requests);
  }

  // Each returns whether the run goes on.
  bool Await(Duration limit, const std::string& what, const std::function<bool()>& done) {
    if (cluster_.RunUntil(limit, done)) return true;
    cluster_.Break(what + " within " + SecondsText(limit));
    return false;
  }
  // As Await, for what is costly to look at.
  // `progress`: while it changes, the limit begins anew: how long the whole takes depends on how
  // much the faults have left to do.
  bool AwaitNowAndThen(
      Duration limit, const std::string& what, const std::function<bool()>& done,
      const std::function<int64_t()>& progress = [] { return 0; }) {
    MonotonicTime until = cluster_.scheduler().now() + limit;
    int64_t reached = progress();
    while (cluster_.violation().empty()) {
      if (done()) return true;
      if (const int64_t now = progress(); now != reached) {
        reached = now;
        until = cluster_.scheduler().now() + limit;
      }
      if (cluster_.scheduler().now() >= until) {
        cluster_.Break(what + " within " + SecondsText(limit));
        break;
      }
      cluster_.RunFor(Duration::Milliseconds(100));
    }
    return false;
  }

  uint64_t Acknowledged() const {
    uint64_t sum = 0;
    for (const auto& producer : producers_) sum += producer->counters().acknowledged;
    return sum;
  }
  bool IsIdle() {
    for (const auto& producer : producers_) {
      if (!producer->idle()) return false;
    }
    return (!offsets_ || offsets_->idle()) && (!removals_ || removals_->idle()) &&
           cluster_.plane().admin().idle();
  }

  // What has to hold once faults are over: it becomes whole, serves, and has lost nothing.
  void Recover() {
    if (!AwaitNowAndThen(kWholeWithin, "after the last fault not whole", [&] {
          cluster_.ReadRotten();
          return cluster_.IsWhole(kTopic);
        })) {
      return cluster_.plane().Say(cluster_.WhyNotWhole(kTopic));
    }
    const uint64_t acknowledged = Acknowledged();
    const auto offsets_before = offsets_ ? offsets_->counters() : OffsetsWorkload::Counters();
    if (!Await(Duration::Seconds(30), "a whole cluster acknowledged nothing",
               [&] { return Acknowledged() > acknowledged; })) {
      for (const auto& producer : producers_) {
        cluster_.plane().Say(producer->name() + ": " + Describe(producer->last_failure()));
      }
      return;
    }
    const bool serves =
        Await(Duration::Seconds(30), "a whole cluster committed or read no offset", [&] {
          return !offsets_ || (offsets_->counters().committed > offsets_before.committed &&
                               offsets_->counters().read > offsets_before.read);
        });
    if (!serves) return;
    for (const auto& producer : producers_) producer->Stop();
    if (offsets_) offsets_->Stop();
    if (removals_) removals_->Stop();
    cluster_.plane().admin().Stop();
    const bool quiet =
        Await(kQuietWithin, "requests had no outcome", [&] { return IsIdle(); }) &&
        AwaitNowAndThen(kReadWithin, "the consumer has not read everything",
                        [&] { return !consumer_ || consumer_->IsAtEnd(); }) &&
        AwaitNowAndThen(
            kReadWithin, "the group has not read and committed everything, and nothing more",
            [&] { return group_ == nullptr || group_->IsAtEnd(); },
            [&] { return group_ == nullptr ? 0 : group_->Committed(); }) &&
        // A session that a fault broke may have ended only now.
        AwaitNowAndThen(kWholeWithin, "not whole at the end",
                        [&] { return cluster_.IsWhole(kTopic); });
    if (!quiet) return cluster_.plane().Say(cluster_.WhyNotWhole(kTopic));
    CheckFinal();
  }

  void CheckFinal() {
    if (group_ != nullptr) group_->RecordEnd();
    recorder_.RecordEnd(kTopic, swarm_.partitions);
    if (const std::string wrong = recorder_.Check(); !wrong.empty()) return cluster_.Break(wrong);
    const std::string again = removals_ ? removals_->CheckFinal() : "";
    if (!again.empty()) return cluster_.Break(again);
    if (!swarm_.admin || cluster_.plane().Active() < 0) return;
    const MetadataImage& image = cluster_.plane().ImageOf(cluster_.plane().Active());
    if (const std::string wrong = cluster_.plane().admin().CheckFinal(image); !wrong.empty()) {
      cluster_.Break(wrong);
    }
  }

  void Report() {
    result_.violation = cluster_.violation();
    if (!result_.violation.empty()) {
      std::ostringstream out;
      out << cluster_.scheduler().now() << ": " << result_.violation;
      result_.violation = out.str();
    }
    result_.events = cluster_.scheduler().events();
    result_.simulated = cluster_.scheduler().now() - SimScheduler().now();
    result_.trace_hash = cluster_.scheduler().trace_hash();
    Coverage& coverage = result_.coverage;
    for (const auto& producer : producers_) {
      coverage.Count("sent", producer->counters().sent);
      coverage.Count("acknowledged", producer->counters().acknowledged);
      coverage.Count("sends refused", producer->counters().refused);
      coverage.Count("sends unknown", producer->counters().unknown);
      coverage.Count("retries answered as duplicates", producer->counters().duplicates);
    }
    if (consumer_) coverage.Count("polled", consumer_->polled());
    if (offsets_) {
      coverage.Count("offsets committed", offsets_->counters().committed);
      coverage.Count("offsets read", offsets_->counters().read);
      coverage.Count("coordinators found elsewhere", offsets_->counters().moves);
    }
    if (removals_) coverage.Count("records deleted by offset", removals_->done());
    coverage.Count("batches committed", cluster_.counters().batches_committed);
    coverage.Count("batches compared", cluster_.counters().batches_compared);
    coverage.Count("partition leaders", cluster_.counters().leaders);
    coverage.Count("truncations", cluster_.counters().truncations);
    coverage.Count("logs shorter after a restart", cluster_.counters().recovered_shorter);
    coverage.Count("operations checked", recorder_.history().operations());
    coverage.Count("log starts moved", cluster_.counters().log_starts_moved);
    coverage.Count("followers begun anew", cluster_.counters().begun_anew);
    coverage.Count("damaged replicas replaced", cluster_.counters().replaced);
    coverage.Count("controllers became active", cluster_.plane().activations());
    const auto& admin = cluster_.plane().admin().counters();
    coverage.Count("other topics created", admin.created);
    coverage.Count("other topics deleted", admin.deleted);
    // What clients have under way ends before they do.
    cluster_.executor().Stop();
  }

  RunResult& result_;
  const Random random_;
  const Swarm swarm_;
  Cluster cluster_;
  Recorder recorder_;
  MetadataCoverage metadata_;
  std::vector<std::unique_ptr<ProducerWorkload>> producers_;
  std::optional<ConsumerWorkload> consumer_;
  std::optional<OffsetsWorkload> offsets_;
  std::optional<RemovalWorkload> removals_;
  std::unique_ptr<GroupWorkload> group_;
  std::vector<std::string> clients_;
};

}  // namespace

RunResult RunSeed(const RunOptions& options) {
  RunResult result;
  Run(options, result).Execute();
  return result;
}

std::string ReplayCommand(uint64_t seed) { return "tools/simulate --seed " + std::to_string(seed); }

}  // namespace conclave::cluster_sim
