#ifndef CONCLAVE_COMMON_RPC_UNARY_CALL_H_
#define CONCLAVE_COMMON_RPC_UNARY_CALL_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/buffer/buffer.h"
#include "common/transport/transport.h"

namespace conclave {

// The answer that a unary call still lacks. Thread-safe; the first of Reply and Finish counts.
class UnaryAnswer {
 public:
  virtual ~UnaryAnswer() = default;
  virtual void Reply(Buffer response) = 0;
  virtual void Finish(absl::Status status) = 0;
};

struct CallContextParts {
  std::string peer;
  MonotonicTime deadline;
};

using UnaryHandler =
    std::function<void(Buffer request, CallContextParts, std::shared_ptr<UnaryAnswer>)>;

// Takes in streams, and hands the one message of each to `handle` with the way to answer. Holds the
// calls that are open: destroying it, once the method's executor has stopped, abandons them.
StreamAcceptor UnaryAcceptor(UnaryHandler handle);

}  // namespace conclave

#endif  // CONCLAVE_COMMON_RPC_UNARY_CALL_H_
