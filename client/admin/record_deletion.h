#ifndef CONCLAVE_CLIENT_ADMIN_RECORD_DELETION_H_
#define CONCLAVE_CLIENT_ADMIN_RECORD_DELETION_H_

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/executor/executor.h"
#include "common/transport/transport.h"
#include "common/types/time.h"
#include "conclave/v1/admin.pb.h"

namespace conclave {

class AdminClient;

// Deletes records: finds the leaders, asks each for what it leads, and asks again, where leaders
// move or do not answer, as long as that is safe: an offset may be named twice, "the high
// watermark" only while the attempt before certainly had no effect.
//
// Keeps itself alive until it is done. Admin client, transport and executor outlive it.
class RecordDeletion : public std::enable_shared_from_this<RecordDeletion> {
 public:
  using Done = absl::AnyInvocable<void(absl::StatusOr<v1::DeleteRecordsResponse>)>;

  RecordDeletion(AdminClient& admin, Transport& transport, Executor& executor,
                 v1::DeleteRecordsRequest request, MonotonicTime deadline, Done done);

  // `done` is called on the executor, once, with a result for each partition; or with the error
  // that the leaders cannot be found.
  void Start();

 private:
  struct Group {
    v1::DeleteRecordsRequest request;
    // Of the partitions, in `response_`.
    std::vector<int> indices;
  };

  void FindLeaders();
  void AskLeaders(const v1::DescribeTopicsResponse& topics,
                  const v1::DescribeClusterResponse& cluster);
  // nullptr, and the partition has its error: it has no leader at present, or never will.
  const v1::PartitionDescription* Find(const v1::DescribeTopicsResponse& topics, int index);
  void Answered(const std::vector<int>& indices, absl::StatusOr<v1::DeleteRecordsResponse> answer);
  // The partition is asked for again if that may help.
  void Failed(int index, const v1::Error& error);
  void NextRound();

  AdminClient& admin_;
  Transport& transport_;
  Executor& executor_;
  const v1::DeleteRecordsRequest request_;
  const MonotonicTime deadline_;
  Done done_;
  v1::DeleteRecordsResponse response_;
  // Partitions without a final result, by index.
  std::set<int> open_;
  // Ids that topics had when they were looked up first: another topic of the name is not meant.
  std::map<std::string, std::string> topic_ids_;
  size_t asking_ = 0;
  Duration pause_ = Duration::Milliseconds(20);
};

}  // namespace conclave

#endif  // CONCLAVE_CLIENT_ADMIN_RECORD_DELETION_H_
