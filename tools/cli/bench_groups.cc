#include "tools/cli/bench_groups.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"
#include "tools/cli/bench_run.h"
#include "tools/cli/data_options.h"
#include "tools/cli/data_session.h"
#include "tools/cli/option_checks.h"
#include "tools/measure/histogram.h"

namespace conclave::tools {
namespace {

struct GroupsArguments {
  std::string topic;
  std::string group;
  size_t members = 3;
  uint64_t commits = 200;
};

// Who owns what, as members' events tell it. Thread-safe.
class Ownership {
 public:
  explicit Ownership(size_t partitions) : partitions_(partitions) {}

  void Took(size_t member, const std::vector<TopicPartition>& partitions) {
    std::lock_guard lock(mutex_);
    owned_[member].insert(partitions.begin(), partitions.end());
    changed_.notify_all();
  }
  void Gave(size_t member, const std::vector<TopicPartition>& partitions) {
    std::lock_guard lock(mutex_);
    for (const TopicPartition& partition : partitions) owned_[member].erase(partition);
    changed_.notify_all();
  }

  // Waits until the members 0 to `members` - 1, and no other, own all partitions, none of them two
  // more than another. False: not in time.
  bool WaitUntilShared(size_t members, Duration timeout) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::nanoseconds(timeout.nanoseconds()), [&] {
      size_t sum = 0;
      size_t least = partitions_;
      size_t most = 0;
      for (size_t i = 0; i < members; ++i) {
        const size_t owned = owned_[i].size();
        sum += owned;
        least = std::min(least, owned);
        most = std::max(most, owned);
      }
      return sum == partitions_ && most - least <= 1;
    });
  }

 private:
  const size_t partitions_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<size_t, std::set<TopicPartition>> owned_;
};

class GroupsRun {
 public:
  GroupsRun(const DataSession& session, const GroupsArguments& arguments, size_t partitions)
      : arguments_(arguments),
        bootstrap_(session.bootstrap()),
        timeout_(session.timeout()),
        ownership_(partitions) {}

  // Each member in turn joins; all commit; each but the last leaves, the newest first.
  absl::Status Run() {
    for (size_t i = 0; i < arguments_.members; ++i) {
      const absl::Status joined = Settle(i + 1, joins_, [&] { return Join(i); });
      if (!joined.ok()) return joined;
    }
    const absl::Status committed = CommitAll();
    if (!committed.ok()) return committed;
    for (size_t i = arguments_.members; i-- > 1;) {
      const absl::Status left = Settle(i, leaves_, [&] { return Leave(i); });
      if (!left.ok()) return left;
    }
    return Leave(0);
  }

  const Histogram& joins() const { return joins_; }
  const Histogram& leaves() const { return leaves_; }
  const Histogram& commits() const { return commits_; }
  double commits_per_second() const { return commits_per_second_; }

 private:
  struct Member {
    Member(const std::vector<std::string>& bootstrap, Duration timeout)
        : session(bootstrap, timeout) {}
    DataSession session;
    GroupConsumer* consumer = nullptr;
  };

  // Does it, and times until `members` share the partitions.
  template <class Change>
  absl::Status Settle(size_t members, Histogram& times, Change change) {
    const MonotonicTime begun = clock_.Now();
    const absl::Status done = change();
    if (!done.ok()) return done;
    if (!ownership_.WaitUntilShared(members, timeout_)) {
      return MakeError(
          v1::REQUEST_TIMED_OUT,
          absl::StrCat("the partitions of topic ", arguments_.topic, " are not shared among the ",
                       members, " members of group ", arguments_.group, " after ",
                       timeout_.seconds(), " s; 'conclave group describe ", arguments_.group,
                       "' tells who has which, and whether others are in the group"));
    }
    times.Add(static_cast<uint64_t>((clock_.Now() - begun).nanoseconds()));
    return absl::OkStatus();
  }

  absl::Status Join(size_t i) {
    members_.push_back(std::make_unique<Member>(bootstrap_, timeout_));
    Member& member = *members_.back();
    GroupConsumerOptions options;
    options.group = arguments_.group;
    options.client_id = "conclave bench groups";
    options.auto_commit = false;
    options.consumer.reset = ResetPolicy::kEarliest;
    options.on_event = [this, i](const GroupEvent& event) {
      if (event.kind == GroupEvent::Kind::kAssigned) {
        ownership_.Took(i, event.partitions);
      } else if (event.kind != GroupEvent::Kind::kTrouble) {
        ownership_.Gave(i, event.partitions);
      }
    };
    member.consumer = &member.session.MakeGroupConsumer(std::move(options));
    member.session.Run([&] { member.consumer->Subscribe({arguments_.topic}); });
    return absl::OkStatus();
  }

  absl::Status Leave(size_t i) {
    Member& member = *members_[i];
    const auto closed = member.session.Await<absl::Status>(
        [&](auto done) { member.consumer->Close(std::move(done)); });
    members_.pop_back();
    return closed;
  }

