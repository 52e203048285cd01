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
}

namespace conclave::grpc_transport {

// Counts the calls that gRPC still holds, so that a transport can end them all and wait.
class CallsInFlight {
 public:
  // False once EndAll has begun: the call must not be started.
  bool Add(grpc::ClientContext* context);
  // From gRPC's last callback of the call. Destroys the context before the call counts as gone: it
  // holds the channel, and were that the last to use gRPC's callback threads, gRPC 1.51 would try
  // to join them from one of them, and go on with what it has freed.
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

std::unique_ptr<ClientStream> OpenGrpcStream(std::shared_ptr<grpc::Channel> channel,
                                             CallsInFlight& calls, const std::string& endpoint,
                                             const std::string& method, const CallOptions& options,
                                             Executor& executor, StreamHandler* handler);

void StartGrpcCall(std::shared_ptr<grpc::Channel> channel, CallsInFlight& calls,
                   const std::string& endpoint, const std::string& method, Buffer request,
                   const CallOptions& options, Executor& executor, Transport::CallDone done);

}  // namespace conclave::grpc_transport

#endif  // CONCLAVE_COMMON_TRANSPORT_GRPC_CLIENT_H_
