#include "controller/server/broker_sessions.h"

#include <optional>
#include <utility>

#include "common/error/error.h"

namespace conclave::controller {

class BrokerSessions::Session : public MessageHandler<v1::BrokerHeartbeat> {
 public:
  Session(BrokerSessions& owner, uint64_t number, std::unique_ptr<Stream> stream)
      : owner_(owner), number_(number), stream_(std::move(stream)) {}

  void Start() { stream_->Start(this); }

  void OnMessage(v1::BrokerHeartbeat heartbeat) override {
    if (refused_) return;
    const Key key{BrokerId(heartbeat.broker_id()), BrokerEpoch(heartbeat.broker_epoch())};
    if (!opened_) {
      if (absl::Status open = owner_.events_.opened(key.broker, key.epoch); !open.ok()) {
        return Refuse(open);
      }
      opened_ = key;
    } else if (opened_->broker != key.broker || opened_->epoch != key.epoch) {
      return Refuse(MakeError(v1::INVALID_REQUEST,
                              "a session's stream is of one broker and one broker epoch"));
    }
    const auto reply = owner_.events_.heartbeat(heartbeat);
    if (!reply.ok()) return Refuse(reply.status());
    stream_->Send(*reply);
  }

  void OnHalfClose() override { stream_->Finish(absl::OkStatus()); }

  void OnClosed(absl::Status) override {
    const std::optional<Key> key = opened_;
    BrokerSessions& owner = owner_;
    owner.sessions_.erase(number_);  // Destroys this.
    if (key) owner.events_.broken(key->broker, key->epoch);
  }

  void Refuse(const absl::Status& why) {
    refused_ = true;
    stream_->Finish(why);
  }

 private:
  struct Key {
    BrokerId broker;
    BrokerEpoch epoch;
  };

  BrokerSessions& owner_;
  const uint64_t number_;
  const std::unique_ptr<Stream> stream_;
  std::optional<Key> opened_;
  bool refused_ = false;
};

BrokerSessions::BrokerSessions(Events events) : events_(std::move(events)) {}
BrokerSessions::~BrokerSessions() = default;

void BrokerSessions::Accept(std::unique_ptr<Stream> stream) {
  const uint64_t number = ++last_session_;
  auto session = std::make_unique<Session>(*this, number, std::move(stream));
  Session* raw = session.get();
  sessions_.emplace(number, std::move(session));
  raw->Start();
}

void BrokerSessions::CloseAll(const absl::Status& why) {
  for (auto& [number, session] : sessions_) session->Refuse(why);
}

}  // namespace conclave::controller
