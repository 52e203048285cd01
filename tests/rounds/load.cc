#include "tests/rounds/load.h"

#include <algorithm>
#include <utility>

#include "common/error/error.h"

namespace conclave::rounds {
namespace {

constexpr char kGroup[] = "members";
// Of one producer. Enough for batches to gather while a request is under way.
constexpr size_t kUnderWay = 64;
// Of producers: no outage of a round lasts so long.
constexpr Duration kDeliveryTimeout = Duration::Seconds(120);

}  // namespace

void Record::Polled(std::string_view process, const PartitionRecords& records, history::Time invoke,
                    std::string_view group) {
  auto poll = Seen<history::Poll>(process, invoke);
  poll.key = KeyOf(records.partition.partition.value());
  if (!group.empty()) poll.group = NameOf(group);
  poll.records.reserve(records.records.size());
  for (const RecordView& record : records.records) {
    poll.records.push_back({record.offset.value(), std::string(record.value.value_or("null"))});
  }
  Add(std::move(poll));
}

// --- Sender

Sender::Sender(Environment environment, int number, const Random& random)
    : environment_(std::move(environment)),
      number_(number),
      process_("producer-" + std::to_string(number)),
      random_(random.Fork("sender")) {
  ProducerOptions options;
  options.bootstrap = environment_.bootstrap;
  options.delivery_timeout = kDeliveryTimeout;
  options.request_timeout = Duration::Seconds(5);
  producer_ = std::make_unique<Producer>(options, environment_.transport, environment_.executor,
                                         random.Fork("producer"));
}

void Sender::Start() {
  running_ = true;
  Fill();
}

void Sender::Fill() {
  filling_soon_ = false;
  while (running_ && open_ < kUnderWay) SendOne();
}

void Sender::SendOne() {
  ProducerRecord record;
  record.topic = environment_.record.topic();
  record.partition = PartitionIndex(
      static_cast<int32_t>(random_.Below(static_cast<uint64_t>(environment_.partitions))));
  record.value = std::to_string(number_) + "/" + std::to_string(++last_value_);
  auto send = environment_.record.Begun<history::Send>(process_);
  send.key = environment_.record.KeyOf(record.partition->value());
  send.value = *record.value;
  const size_t place = environment_.record.Add(std::move(send));
  ++open_;
  const absl::Status taken = producer_->Send(
      record, [this, place](const Delivery& delivery) { Delivered(place, delivery); });
  if (!taken.ok()) Delivered(place, {.status = taken, .partition = {}});
}

void Sender::Delivered(size_t place, const Delivery& delivery) {
  --open_;
  history::Send& sent = environment_.record.At<history::Send>(place);
  sent.complete = environment_.record.Now();
  if (delivery.status.ok()) {
    ++acknowledged_;
    sent.outcome = history::Outcome::kOk;
    sent.offset = delivery.offset.value();
  } else {
    ++failed_;
    if (!delivery.outcome_unknown()) sent.outcome = history::Outcome::kFail;
  }
  if (!std::exchange(filling_soon_, true)) environment_.executor.Post([this] { Fill(); });
}

// --- Reader

Reader::Reader(Environment environment, std::string process, const Random& random)
    : environment_(std::move(environment)),
      process_(std::move(process)),
      next_(static_cast<size_t>(environment_.partitions)) {
  ConsumerOptions options;
  options.bootstrap = environment_.bootstrap;
  options.reset = ResetPolicy::kNone;
  options.final_error_timeout = kDeliveryTimeout;
  options.on_event = [this](const ConsumerEvent& event) {
    if (event.kind != ConsumerEvent::Kind::kTrouble) trouble_ = Describe(event.status);
  };
  consumer_ = std::make_unique<Consumer>(options, environment_.transport, environment_.executor,
                                         random.Fork("reader"));
}

void Reader::Start() {
  std::vector<Consumer::Assignment> all;
  for (int i = 0; i < environment_.partitions; ++i) {
    all.push_back({{environment_.record.topic(), PartitionIndex(i)}, StartAt::At(Offset(0))});
  }
  consumer_->Assign(all);
  Poll();
}

void Reader::Poll() {
  const history::Time invoke = environment_.record.Now();
  consumer_->Poll(1000, environment_.executor.clock().Now() + Duration::Seconds(1),
                  [this, invoke](Consumer::PollResult result) {
                    if (!result.ok()) {
                      trouble_ = Describe(result.status());
                      return;
                    }
                    for (const PartitionRecords& records : *result) {
                      environment_.record.Polled(process_, records, invoke, "");
                      next_[static_cast<size_t>(records.partition.partition.value())] =
                          records.next.value();
                    }
                    environment_.executor.Post([this] { Poll(); });
                  });
}

// --- Member

Member::Member(Environment environment, int number, const Random& random)
    : environment_(std::move(environment)),
      process_("member-" + std::to_string(number)),
      shares_(static_cast<size_t>(environment_.partitions)),
      heard_(environment_.record.Now()) {
  for (Share& share : shares_) share.free = heard_;
  GroupConsumerOptions options;
  options.consumer.bootstrap = environment_.bootstrap;
  options.consumer.reset = ResetPolicy::kEarliest;
  options.consumer.final_error_timeout = kDeliveryTimeout;
  options.consumer.on_event = [this](const ConsumerEvent& event) {
    const bool began = event.kind == ConsumerEvent::Kind::kReset && event.from == Offset(-1);
    if (!began && event.kind != ConsumerEvent::Kind::kTrouble) trouble_ = Describe(event.status);
  };
  options.group = kGroup;
  options.auto_commit = false;
  options.on_event = [this](const GroupEvent& event) { OnEvent(event); };
  consumer_ = std::make_unique<GroupConsumer>(options, environment_.transport,
                                              environment_.executor, random.Fork("member"));
}

void Member::Start() {
  consumer_->Subscribe({environment_.record.topic()});
  Poll();
}

void Member::OnEvent(const GroupEvent& event) {
  if (event.kind == GroupEvent::Kind::kTrouble) return;
  const bool assigned = event.kind == GroupEvent::Kind::kAssigned;
  for (const TopicPartition& partition : event.partitions) {
    if (assigned) {
      TakenUp(partition.partition.value());
      continue;
    }
    Share& share = shares_[static_cast<size_t>(partition.partition.value())];
    share.owned = false;
    share.free = environment_.record.Now();
  }
  if (event.kind == GroupEvent::Kind::kLost) {
    heard_ = environment_.record.Now();
    return;
  }
  RecordAssignment();
}

void Member::TakenUp(int partition) {
  Record& record = environment_.record;
  Share& share = shares_[static_cast<size_t>(partition)];
  const auto committed = consumer_->LastCommitted({record.topic(), PartitionIndex(partition)});
  share.owned = true;
  ++share.takings;
  share.handed = share.committed = committed ? committed->value() : -1;
  auto read = record.Seen<history::CommittedRead>(process_, share.free);
  read.group = record.NameOf(kGroup);
  read.key = record.KeyOf(partition);
  read.offset = share.committed;
  record.Add(std::move(read));
  auto position = record.Seen<history::Position>(process_, record.Now());
  position.key = record.KeyOf(partition);
  position.group = record.NameOf(kGroup);
  position.from = committed ? committed->value() : 0;
  record.Add(std::move(position));
  // Where it begins counts as consumed, too.
  if (!committed) MayCommit(partition, 0);
}

void Member::RecordAssignment() {
  if (consumer_->member_epoch() <= 0) return;
  Record& record = environment_.record;
  auto assignment = record.Seen<history::Assignment>(process_, heard_);
  assignment.group = record.NameOf(kGroup);
  assignment.member = record.NameOf(consumer_->member_id());
  assignment.epoch = consumer_->member_epoch();
  for (const TopicPartition& owned : consumer_->Owned()) {
    assignment.keys.push_back(record.KeyOf(owned.partition.value()));
  }
  record.Add(std::move(assignment));
}

void Member::Poll() {
  const history::Time invoke = environment_.record.Now();
  consumer_->Poll(500, environment_.executor.clock().Now() + Duration::Milliseconds(200),
                  [this, invoke](Consumer::PollResult result) {
                    if (!result.ok()) {
                      trouble_ = Describe(result.status());
                      return;
                    }
                    for (const PartitionRecords& part : *result) {
                      environment_.record.Polled(process_, part, invoke, kGroup);
                      shares_[static_cast<size_t>(part.partition.partition.value())].handed =
                          part.next.value();
                    }
                    environment_.executor.Post([this] { CommitOrPoll(); });
                  });
}

size_t Member::MayCommit(int partition, int64_t offset) {
  auto commit = environment_.record.Begun<history::Commit>(process_);
  commit.group = environment_.record.NameOf(kGroup);
  commit.key = environment_.record.KeyOf(partition);
  commit.offset = offset;
  return environment_.record.Add(std::move(commit));
}

void Member::CommitOrPoll() {
  std::vector<Committing> commits;
  for (size_t i = 0; i < shares_.size(); ++i) {
    const Share& share = shares_[i];
    if (!share.owned || share.handed == share.committed) continue;
    const size_t place = MayCommit(static_cast<int>(i), share.handed);
    commits.push_back({place, i, share.takings, share.handed});
  }
  if (commits.empty()) return Poll();
  consumer_->Commit([this, commits = std::move(commits)](const absl::Status& status) {
    CommitDone(commits, status);
  });
}

void Member::CommitDone(const std::vector<Committing>& commits, const absl::Status& status) {
  for (const Committing& one : commits) {
    Share& share = shares_[one.partition];
    // What was given up meanwhile may not have been among it.
    if (!status.ok() || !share.owned || share.takings != one.takings) continue;
    history::Commit& commit = environment_.record.At<history::Commit>(one.place);
    commit.outcome = history::Outcome::kOk;
    commit.complete = environment_.record.Now();
    share.committed = one.offset;
  }
  environment_.executor.Post([this] { Poll(); });
}

}  // namespace conclave::rounds
