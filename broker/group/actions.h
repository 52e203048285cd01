#ifndef CONCLAVE_BROKER_GROUP_ACTIONS_H_
#define CONCLAVE_BROKER_GROUP_ACTIONS_H_

#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "broker/group/records.h"
#include "broker/group/types.h"
#include "conclave/v1/group.pb.h"

// What a group coordinator asks its driver to do, in this order.
namespace conclave::group {

// Append these as one batch, acks=all; all of them or none. Answered by Appended or AppendFailed
// before the next append is made.
struct Append {
  AppendTicket ticket;
  std::vector<GroupRecord> records;
};

// Put the message on the member's stream.
struct Send {
  StreamId stream;
  v1::CoordinatorMessage message;
};

// Finish the stream with this status, after what was sent on it. Nothing more comes for it.
struct EndStream {
  StreamId stream;
  absl::Status status;
};

// Answer the call: with the status if it is not OK, else with the response, which is of the kind
// that the request asks for.
struct Reply {
  using Response = std::variant<std::monostate, v1::CommitOffsetsResponse, v1::FetchOffsetsResponse,
                                v1::DescribeGroupsResponse, v1::ListGroupsResponse>;
  RequestId request;
  absl::Status status;
  Response response;
};

// Find out whether this broker, in this leader epoch, still is what the in-sync replicas follow:
// each member of the ISR has said so in answer to something sent after this. One round at a time.
// Answered by LeadershipConfirmed or LeadershipNotConfirmed.
struct ConfirmLeadership {
  ReadRound round;
};

// Something that belongs into the broker's log.
struct Note {
  std::string text;
};

using Action = std::variant<Append, Send, EndStream, Reply, ConfirmLeadership, Note>;

}  // namespace conclave::group

#endif  // CONCLAVE_BROKER_GROUP_ACTIONS_H_
