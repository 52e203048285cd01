#include "common/transport/connection_acceptor.h"

#include <glog/logging.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "common/process/open_files.h"

namespace conclave {
namespace {

// So many of one listener before the others have their turn.
constexpr int kAtOnce = 32;
constexpr int kPauseMs = 100;

// What accept(2) reports of the connection that was to be accepted: it is gone, and that is all.
bool IsOfTheConnection(int error) {
  switch (error) {
    case EINTR:
    case ECONNABORTED:
    case EPERM:
    case EPROTO:
    case ENOPROTOOPT:
    case ENETDOWN:
    case ENETUNREACH:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENONET:
    case EOPNOTSUPP:
    case ETIMEDOUT:
      return true;
    default:
      return false;
  }
}

}  // namespace

ConnectionAcceptor::ConnectionAcceptor(std::vector<FileDescriptor> listeners, Take take)
    : listeners_(std::move(listeners)),
      take_(std::move(take)),
      stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  PCHECK(stop_.get() >= 0) << "eventfd";
  thread_ = std::thread([this] { Run(); });
}

ConnectionAcceptor::~ConnectionAcceptor() {
  PCHECK(eventfd_write(stop_.get(), 1) == 0) << "eventfd";
  thread_.join();
}

void ConnectionAcceptor::Run() {
  pthread_setname_np(pthread_self(), "accept");
  // The first is the end.
  std::vector<pollfd> waiting = {{stop_.get(), POLLIN, 0}};
  for (const FileDescriptor& listener : listeners_) waiting.push_back({listener.get(), POLLIN, 0});
  bool pause = false;
  for (;;) {
    // What waits to be accepted shows again and again: it is not looked at for a moment.
    const int ready = poll(waiting.data(), pause ? 1 : waiting.size(), pause ? kPauseMs : -1);
    PCHECK(ready >= 0 || errno == EINTR) << "poll";
    if (ready > 0 && waiting[0].revents != 0) return;
    if (std::exchange(pause, false) || ready < 0) continue;
    for (size_t i = 1; i < waiting.size(); ++i) {
      if (waiting[i].revents != 0 && !AcceptSome(waiting[i].fd)) pause = true;
    }
  }
}

bool ConnectionAcceptor::AcceptSome(int listener) {
  for (int i = 0; i < kAtOnce; ++i) {
    FileDescriptor connection(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (connection.get() >= 0) {
      Accepted(listener, std::move(connection));
      continue;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) return true;
    if (IsOfTheConnection(errno)) continue;
    PLOG_EVERY_N(ERROR, 100) << "connections wait to be accepted; raise the limit of open files "
                                "(ulimit -n) if it was reached";
    return false;
  }
  return true;
}

void ConnectionAcceptor::Accepted(int listener, FileDescriptor connection) {
  if (!LeavesDescriptors(connection.get(), kDescriptorsBesideConnections)) {
    LOG_EVERY_N(ERROR, 100) << "a connection is refused, for the last descriptors are kept for "
                               "other work: raise the limit of open files (ulimit -n), or have "
                               "fewer clients";
    return;
  }
  take_(listener, connection.Release());
}

}  // namespace conclave
