// Clients of a cluster of real processes, and what they were told, for the history checker.
//
//   history_load HOST:PORT[,…] TOPIC TOPIC-ID PARTITIONS PRODUCERS MEMBERS FILE
//
// Reads commands from stdin, a line each, and answers each with a line:
//   acks     how many records have been acknowledged, and how many sends have failed
//   finish   sends no more, waits until all that was stored was read and committed, reads it all
//            once more, writes FILE; then the process ends
#include <algorithm>
#include <fstream>
#include <functional>
#include <future>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/clock/system_clock.h"
#include "common/error/error.h"
#include "common/executor/thread_executor.h"
#include "common/random/entropy.h"
#include "common/random/random.h"
#include "common/transport/grpc_transport.h"
#include "tests/history/text.h"
#include "tests/rounds/load.h"

namespace conclave::rounds {
namespace {

// After the last round everything has to come to its end within this.
constexpr Duration kToTheEnd = Duration::Seconds(120);

class Load {
 public:
  Load(Environment environment, int producers, int members, Random random)
      : environment_(std::move(environment)), random_(random) {
    for (int i = 0; i < producers; ++i) {
      senders_.push_back(
          std::make_unique<Sender>(environment_, i, random_.Fork("sender " + std::to_string(i))));
    }
    reader_ = std::make_unique<Reader>(environment_, "reader", random_.Fork("reader"));
    for (int i = 0; i < members; ++i) {
      members_.push_back(
          std::make_unique<Member>(environment_, i, random_.Fork("member " + std::to_string(i))));
    }
  }

  // All on the executor.
  void Start() {
    for (const auto& sender : senders_) sender->Start();
    reader_->Start();
    for (const auto& member : members_) member->Start();
  }
  std::string Acks() const {
    uint64_t acknowledged = 0;
    uint64_t failed = 0;
    for (const auto& sender : senders_) {
      acknowledged += sender->acknowledged();
      failed += sender->failed();
    }
    return std::to_string(acknowledged) + " " + std::to_string(failed);
  }
  void Finish(std::function<void(std::string)> done) {
    for (const auto& sender : senders_) sender->Stop();
    done_ = std::move(done);
    give_up_ = environment_.executor.clock().Now() + kToTheEnd;
    AwaitIdle();
  }

 private:
  std::string Trouble() const {
    if (!reader_->trouble().empty()) return "the reader: " + reader_->trouble();
    for (const auto& member : members_) {
      if (!member->trouble().empty()) return "a member: " + member->trouble();
    }
    if (environment_.executor.clock().Now() > give_up_) return "not at the end in time";
    return "";
  }
  // Calls itself again until `reached`, then `next`.
  void Await(std::function<bool()> reached, std::function<void()> next) {
    if (const std::string trouble = Trouble(); !trouble.empty()) return done_(trouble);
    if (reached()) return next();
    environment_.executor.PostAfter(Duration::Milliseconds(50),
                                    [this, reached, next] { Await(reached, next); });
  }
  void AwaitIdle() {
    Await(
        [this] {
          for (const auto& sender : senders_) {
            if (!sender->idle()) return false;
          }
          return true;
        },
        [this] { FindEnds(); });
  }
  void FindEnds() {
    ConsumerOptions options;
    options.bootstrap = environment_.bootstrap;
    options.reset = ResetPolicy::kNone;
    last_ = std::make_unique<Consumer>(options, environment_.transport, environment_.executor,
                                       random_.Fork("last"));
    ends_.assign(static_cast<size_t>(environment_.partitions), -1);
    for (int i = 0; i < environment_.partitions; ++i) {
      last_->ListOffsets({.partition = {environment_.record.topic(), PartitionIndex(i)}}, give_up_,
                         [this, i](const absl::StatusOr<OffsetAnswer>& found) {
                           if (found.ok()) ends_[static_cast<size_t>(i)] = found->offset.value();
                         });
    }
    Await([this] { return std::count(ends_.begin(), ends_.end(), -1) == 0; },
          [this] { AwaitRead(); });
  }
  void AwaitRead() {
    Await(
        [this] {
          for (size_t i = 0; i < ends_.size(); ++i) {
            if (reader_->next()[i] < ends_[i]) return false;
            if (!members_.empty() && !IsCommitted(static_cast<int>(i), ends_[i])) return false;
          }
          return true;
        },
        [this] { ReadOnceMore(); });
  }
  bool IsCommitted(int partition, int64_t end) const {
    return end == 0 || std::any_of(members_.begin(), members_.end(), [&](const auto& member) {
             return member->owns(partition) && member->committed(partition) == end;
           });
  }
  void ReadOnceMore() {
    std::vector<Consumer::Assignment> all;
    for (int i = 0; i < environment_.partitions; ++i) {
      all.push_back({{environment_.record.topic(), PartitionIndex(i)}, StartAt::At(Offset(0))});
      auto read =
          environment_.record.Seen<history::FinalRead>("final read", environment_.record.Now());
      read.key = environment_.record.KeyOf(i);
      finals_.push_back(std::move(read));
    }
    last_->Assign(all);
    PollOnceMore();
  }
  void PollOnceMore() {
    bool at_end = true;
    for (size_t i = 0; i < ends_.size(); ++i) {
      const auto& records = finals_[i].records;
      at_end &= ends_[i] == 0 || (!records.empty() && records.back().offset + 1 >= ends_[i]);
    }
    if (at_end) {
      for (history::FinalRead& read : finals_) {
        read.complete = environment_.record.Now();
        environment_.record.Add(std::move(read));
      }
      return done_("");
    }
    if (const std::string trouble = Trouble(); !trouble.empty()) return done_(trouble);
    last_->Poll(5000, environment_.executor.clock().Now() + Duration::Seconds(1),
                [this](Consumer::PollResult result) {
                  if (!result.ok()) return done_(Describe(result.status()));
                  for (const PartitionRecords& part : *result) {
                    auto& records =
                        finals_[static_cast<size_t>(part.partition.partition.value())].records;
                    for (const RecordView& record : part.records) {
                      records.push_back(
                          {record.offset.value(), std::string(record.value.value_or("null"))});
                    }
                  }
                  environment_.executor.Post([this] { PollOnceMore(); });
                });
  }

