#ifndef CONCLAVE_COMMON_TRANSPORT_GRPC_SERVER_CALL_H_
#define CONCLAVE_COMMON_TRANSPORT_GRPC_SERVER_CALL_H_

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>

#include "absl/functional/function_ref.h"
#include "common/transport/transport.h"

namespace grpc {
class AsyncGenericService;
class ServerCompletionQueue;
}  // namespace grpc

namespace conclave::grpc_transport {

using MethodsByName = std::map<std::string, ServerMethod>;

// Counts the calls that a server has, those that it awaits among them. gRPC goes through the server
// for whatever is asked of a call, and does not itself wait for the last.
class ServerCalls {
 public:
  // Calls `ask`, which asks gRPC for a call, unless Stop() was called. gRPC 1.51 forgets what it is
  // asked for while it shuts down. False: not called.
  bool Ask(absl::FunctionRef<void()> ask);
  // Returns when nobody asks any more.
  void Stop();

  void Begin();
  void End();
  void WaitForNone();

 private:
  std::shared_mutex asking_;
  bool stopping_ = false;
  std::mutex mutex_;
  std::condition_variable none_;
  int count_ = 0;
};

// Takes the calls that arrive at a server to the executors of their methods.
struct CallIntake {
  // These are used only while there is a call.
  grpc::AsyncGenericService& service;
  ServerCalls& calls;
  grpc::ServerCompletionQueue& queue;
  // What is posted may run when the server is gone already, and so keeps them.
  std::shared_ptr<const MethodsByName> methods;
};

// Waits for one call. As it arrives, another wait begins, so that there are always as many as were
// asked for; they end with the server.
void AwaitCall(const CallIntake& intake);

}  // namespace conclave::grpc_transport

#endif  // CONCLAVE_COMMON_TRANSPORT_GRPC_SERVER_CALL_H_