  // All members at once, each a record at a time: polled, committed, and the commit acknowledged.
  absl::Status CommitAll() {
    std::vector<Histogram> times(members_.size());
    std::vector<absl::Status> ends(members_.size());
    std::vector<std::thread> threads;
    const MonotonicTime begun = clock_.Now();
    for (size_t i = 0; i < members_.size(); ++i) {
      threads.emplace_back([&, i] { ends[i] = Commit(*members_[i], times[i]); });
    }
    for (std::thread& thread : threads) thread.join();
    const Duration took = clock_.Now() - begun;
    for (size_t i = 0; i < members_.size(); ++i) {
      if (!ends[i].ok()) return ends[i];
      commits_.Merge(times[i]);
    }
    commits_per_second_ = static_cast<double>(commits_.count()) / took.seconds();
    return absl::OkStatus();
  }

  absl::Status Commit(Member& member, Histogram& times) {
    for (uint64_t n = 0; n < arguments_.commits; ++n) {
      const auto polled = member.session.Await<Consumer::PollResult>(
          [&](auto done) { member.consumer->Poll(1, clock_.Now() + timeout_, std::move(done)); });
      if (!polled.ok()) return polled.status();
      if (polled->empty()) {
        return MakeError(v1::INVALID_REQUEST,
                         absl::StrCat("topic ", arguments_.topic, " has too few records for ",
                                      arguments_.commits,
                                      " commits of each member; 'conclave "
                                      "bench produce' gives it more"));
      }
      const MonotonicTime asked = clock_.Now();
      const auto committed = member.session.Await<absl::Status>(
          [&](auto done) { member.consumer->Commit(std::move(done)); });
      if (!committed.ok()) return committed;
      times.Add(static_cast<uint64_t>((clock_.Now() - asked).nanoseconds()));
    }
    return absl::OkStatus();
  }

  const GroupsArguments& arguments_;
  const std::vector<std::string> bootstrap_;
  const Duration timeout_;
  SystemClock clock_;
  Ownership ownership_;
  std::vector<std::unique_ptr<Member>> members_;
  Histogram joins_;
  Histogram leaves_;
  Histogram commits_;
  double commits_per_second_ = 0;
};

int BenchGroups(const Globals& globals, const GroupsArguments& arguments) {
  return WithDataSession(globals, [&](DataSession& session) -> int {
    session.MakeConsumer(ResetPolicy::kNone);
    const auto partitions = session.Partitions(arguments.topic);
    if (!partitions.ok()) return Report(partitions.status());
    if (arguments.members > partitions->size()) {
      return Report(MakeError(v1::INVALID_REQUEST,
                              absl::StrCat(arguments.members, " members, and topic ",
                                           arguments.topic, " has ", partitions->size(),
                                           " partitions: each member is to have one; give fewer "
                                           "--members, or a topic with more")));
    }
    GroupsRun run(session, arguments, partitions->size());
    const absl::Status status = run.Run();
    if (!status.ok()) return Report(status);
    if (globals.json()) {
      PrintJson(
          {{"bench", "groups"},
           {"members", arguments.members},
           {"partitions", partitions->size()},
           {"join_us", LatencyJson(run.joins())},
           {"leave_us", run.leaves().count() == 0 ? Json(nullptr) : LatencyJson(run.leaves())},
           {"commits", run.commits().count()},
           {"commits_per_second", run.commits_per_second()},
           {"commit_us", LatencyJson(run.commits())}});
      return kDone;
    }
    std::vector<std::vector<std::string>> rows;
    const auto add = [&](const char* what, const Histogram& times) {
      // A member that was alone left nobody to share.
      if (times.count() == 0) return rows.push_back({what, "0", "-", "-", "-"});
      rows.push_back({what, std::to_string(times.count()), MillisecondsText(times.Percentile(50)),
                      MillisecondsText(times.Percentile(99)), MillisecondsText(times.max())});
    };
    add("join to all shared", run.joins());
    add("leave to all shared", run.leaves());
    add("commit", run.commits());
    PrintTable({"WHAT", "COUNT", "P50 MS", "P99 MS", "MAX MS"}, rows);
    std::cout << "\n" << Decimals(run.commits_per_second(), 0) << " commits a second" << std::endl;
    return kDone;
  });
}

}  // namespace

void AddBenchGroupsCommand(CLI::App* bench, const Globals& globals, Run& run) {
  auto arguments = std::make_shared<GroupsArguments>();
  CLI::App* command = bench->add_subcommand(
      "groups",
      "Members join a group one after the other, commit, and leave: how long until all share the "
      "partitions, and how many commits a second. The topic needs records enough");
  command->fallthrough();
  command->add_option("--topic", arguments->topic, "Which")->required()->check(Utf8Text());
  command->add_option("--group", arguments->group, "A group that nobody else is in")
      ->required()
      ->check(GroupName());
  command->add_option("--members", arguments->members, "How many")
      ->check(CLI::Range(size_t{1}, size_t{200}))
      ->capture_default_str();
  command->add_option("--commits", arguments->commits, "Of each member")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1'000'000}))
      ->capture_default_str();
  command->callback([&globals, &run, arguments] {
    run = [&globals, arguments] { return BenchGroups(globals, *arguments); };
  });
}

}  // namespace conclave::tools
