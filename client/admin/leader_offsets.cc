#include "client/admin/leader_offsets.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/rpc/client.h"
#include "common/rpc/fetch_methods.h"

namespace conclave {
namespace {

using PartitionPointers = std::vector<v1::PartitionDescription*>;

struct Query {
  v1::DescribeTopicsResponse topics;
  absl::AnyInvocable<void(v1::DescribeTopicsResponse)> done;
  size_t open = 0;
};

void Fill(const v1::ListOffsetsResponse& answer, const PartitionPointers& partitions) {
  if (static_cast<size_t>(answer.partitions_size()) != partitions.size()) return;
  for (size_t i = 0; i < partitions.size(); ++i) {
    const v1::ListOffsetsResult& result = answer.partitions(static_cast<int>(i));
    if (result.error().code() != v1::NONE) continue;
    partitions[i]->set_log_start_offset(result.log_start_offset());
    partitions[i]->set_high_watermark(result.high_watermark());
    partitions[i]->set_log_end_offset(result.log_end_offset());
  }
}

}  // namespace

void FillLeaderOffsets(v1::DescribeTopicsResponse topics,
                       const std::map<int32_t, std::string>& brokers, MonotonicTime deadline,
                       Transport& transport, Executor& executor,
                       absl::AnyInvocable<void(v1::DescribeTopicsResponse)> done) {
  const auto query = std::make_shared<Query>();
  query->topics = std::move(topics);
  query->done = std::move(done);
  std::map<std::string, std::pair<v1::ListOffsetsRequest, PartitionPointers>> requests;
  for (v1::TopicDescription& topic : *query->topics.mutable_topics()) {
    for (v1::PartitionDescription& partition : *topic.mutable_partitions()) {
      const auto leader = brokers.find(partition.leader());
      if (leader == brokers.end()) continue;
      auto& [request, pointers] = requests[leader->second];
      v1::ListOffsetsPartition* asked = request.add_partitions();
      asked->set_topic_id(topic.topic_id());
      asked->set_partition(partition.partition());
      asked->set_spec(v1::OFFSET_SPEC_EARLIEST);
      pointers.push_back(&partition);
    }
  }
  if (requests.empty()) return query->done(std::move(query->topics));
  query->open = requests.size();
  for (auto& [endpoint, request] : requests) {
    CallMethod<v1::ListOffsetsRequest, v1::ListOffsetsResponse>(
        transport, endpoint, fetch_methods::kListOffsets, request.first, {.deadline = deadline},
        executor,
        [query,
         partitions = std::move(request.second)](absl::StatusOr<v1::ListOffsetsResponse> answer) {
          if (answer.ok()) Fill(*answer, partitions);
          if (--query->open == 0) query->done(std::move(query->topics));
        });
  }
}

}  // namespace conclave
