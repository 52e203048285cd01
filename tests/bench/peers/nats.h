#ifndef CONCLAVE_TESTS_BENCH_PEERS_NATS_H_
#define CONCLAVE_TESTS_BENCH_PEERS_NATS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "tests/bench/peers/socket.h"

namespace conclave::bench {

// A connection in NATS' client protocol, with what JetStream adds by convention. One thread reads
// (Next, Request); any may publish.
class NatsConnection {
 public:
  struct Message {
    // Valid until the next read.
    std::string_view subject;
    std::string_view body;
  };

  explicit NatsConnection(const std::string& server);

  void Subscribe(std::string_view subject);
  // Appends a publication to `out`, for Write; answers come to `reply`.
  static void AppendPublish(std::string_view subject, std::string_view reply, std::string_view body,
                            std::string& out);
  void Write(std::string_view bytes) { socket_.Write(bytes); }

  // The next message to any subscription but for answers to requests, which come late sometimes.
  Message Next();
  // Asks, and returns the answer; {"error": ...} with code 503 where nobody answers the subject.
  // None where no answer came for a second, as from servers that have no leader yet. Nothing else
  // may be on its way here.
  std::optional<nlohmann::json> Request(std::string_view subject, const nlohmann::json& request);

 private:
  // The next message of all.
  Message Take();

  Socket socket_;
  int subscriptions_ = 0;
  // So that an answer that comes late is not taken for another's.
  uint64_t requests_ = 0;
  // Of the message that Next returned.
  std::string subject_;
};

}  // namespace conclave::bench

#endif  // CONCLAVE_TESTS_BENCH_PEERS_NATS_H_
