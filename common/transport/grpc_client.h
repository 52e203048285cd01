#ifndef CONCLAVE_COMMON_TRANSPORT_GRPC_CLIENT_H_
#define CONCLAVE_COMMON_TRANSPORT_GRPC_CLIENT_H_

#include <grpcpp/channel.h>

#include <condition_variable>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "common/transport/transport.h"

namespace grpc {
class ClientContext;
class CompletionQueue;
}  // namespace grpc

namespace conclave::grpc_transport {

// Counts the calls that gRPC still holds, so that a transport can end them all and wait.
class CallsInFlight {
 public:
  // False once EndAll has begun: the call must not be started.
  bool Add(grpc::ClientContext* context);
  // When gRPC has told the last of the call. Destroys the context, which holds the channel, before
  // the call counts as gone: the last channel is let go of by who ends the transport, not by a
  // thread that waits for gRPC.
  void Remove(std::unique_ptr<grpc::ClientContext> context);
  // Cancels every call and returns when gRPC has let go of all. The channels' users are then none
  // but the caller.
  void EndAll();

 private:
  std::mutex mutex_;
  std::condition_variable none_left_;
  bool ending_ = false;
  std::set<grpc::ClientContext*> calls_;
  // Those in calls_, and those whose contexts are being destroyed.
  size_t held_ = 0;
};

// One channel to an endpoint, kept while the transport lives. Thread-safe.
class Channels {
 public:
  std::shared_ptr<grpc::Channel> Get(const std::string& endpoint);

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<grpc::Channel>> channels_;
};

// Where calls go, and what they need of the transport. All of it outlives the call.
struct CallPath {
  std::shared_ptr<grpc::Channel> channel;
  grpc::CompletionQueue& queue;
  CallsInFlight& calls;
  std::string endpoint;
};

std::unique_ptr<ClientStream> OpenGrpcStream(CallPath path, const std::string& method,
                                             const CallOptions& options, Executor& executor,
                                             StreamHandler* handler);

void StartGrpcCall(CallPath path, const std::string& method, const Buffer& request,
                   const CallOptions& options, Executor& executor, Transport::CallDone done);

}  // namespace conclave::grpc_transport

#endif  // CONCLAVE_COMMON_TRANSPORT_GRPC_CLIENT_H_
