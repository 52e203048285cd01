#include "tests/simulation/cluster/offsets_workload.h"

#include <utility>

#include "common/error/error.h"
#include "common/rpc/client.h"
#include "common/rpc/group_methods.h"

namespace conclave::cluster_sim {
namespace {

constexpr char kGroup[] = "g";
constexpr int kReaders = 2;

}  // namespace

using control_sim::ControlPlane;

OffsetsWorkload::OffsetsWorkload(Cluster& cluster, const Random& random, Recorder& recorder,
                                 std::string topic)
    : cluster_(cluster), recorder_(recorder), random_(random), topic_(std::move(topic)) {}

void OffsetsWorkload::Start() {
  running_ = true;
  CommitNext();
  for (int i = 0; i < kReaders; ++i) ReadNext();
}

std::string OffsetsWorkload::AnyBroker() {
  return ControlPlane::EndpointTextOf(cluster_.plane().AnyBroker(random_));
}

template <class Request, class Response>
void OffsetsWorkload::Call(const Method<Request, Response>& method, const Request& request,
                           std::function<void(absl::StatusOr<Response>)> done) {
  ++open_;
  // A wrong or old address now and then: a deposed coordinator must not answer.
  const std::string endpoint =
      coordinator_.empty() || random_.Chance(0.1) ? AnyBroker() : coordinator_;
  CallMethod<Request, Response>(cluster_.transport(), endpoint, method, request,
                                {.deadline = cluster_.scheduler().now() + Duration::Seconds(5)},
                                cluster_.executor(),
                                [this, done = std::move(done)](absl::StatusOr<Response> response) {
                                  --open_;
                                  done(std::move(response));
                                });
}

void OffsetsWorkload::Refused(const absl::Status& why) {
  ++counters_.refused;
  if (ErrorFromStatus(why).has_hint() && random_.Chance(0.7)) {
    return Found(ErrorFromStatus(why).hint().endpoint());
  }
  v1::FindCoordinatorRequest request;
  request.set_group(kGroup);
  ++open_;
  CallMethod<v1::FindCoordinatorRequest, v1::FindCoordinatorResponse>(
      cluster_.transport(), AnyBroker(), group_methods::kFindCoordinator, request,
      {.deadline = cluster_.scheduler().now() + Duration::Seconds(2)}, cluster_.executor(),
      [this](absl::StatusOr<v1::FindCoordinatorResponse> response) {
        --open_;
        if (response.ok()) Found(response->endpoint());
      });
}

void OffsetsWorkload::Found(const std::string& coordinator) {
  if (!coordinator_.empty() && coordinator_ != coordinator) ++counters_.moves;
  coordinator_ = coordinator;
}

void OffsetsWorkload::CommitNext() {
  if (!running_) return;
  const int64_t offset = ++tried_;
  v1::CommitOffsetsRequest request;
  request.set_group(kGroup);
  request.set_member_epoch(-1);
  v1::OffsetCommit* commit = request.add_offsets();
  commit->set_topic(topic_);
  commit->set_offset(offset);
  auto recorded = recorder_.Begun<history::Commit>("offsets-committer");
  recorded.group = recorder_.NameOf(kGroup);
  recorded.key = recorder_.KeyOf(topic_, 0);
  recorded.offset = offset;
  const size_t place = recorder_.Add(std::move(recorded));
  Call<v1::CommitOffsetsRequest, v1::CommitOffsetsResponse>(
      group_methods::kCommitOffsets, request,
      [this, offset, place](absl::StatusOr<v1::CommitOffsetsResponse> response) {
        const absl::Status status =
            response.ok() ? StatusFromError(response->offsets(0).error()) : response.status();
        history::Commit& commit = recorder_.At<history::Commit>(place);
        commit.complete = recorder_.Now();
        commit.outcome = status.ok()                        ? history::Outcome::kOk
                         : HasNoEffect(ErrorCodeOf(status)) ? history::Outcome::kFail
                                                            : history::Outcome::kInfo;
        if (status.ok()) {
          ++counters_.committed;
          acknowledged_ = offset;
        } else {
          ++counters_.unknown;
          Refused(status);
        }
        cluster_.executor().PostAfter(Duration::Milliseconds(random_.Between(1, 100)),
                                      [this] { CommitNext(); });
      });
}

void OffsetsWorkload::ReadNext() {
  if (!running_) return;
  v1::FetchOffsetsRequest request;
  request.set_group(kGroup);
  v1::GroupTopicPartitions* topic = request.add_topics();
  topic->set_topic(topic_);
  topic->add_partitions(0);
  const int64_t at_least = acknowledged_;
  const history::Time invoke = recorder_.Now();
  Call<v1::FetchOffsetsRequest, v1::FetchOffsetsResponse>(
      group_methods::kFetchOffsets, request,
      [this, at_least, invoke](absl::StatusOr<v1::FetchOffsetsResponse> response) {
        if (!response.ok()) {
          Refused(response.status());
        } else if (response->offsets_size() != 1) {
          cluster_.Break("a read of one offset gave " + std::to_string(response->offsets_size()));
        } else if (const auto& offset = response->offsets(0); offset.error().code() != v1::NONE) {
          Refused(StatusFromError(offset.error()));
        } else {
          ++counters_.read;
          const int64_t found = offset.has_offset() ? offset.offset() : -1;
          recorder_.ReadCommitted("offsets-reader", kGroup, recorder_.KeyOf(topic_, 0), found,
                                  invoke);
          if (found < at_least || found > tried_) {
            cluster_.Break("read the committed offset " + std::to_string(found) + ", after " +
                           std::to_string(at_least) + " was acknowledged and while " +
                           std::to_string(tried_) + " was the last tried");
          }
        }
        cluster_.executor().PostAfter(Duration::Milliseconds(random_.Between(1, 60)),
                                      [this] { ReadNext(); });
      });
}

}  // namespace conclave::cluster_sim
