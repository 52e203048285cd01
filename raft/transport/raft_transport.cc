#include "raft/transport/raft_transport.h"

#include <glog/logging.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "common/error/error.h"

namespace conclave::raft {
namespace {

constexpr Duration kFirstPause = Duration::Milliseconds(20);
constexpr Duration kLongestPause = Duration::Milliseconds(500);
// A stream that held this long was a good one: the next pause is the first again.
constexpr Duration kGoodStream = Duration::Seconds(1);

std::optional<ReplicaKey> SenderOf(const v1::RaftMessage& message) {
  const auto directory = DirectoryId::FromBytes(message.from().directory_id());
  if (!directory) return std::nullopt;
  return ReplicaKey{NodeId(message.from().node_id()), *directory};
}

}  // namespace

class RaftTransport::Outbound : public MessageHandler<v1::RaftStreamClosed> {
 public:
  Outbound(Transport& transport, Executor& executor, std::string endpoint)
      : transport_(transport), executor_(executor), endpoint_(std::move(endpoint)) {}

  void Send(const v1::RaftMessage& message) {
    const MonotonicTime now = executor_.clock().Now();
    if (stream_ == nullptr) {
      if (now < retry_at_) return;
      opened_at_ = now;
      stream_ = std::make_unique<TypedClientStream<v1::RaftMessage, v1::RaftStreamClosed>>(
          transport_, endpoint_, raft_methods::kMessages, CallOptions{}, executor_, this);
    }
    if (stream_->pending_bytes() > kMaxPendingBytes) return;
    stream_->Send(message);
  }

  void OnMessage(v1::RaftStreamClosed) override {}

  void OnClosed(absl::Status status) override {
    const MonotonicTime now = executor_.clock().Now();
    if (now - opened_at_ >= kGoodStream) pause_ = kFirstPause;
    VLOG(1) << "the stream to controller at " << endpoint_ << " ended: " << Describe(status);
    retry_at_ = now + pause_;
    pause_ = std::min(pause_ * 2, kLongestPause);
    stream_.reset();
  }

 private:
  Transport& transport_;
  Executor& executor_;
  const std::string endpoint_;
  std::unique_ptr<TypedClientStream<v1::RaftMessage, v1::RaftStreamClosed>> stream_;
  MonotonicTime opened_at_;
  MonotonicTime retry_at_;
  Duration pause_ = kFirstPause;
};

class RaftTransport::Inbound : public MessageHandler<v1::RaftMessage> {
 public:
  using Stream = TypedServerStream<v1::RaftMessage, v1::RaftStreamClosed>;

  Inbound(RaftTransport& owner, std::unique_ptr<Stream> stream)
      : owner_(owner), stream_(std::move(stream)) {}

  void Start() { stream_->Start(this); }

  void OnMessage(v1::RaftMessage message) override {
    if (!peer_) {
      peer_ = SenderOf(message);
      if (peer_) owner_.newest_[*peer_] = this;
    }
    if (owner_.receiver_.on_message) owner_.receiver_.on_message(message);
  }

  void OnHalfClose() override { stream_->Finish(absl::OkStatus()); }

  void OnClosed(absl::Status) override {
    RaftTransport& owner = owner_;
    const std::optional<ReplicaKey> peer = peer_;
    const auto newest = peer ? owner.newest_.find(*peer) : owner.newest_.end();
    const bool was_newest = newest != owner.newest_.end() && newest->second == this;
    if (was_newest) owner.newest_.erase(newest);
    owner.inbound_.erase(this);  // Destroys this.
    if (was_newest && owner.receiver_.on_stream_reset) owner.receiver_.on_stream_reset(*peer);
  }

 private:
  RaftTransport& owner_;
  const std::unique_ptr<Stream> stream_;
  std::optional<ReplicaKey> peer_;
};

RaftTransport::RaftTransport(Transport& transport, Executor& executor)
    : transport_(transport), executor_(executor) {}

RaftTransport::~RaftTransport() = default;

void RaftTransport::AddMethods(MethodTable& table) {
  table.Stream<v1::RaftMessage, v1::RaftStreamClosed>(
      raft_methods::kMessages, executor_, [this](std::unique_ptr<Inbound::Stream> stream) {
        auto inbound = std::make_unique<Inbound>(*this, std::move(stream));
        Inbound* raw = inbound.get();
        inbound_.emplace(raw, std::move(inbound));
        raw->Start();
      });
}

void RaftTransport::Send(const std::string& endpoint, const v1::RaftMessage& message) {
  auto& peer = outbound_[endpoint];
  if (peer == nullptr) peer = std::make_unique<Outbound>(transport_, executor_, endpoint);
  peer->Send(message);
}

}  // namespace conclave::raft
