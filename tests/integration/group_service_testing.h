#ifndef CONCLAVE_TESTS_INTEGRATION_GROUP_SERVICE_TESTING_H_
#define CONCLAVE_TESTS_INTEGRATION_GROUP_SERVICE_TESTING_H_

#include <glog/logging.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "broker/group/group_coordinator.h"
#include "client/testing/fake_broker.h"
#include "common/error/error.h"
#include "common/executor/executor.h"
#include "common/random/random.h"
#include "common/rpc/group_methods.h"
#include "common/rpc/server.h"

namespace conclave {

// The brokers' real coordinator behind the group service of fake brokers: one coordinator for all
// groups, at one broker at a time, whose log is in memory and commits at once. Everything is in one
// virtual world.
class TestGroupService {
 public:
  // `world` and `executor` outlive it.
  TestGroupService(client_testing::FakeWorld& world, Executor& executor)
      : world_(world), executor_(executor) {}

  // --- What a test does

  // Loads the log at the broker, which coordinates from then on. 0: nobody does.
  void MoveTo(int broker) {
    if (core_ != nullptr) {
      v1::NodeHint hint;
      hint.set_node_id(broker);
      if (hints && world_.endpoints.contains(broker)) hint.set_endpoint(world_.endpoints[broker]);
      core_->Resign(hint);
      Run();
      core_.reset();
    }
    at_ = broker;
    if (broker == 0) return;
    group::CoordinatorConfig config = this->config;
    config.self = BrokerId(broker);
    core_ = std::make_unique<group::GroupCoordinator>(config, Random(++seed_));
    TellTopics();
    for (const group::GroupRecord& record : log_) {
      std::optional<std::string_view> value;
      if (record.value) value = *record.value;
      CHECK(core_->Replay(record.key, value).ok());
    }
    core_->ReplayedTo(End(), Now());
    if (!hold_loading) core_->HighWatermark(End(), Now());
    Run();
  }
  // As a broker that is killed: nobody is told.
  void Die() {
    core_.reset();
    at_ = 0;
    for (auto& [id, link] : links_) link->Forget();
  }
  void TellTopics() {
    std::vector<group::GroupCoordinator::TopicChange> changes;
    std::vector<TopicId> deleted;
    for (auto it = told_.begin(); it != told_.end();) {
      const auto topic = world_.topics.find(it->first);
      if (topic != world_.topics.end() && topic->second.id == it->second) {
        ++it;
        continue;
      }
      deleted.push_back(it->second);
      changes.push_back({it->first, std::nullopt});
      it = told_.erase(it);
    }
    for (const auto& [name, topic] : world_.topics) {
      told_[name] = topic.id;
      changes.push_back(
          {name, group::TopicInfo{topic.id, static_cast<int32_t>(topic.partitions.size())}});
    }
    core_->TopicsChanged(changes, deleted, Now());
    Run();
  }

  // Before MoveTo.
  group::CoordinatorConfig config;
  // NOT_COORDINATOR names who is.
  bool hints = true;
  // A coordinator goes on loading until it is moved again.
  bool hold_loading = false;
  // An error refuses the call.
  std::function<absl::Status(const v1::CommitOffsetsRequest&)> before_commit;
  std::function<absl::Status(const v1::FetchOffsetsRequest&)> before_fetch;

  int broker() const { return at_; }
  int commits() const { return commits_; }
  std::optional<int64_t> Committed(const std::string& group, const std::string& topic,
                                   int partition) const {
    const group::Group* found = core_->committed().Find(group);
    if (found == nullptr) return std::nullopt;
    const auto offset =
        found->offsets.find({world_.topics.at(topic).id, PartitionIndex(partition)});
    if (offset == found->offsets.end()) return std::nullopt;
    return offset->second.offset.value();
  }
  const group::Group* Find(const std::string& group) const {
    return core_->committed().Find(group);
  }

  // --- What the fake brokers do

  void AddMethods(int broker, MethodTable& table, Executor& executor) {
    table.Unary<v1::FindCoordinatorRequest, v1::FindCoordinatorResponse>(
        group_methods::kFindCoordinator, executor,
        [this](const v1::FindCoordinatorRequest&, CallContext,
               Responder<v1::FindCoordinatorResponse> respond) {
          if (at_ == 0) {
            return respond(MakeError(v1::COORDINATOR_NOT_AVAILABLE, "nobody coordinates"));
          }
          v1::FindCoordinatorResponse response;
          response.set_broker_id(at_);
          response.set_endpoint(world_.endpoints[at_]);
          respond(std::move(response));
        });
    table.Stream<v1::MemberMessage, v1::CoordinatorMessage>(
        group_methods::kMember, executor, [this, broker](std::unique_ptr<Link::Stream> stream) {
          const group::StreamId id(++last_stream_);
          links_[id] = std::make_unique<Link>(*this, broker, id, std::move(stream));
          links_[id]->Start();
        });
    AddCall(broker, table, executor, group_methods::kCommitOffsets,
            &group::GroupCoordinator::CommitOffsets,
            [this](const v1::CommitOffsetsRequest& request) {
              ++commits_;
              return before_commit ? before_commit(request) : absl::OkStatus();
            });
    AddCall(broker, table, executor, group_methods::kFetchOffsets,
            &group::GroupCoordinator::FetchOffsets, [this](const v1::FetchOffsetsRequest& request) {
              return before_fetch ? before_fetch(request) : absl::OkStatus();
            });
  }
  // Once the brokers have stopped.
  void DropStreams() { links_.clear(); }