  Environment environment_;
  Random random_;
  std::vector<std::unique_ptr<Sender>> senders_;
  std::unique_ptr<Reader> reader_;
  std::vector<std::unique_ptr<Member>> members_;
  std::unique_ptr<Consumer> last_;
  std::vector<int64_t> ends_;
  std::vector<history::FinalRead> finals_;
  std::function<void(std::string)> done_;
  MonotonicTime give_up_ = MonotonicTime::Never();
};

// On the executor, and waits for it.
template <class Result>
Result On(Executor& executor, std::function<Result()> call) {
  std::promise<Result> result;
  executor.Post([&] { result.set_value(call()); });
  return result.get_future().get();
}

int Serve(Load& load, ThreadExecutor& executor, const Record& record, const std::string& path) {
  std::string command;
  while (std::getline(std::cin, command)) {
    if (command == "acks") {
      std::cout << On<std::string>(executor, [&] { return load.Acks(); }) << std::endl;
      continue;
    }
    if (command != "finish") {
      std::cerr << "history_load: no command '" << command << "'" << std::endl;
      return 2;
    }
    std::promise<std::string> finished;
    executor.Post(
        [&] { load.Finish([&](std::string trouble) { finished.set_value(std::move(trouble)); }); });
    const std::string trouble = finished.get_future().get();
    executor.Stop();
    std::ofstream file(path);
    history::WriteLines(record.history(),
                        [&file](const std::string& line) { file << line << '\n'; });
    if (!file.flush()) {
      std::cerr << "history_load: cannot write " << path << std::endl;
      return 1;
    }
    std::cout << (trouble.empty() ? "done" : trouble) << std::endl;
    return trouble.empty() ? 0 : 1;
  }
  executor.Stop();
  return 1;
}

int Main(int argc, char** argv) {
  int partitions = 0;
  int producers = 0;
  int members = 0;
  if (argc != 8 || !absl::SimpleAtoi(argv[4], &partitions) ||
      !absl::SimpleAtoi(argv[5], &producers) || !absl::SimpleAtoi(argv[6], &members)) {
    std::cerr << "usage: history_load HOST:PORT[,…] TOPIC TOPIC-ID PARTITIONS PRODUCERS MEMBERS "
                 "FILE"
              << std::endl;
    return 2;
  }
  SystemClock clock;
  ThreadExecutor executor(clock, {.name = "load"});
  GrpcTransport transport;
  Record record(executor, argv[2], argv[3]);
  Load load({.transport = transport,
             .executor = executor,
             .bootstrap = absl::StrSplit(argv[1], ','),
             .record = record,
             .partitions = partitions},
            producers, members, Random(EntropySeed()));
  executor.Post([&] { load.Start(); });
  return Serve(load, executor, record, argv[7]);
}

}  // namespace
}  // namespace conclave::rounds

int main(int argc, char** argv) { return conclave::rounds::Main(argc, argv); }
