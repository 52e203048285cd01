#include "tests/bench/ceilings/server.h"

#include <fcntl.h>
#include <glog/logging.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/impl/service_type.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <memory>
#include <mutex>
#include <sstream>
#include <string_view>
#include <vector>

#include "common/checksum/crc32c.h"
#include "tests/bench/ceilings/methods.h"

namespace conclave::bench {
namespace {

constexpr size_t kMapBytes = size_t{256} << 20;
// A log's segment: what is written goes on in a new file then, and the old one is dropped.
constexpr size_t kFileBytes = size_t{1} << 30;

// Where appends go: a file at a time, in the order in which they come.
class AppendedFile {
 public:
  explicit AppendedFile(std::string path) : path_(std::move(path)) { Open(); }
  ~AppendedFile() {
    close(fd_);
    unlink(path_.c_str());
  }

  void Append(const std::vector<grpc::Slice>& slices) {
    std::vector<iovec> pieces;
    pieces.reserve(slices.size());
    uint32_t crc = 0;
    size_t bytes = 0;
    for (const grpc::Slice& slice : slices) {
      const std::string_view view(reinterpret_cast<const char*>(slice.begin()), slice.size());
      crc = ExtendCrc32c(crc, view);
      bytes += view.size();
      pieces.push_back({const_cast<char*>(view.data()), view.size()});
    }
    std::lock_guard lock(mutex_);
    if (written_ + bytes > kFileBytes) {
      close(fd_);
      Open();
    }
    Write(pieces);
    written_ += bytes;
    // Used, so that no compiler leaves it out.
    checksums_ ^= crc;
  }

 private:
  void Open() {
    unlink(path_.c_str());
    fd_ = open(path_.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
    PCHECK(fd_ >= 0) << path_;
    written_ = 0;
  }

  void Write(std::vector<iovec>& pieces) {
    for (size_t at = 0; at < pieces.size();) {
      const ssize_t wrote = writev(fd_, pieces.data() + at,
                                   static_cast<int>(std::min<size_t>(pieces.size() - at, IOV_MAX)));
      PCHECK(wrote >= 0) << "writing " << path_;
      auto left = static_cast<size_t>(wrote);
      while (at < pieces.size() && left >= pieces[at].iov_len) left -= pieces[at++].iov_len;
      if (left == 0) continue;
      pieces[at].iov_base = static_cast<char*>(pieces[at].iov_base) + left;
      pieces[at].iov_len -= left;
    }
  }

  const std::string path_;
  std::mutex mutex_;
  int fd_ = -1;
  size_t written_ = 0;
  uint32_t checksums_ = 0;
};

// A file in the page cache, as a log's segments are that were just written.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    const int fd = open(path.c_str(), O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0644);
    PCHECK(fd >= 0) << path;
    const std::string block(size_t{1} << 20, 'p');
    for (size_t at = 0; at < kMapBytes; at += block.size()) {
      PCHECK(pwrite(fd, block.data(), block.size(), static_cast<off_t>(at)) ==
             static_cast<ssize_t>(block.size()))
          << "writing " << path;
    }
    void* at = mmap(nullptr, kMapBytes, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
    PCHECK(at != MAP_FAILED) << "mapping " << path;
    data_ = static_cast<const char*>(at);
    close(fd);
    // The mapping keeps it.
    unlink(path.c_str());
  }

  const char* data() const { return data_; }

 private:
  const char* data_;
};

class PullReactor : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  PullReactor(const MappedFile& file, size_t bytes, uint64_t messages)
      : file_(file), bytes_(bytes), left_(messages) {
    Next();
  }

  void OnWriteDone(bool ok) override {
    if (ok) {
      Next();
    } else {
      Finish(grpc::Status::CANCELLED);
    }
  }
  void OnDone() override { delete this; }

 private:
  void Next() {
    if (left_ == 0) {
      Finish(grpc::Status::OK);
      return;
    }
    --left_;
    if (at_ + bytes_ > kMapBytes) at_ = 0;
    const grpc::Slice slice(file_.data() + at_, bytes_, grpc::Slice::STATIC_SLICE);
    message_ = grpc::ByteBuffer(&slice, 1);
    at_ += bytes_;
    StartWrite(&message_);
  }

  const MappedFile& file_;
  const size_t bytes_;
  uint64_t left_;
  size_t at_ = 0;
  grpc::ByteBuffer message_;
};

std::vector<grpc::Slice> SlicesOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  CHECK(buffer.Dump(&slices).ok());
  return slices;
}

// Raw bytes need no generated code; this is what generated code would do.
class Ceilings : public grpc::Service {
 public:
  explicit Ceilings(const std::string& dir)
      : appended_(dir + "/ceilings-append"), mapped_(dir + "/ceilings-pull") {
    AddUnary(0, kEcho, [](const grpc::ByteBuffer& request, grpc::ByteBuffer& response) {
      response = request;
    });
    AddUnary(1, kAppend, [this](const grpc::ByteBuffer& request, grpc::ByteBuffer& response) {
      appended_.Append(SlicesOf(request));
      const grpc::Slice nothing;
      response = grpc::ByteBuffer(&nothing, 1);
    });
    AddMethod(new grpc::internal::RpcServiceMethod(
        kPull, grpc::internal::RpcMethod::SERVER_STREAMING, nullptr));
    MarkMethodRawCallback(
        2, new grpc::internal::CallbackServerStreamingHandler<grpc::ByteBuffer, grpc::ByteBuffer>(
               [this](grpc::CallbackServerContext*, const grpc::ByteBuffer* request) {
                 std::string text;
                 for (const grpc::Slice& slice : SlicesOf(*request)) {
                   text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
                 }
                 size_t bytes = 0;
                 uint64_t messages = 0;
                 std::istringstream(text) >> bytes >> messages;
                 CHECK(bytes > 0 && bytes <= kMapBytes) << "a pull of '" << text << "'";
                 return new PullReactor(mapped_, bytes, messages);
               }));
  }

 private:
  template <class Handle>
  void AddUnary(int index, const char* method, Handle handle) {
    AddMethod(new grpc::internal::RpcServiceMethod(method, grpc::internal::RpcMethod::NORMAL_RPC,
                                                   nullptr));
    MarkMethodRawCallback(
        index, new grpc::internal::CallbackUnaryHandler<grpc::ByteBuffer, grpc::ByteBuffer>(
                   [handle](grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                            grpc::ByteBuffer* response) {
                     handle(*request, *response);
                     auto* reactor = context->DefaultReactor();
                     reactor->Finish(grpc::Status::OK);
                     return reactor;
                   }));
  }

  AppendedFile appended_;
  const MappedFile mapped_;
};

}  // namespace

int Serve(const std::string& dir) {
  Ceilings service(dir);
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.SetMaxReceiveMessageSize(-1);
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    std::fprintf(stderr, "ceilings: no port of 127.0.0.1 could be listened on\n");
    return 1;
  }
  std::printf("{\"port\": %d}\n", port);
  std::fflush(stdout);
  char ignored[64];
  while (read(STDIN_FILENO, ignored, sizeof ignored) > 0) {
  }
  server->Shutdown(std::chrono::system_clock::now());
  server->Wait();
  return 0;
}

}  // namespace conclave::bench
