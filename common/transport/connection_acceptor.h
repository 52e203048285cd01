#ifndef CONCLAVE_COMMON_TRANSPORT_CONNECTION_ACCEPTOR_H_
#define CONCLAVE_COMMON_TRANSPORT_CONNECTION_ACCEPTOR_H_

#include <functional>
#include <thread>
#include <vector>

#include "common/process/file_descriptor.h"

namespace conclave {

// Accepts connections on a thread of its own, in place of gRPC 1.51, which stops listening for good
// once the process runs out of descriptors (grpc#16058). Here a connection that would take one of
// the last descriptors is closed at once, and while none can be had the others wait in the kernel's
// queue.
class ConnectionAcceptor {
 public:
  // `take`, called on the thread, owns the connection, a non-blocking socket.
  using Take = std::function<void(int listener, int connection)>;
  ConnectionAcceptor(std::vector<FileDescriptor> listeners, Take take);
  // Once it returns, nothing listens any more, and `take` is not called.
  ~ConnectionAcceptor();

 private:
  void Run();
  // False: no descriptor can be had now.
  bool AcceptSome(int listener);
  void Accepted(int listener, FileDescriptor connection);

  const std::vector<FileDescriptor> listeners_;
  const Take take_;
  const FileDescriptor stop_;  // An eventfd.
  std::thread thread_;
};

}  // namespace conclave

#endif  // CONCLAVE_COMMON_TRANSPORT_CONNECTION_ACCEPTOR_H_
