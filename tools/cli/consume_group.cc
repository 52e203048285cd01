#include "tools/cli/consume_group.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <vector>

#include "client/group/group_consumer.h"
#include "common/error/error.h"
#include "tools/cli/data_session.h"
#include "tools/cli/record_output.h"

namespace conclave::tools {
namespace {

constexpr size_t kPollRecords = 1000;

volatile std::sig_atomic_t g_asked_to_end = 0;

// Asked once, it commits and leaves. Who asks again will not wait for that.
void OnSignal(int signal) {
  if (g_asked_to_end != 0) _exit(128 + signal);
  g_asked_to_end = 1;
}

// Where the partitions ended when the command began.
using Marks = std::map<TopicPartition, Offset>;

class MemberCommand {
 public:
  MemberCommand(DataSession& session, GroupConsumer& consumer,
                const GroupConsumeArguments& arguments)
      : session_(session),
        consumer_(consumer),
        arguments_(arguments),
        output_(arguments.format),
        left_(arguments.count < 0 ? INT64_MAX : arguments.count) {}

  int Run(Duration timeout) {
    timeout_ = timeout;
    if (absl::Status begun = Begin(); !begun.ok()) {
      output_.EndProgress();
      return Report(begun);
    }
    const absl::Status read = Read();
    // What was not printed is not committed.
    absl::Status committed;
    if (!output_.failed()) committed = Commit();
    const absl::Status left =
        session_.Await<absl::Status>([&](auto done) { consumer_.Close(std::move(done)); });
    output_.EndProgress();
    if (output_.failed()) return output_.ExitCode();
    for (const absl::Status& status : {read, committed, left}) {
      if (!status.ok()) return Report(status);
    }
    return kDone;
  }

 private:
  absl::Status Begin() {
    using Indexes = absl::StatusOr<std::vector<PartitionIndex>>;
    const Indexes partitions = session_.Await<Indexes>(
        [&](auto done) { consumer_.Partitions(arguments_.topic, Deadline(), std::move(done)); });
    if (!partitions.ok()) return partitions.status();
    if (arguments_.exit_at_end) {
      using Answer = absl::StatusOr<OffsetAnswer>;
      for (const PartitionIndex index : *partitions) {
        const TopicPartition name{arguments_.topic, index};
        const Answer end = session_.Await<Answer>([&](auto done) {
          consumer_.ListOffsets({name, v1::OFFSET_SPEC_LATEST, 0}, Deadline(), std::move(done));
        });
        if (!end.ok()) return end.status();
        // Of an empty partition there is nothing to wait for.
        if (end->high_watermark > end->log_start) marks_[name] = end->high_watermark;
      }
    }
    session_.Run([&] { consumer_.Subscribe({arguments_.topic}); });
    return absl::OkStatus();
  }

  absl::Status Read() {
    while (left_ > 0 && g_asked_to_end == 0) {
      if (arguments_.exit_at_end) {
        const auto at_end = AtEnd();
        if (!at_end.ok()) return at_end.status();
        if (*at_end) break;
      }
      const auto most = static_cast<size_t>(std::min<int64_t>(left_, kPollRecords));
      const auto records = session_.Await<Consumer::PollResult>([&](auto done) {
        consumer_.Poll(most, session_.clock().Now() + Duration::Milliseconds(200), std::move(done));
      });
      if (!records.ok()) {
        output_.Flush();
        return records.status();
      }
      for (const PartitionRecords& part : *records) {
        for (const RecordView& record : part.records) {
          output_.Write(part.partition, record);
          --left_;
        }
      }
      output_.Flush();
      if (output_.failed()) break;
    }
    return absl::OkStatus();
  }

  // Whether the group has come to the marks: this member by what it has printed, others by what
  // they have committed.
  absl::StatusOr<bool> AtEnd() {
    std::vector<TopicPartition> others;
    const bool mine = session_.Run([&] {
      const std::vector<TopicPartition> owned = consumer_.Owned();
      for (const auto& [name, mark] : marks_) {
        if (std::find(owned.begin(), owned.end(), name) == owned.end()) {
          others.push_back(name);
          continue;
        }
        const auto position = consumer_.Position(name);
        if (!position || *position < mark) return false;
      }
      return true;
    });
    if (!mine) return false;
    if (others.empty()) return true;
    // They wait for this one, too.
    if (absl::Status committed = Commit(); !committed.ok() && !IsRetriable(committed)) {
      return false;  // The partitions were lost; whoever has them now goes on with them.
    }
    using Offsets = absl::StatusOr<GroupConsumer::Offsets>;
    const Offsets offsets = session_.Await<Offsets>(
        [&](auto done) { consumer_.Committed(Deadline(), std::move(done)); });
    if (!offsets.ok()) return offsets.status();
    for (const TopicPartition& name : others) {
      const auto committed = offsets->find(name);
      if (committed == offsets->end() || committed->second < marks_.at(name)) {
        return StillThere(name);
      }
    }
    return true;
  }

  // Of a topic that was deleted nobody commits any more. False: it is there, or nobody can tell.
  absl::StatusOr<bool> StillThere(const TopicPartition& name) {
    using Answer = absl::StatusOr<OffsetAnswer>;
    const Answer end = session_.Await<Answer>([&](auto done) {
      consumer_.ListOffsets({name, v1::OFFSET_SPEC_EARLIEST, 0}, Deadline(), std::move(done));
    });
    const v1::ErrorCode code = ErrorCodeOf(end.status());
    if (code == v1::UNKNOWN_TOPIC_OR_PARTITION || code == v1::UNKNOWN_TOPIC_ID) {
      return end.status();
    }
    return false;
  }

  absl::Status Commit() {
    return session_.Await<absl::Status>([&](auto done) { consumer_.Commit(std::move(done)); });
  }
  MonotonicTime Deadline() const { return session_.clock().Now() + timeout_; }

  DataSession& session_;
  GroupConsumer& consumer_;
  const GroupConsumeArguments& arguments_;
  RecordOutput output_;
  int64_t left_;
  Duration timeout_;
  Marks marks_;
};

}  // namespace

int ConsumeAsMember(const Globals& globals, const GroupConsumeArguments& arguments) {
  return WithDataSession(globals, [&](DataSession& session) -> int {
    std::signal(SIGINT, OnSignal);
    std::signal(SIGTERM, OnSignal);
    const Duration timeout = Duration::Seconds(globals.timeout_seconds);
    GroupConsumerOptions options;
    options.consumer.reset =
        arguments.from_beginning ? ResetPolicy::kEarliest : ResetPolicy::kLatest;
    options.group = arguments.group;
    options.client_id = "conclave-consume";
    options.instance_id = arguments.instance_id;
    options.assignor = arguments.assignor;
    options.session_timeout = arguments.session_timeout;
    options.commit_timeout = timeout;
    GroupConsumer& consumer = session.MakeGroupConsumer(std::move(options));
    MemberCommand command(session, consumer, arguments);
    return command.Run(timeout);
  });
}

}  // namespace conclave::tools