 private:
  class Link : public MessageHandler<v1::MemberMessage> {
   public:
    using Stream = TypedServerStream<v1::MemberMessage, v1::CoordinatorMessage>;
    Link(TestGroupService& service, int broker, group::StreamId id, std::unique_ptr<Stream> stream)
        : service_(service), broker_(broker), id_(id), stream_(std::move(stream)) {}
    void Start() { stream_->Start(this); }
    void OnMessage(v1::MemberMessage message) override {
      if (ended_) return;
      if (absl::Status here = service_.CheckIsAt(broker_); !here.ok()) return End(here);
      service_.core_->MemberSays(id_, message, service_.Now());
      service_.Run();
    }
    void OnHalfClose() override { Closed(); }
    void OnClosed(absl::Status) override {
      Closed();
      service_.links_.erase(id_);
    }
    void Send(const v1::CoordinatorMessage& message) {
      if (!ended_) stream_->Send(message);
    }
    void End(const absl::Status& why) {
      if (!std::exchange(ended_, true)) stream_->Finish(why);
    }
    void Forget() { ended_ = true; }

   private:
    void Closed() {
      if (ended_ || service_.at_ != broker_) return;
      service_.core_->StreamClosed(id_, service_.Now());
      service_.Run();
    }

    TestGroupService& service_;
    const int broker_;
    const group::StreamId id_;
    const std::unique_ptr<Stream> stream_;
    bool ended_ = false;
  };

  template <class Request, class Response, class Before>
  void AddCall(int broker, MethodTable& table, Executor& executor,
               const Method<Request, Response>& method,
               void (group::GroupCoordinator::*call)(group::RequestId, const Request&, group::Now),
               Before before) {
    table.Unary<Request, Response>(method, executor,
                                   [this, broker, call, before](const Request& request, CallContext,
                                                                Responder<Response> respond) {
                                     absl::Status refused = CheckIsAt(broker);
                                     if (refused.ok()) refused = before(request);
                                     if (!refused.ok()) return respond(refused);
                                     const auto shared =
                                         std::make_shared<Responder<Response>>(std::move(respond));
                                     const group::RequestId id(++last_request_);
                                     replies_[id] = [shared](group::Reply reply) {
                                       if (!reply.status.ok()) return (*shared)(reply.status);
                                       (*shared)(std::get<Response>(std::move(reply.response)));
                                     };
                                     (core_.get()->*call)(id, request, Now());
                                     Run();
                                   });
  }

  absl::Status CheckIsAt(int broker) const {
    if (at_ == broker) return absl::OkStatus();
    v1::NodeHint hint;
    hint.set_node_id(at_ == 0 ? -1 : at_);
    if (hints && at_ != 0) hint.set_endpoint(world_.endpoints.at(at_));
    return MakeError(v1::NOT_COORDINATOR, "another broker coordinates the group", hint);
  }

  group::Now Now() const { return {executor_.clock().Now(), executor_.clock().WallNow()}; }
  Offset End() const { return Offset(static_cast<int64_t>(log_.size())); }

  void Run() {
    for (auto actions = core_->TakeActions(); !actions.empty(); actions = core_->TakeActions()) {
      for (group::Action& action : actions) {
        if (const auto* append = std::get_if<group::Append>(&action)) {
          log_.insert(log_.end(), append->records.begin(), append->records.end());
          core_->Appended(append->ticket, End());
        } else if (const auto* send = std::get_if<group::Send>(&action)) {
          const auto link = links_.find(send->stream);
          if (link != links_.end()) link->second->Send(send->message);
        } else if (const auto* end = std::get_if<group::EndStream>(&action)) {
          const auto link = links_.find(end->stream);
          if (link != links_.end()) link->second->End(end->status);
        } else if (auto* reply = std::get_if<group::Reply>(&action)) {
          const auto found = replies_.find(reply->request);
          if (found == replies_.end()) continue;
          const auto tell = std::move(found->second);
          replies_.erase(found);
          tell(std::move(*reply));
        } else if (const auto* confirm = std::get_if<group::ConfirmLeadership>(&action)) {
          core_->LeadershipConfirmed(confirm->round);
        }
      }
      if (core_->IsServing()) core_->HighWatermark(End(), Now());
    }
    executor_.Cancel(timer_);
    const MonotonicTime at = core_->NextDeadline();
    if (at == MonotonicTime::Never()) return;
    timer_ = executor_.PostAt(at, [this] {
      if (core_ == nullptr) return;
      core_->Tick(Now());
      Run();
    });
  }

  client_testing::FakeWorld& world_;
  Executor& executor_;
  std::unique_ptr<group::GroupCoordinator> core_;
  int at_ = 0;
  std::vector<group::GroupRecord> log_;
  std::map<std::string, TopicId> told_;
  std::map<group::StreamId, std::unique_ptr<Link>> links_;
  std::map<group::RequestId, std::function<void(group::Reply)>> replies_;
  uint64_t last_stream_ = 0;
  uint64_t last_request_ = 0;
  uint64_t seed_ = 0;
  int commits_ = 0;
  TimerId timer_;
};

}  // namespace conclave

#endif  // CONCLAVE_TESTS_INTEGRATION_GROUP_SERVICE_TESTING_H_
