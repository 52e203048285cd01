#include "tests/simulation/raft/trace.h"

#include <iomanip>
#include <sstream>

namespace conclave::raft::sim {

void Trace::Line(MonotonicTime now, const std::string& line) {
  *text_ << std::fixed << std::setprecision(3) << std::setw(10)
         << static_cast<double>(now.nanoseconds()) / 1e6 << " ms  " << line << "\n";
}

std::string Describe(const v1::RaftMessage& message) {
  using Body = v1::RaftMessage::BodyCase;
  std::ostringstream out;
  out << message.from().node_id() << " -> " << message.to().node_id() << " term " << message.term()
      << " ";
  switch (message.body_case()) {
    case Body::kPreVoteRequest:
      out << "pre-vote? round " << message.pre_vote_request().round() << " last (term "
          << message.pre_vote_request().last_term() << ", index "
          << message.pre_vote_request().last_index() << ")";
      break;
    case Body::kPreVoteResponse:
      out << "pre-vote " << (message.pre_vote_response().granted() ? "granted" : "refused")
          << " round " << message.pre_vote_response().round();
      break;
    case Body::kVoteRequest:
      out << "vote? last (term " << message.vote_request().last_term() << ", index "
          << message.vote_request().last_index() << ")";
      break;
    case Body::kVoteResponse:
      out << "vote " << (message.vote_response().granted() ? "granted" : "refused");
      break;
    case Body::kAppendRequest: {
      const auto& append = message.append_request();
      out << "append after (term " << append.prev_term() << ", index " << append.prev_index()
          << ") commit " << append.commit_index() << " round " << append.round();
      for (const auto& entry : append.entries()) out << " " << entry.index() << "@" << entry.term();
      break;
    }
    case Body::kAppendResponse: {
      const auto& response = message.append_response();
      if (response.accepted()) {
        out << "appended match " << response.match_index() << " received "
            << response.received_index();
      } else {
        out << "append refused at " << response.rejected_index() << ", conflict (term "
            << response.conflict_term() << ", index " << response.conflict_index() << ")";
      }
      out << " round " << response.round();
      break;
    }
    case Body::kObserverAnnouncement:
      out << "observer at " << message.observer_announcement().endpoint();
      break;
    case Body::BODY_NOT_SET:
      out << "nothing";
      break;
  }
  return out.str();
}

}  // namespace conclave::raft::sim
