#include "controller/server/metadata_watches.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"

namespace conclave::controller {
namespace {

void SetPosition(MetadataPosition position, v1::MetadataPosition* proto) {
  proto->set_index(position.index.value());
  proto->set_term(position.term.value());
}

}  // namespace

class MetadataWatches::Watch : public MessageHandler<v1::WatchMetadataRequest> {
 public:
  Watch(MetadataWatches& owner, uint64_t number, std::unique_ptr<Stream> stream)
      : owner_(owner), number_(number), stream_(std::move(stream)) {}

  void Start() { stream_->Start(this); }

  void OnMessage(v1::WatchMetadataRequest request) override {
    if (began_) {
      return stream_->Finish(MakeError(v1::INVALID_REQUEST, "a watch takes one request"));
    }
    const absl::Status good = Begin(request);
    if (!good.ok()) stream_->Finish(good);
  }

  // Destroys this.
  void OnClosed(absl::Status) override { owner_.watches_.erase(number_); }

  void Send(const v1::WatchMetadataResponse& response, MonotonicTime now) {
    if (!began_) return;
    if (stream_->pending_bytes() > kMaxPendingBytes) {
      began_ = false;
      return stream_->Finish(
          MakeError(v1::OVERLOADED, "the watcher is too slow; it may come back for the image"));
    }
    last_sent_ = now;
    stream_->Send(response);
  }

  void SignOfLife(const v1::WatchMetadataResponse& response, MonotonicTime now) {
    if (now - last_sent_ >= kSignOfLife) Send(response, now);
  }

  void Close(const absl::Status& why) {
    began_ = false;
    stream_->Finish(why);
  }

 private:
  absl::Status Begin(const v1::WatchMetadataRequest& request) {
    if (request.cluster_id() != owner_.cluster_id_.ToBytes()) {
      return MakeError(v1::INCONSISTENT_CLUSTER_ID,
                       absl::StrCat("the watcher belongs to another cluster; this is cluster ",
                                    owner_.cluster_id_.ToString()));
    }
    const MetadataImage& image = owner_.source_.image();
    const MetadataPosition from{LogIndex(request.position().index()),
                                Term(request.position().term())};
    v1::WatchMetadataResponse first;
    first.set_commit_index(owner_.source_.commit_index().value());
    if (from.index > image.position().index) {
      return MakeError(v1::METADATA_BEHIND,
                       absl::StrCat("this controller has committed metadata up to ",
                                    image.position().index.value(), " and the watcher has ",
                                    from.index.value(), " already; another controller is ahead"));
    }
    std::optional<std::vector<v1::CommittedBatch>> missing;
    if (from.index > LogIndex(0)) missing = owner_.source_.since(from);
    if (missing) {
      SetPosition(from, first.mutable_image_position());
      for (v1::CommittedBatch& batch : *missing) *first.add_batches() = std::move(batch);
    } else {
      *first.mutable_image() = image.ToProto();
      SetPosition(image.position(), first.mutable_image_position());
    }
    began_ = true;
    stream_->Send(first);
    return absl::OkStatus();
  }

  MetadataWatches& owner_;
  const uint64_t number_;
  const std::unique_ptr<Stream> stream_;
  bool began_ = false;
  MonotonicTime last_sent_;
};

MetadataWatches::MetadataWatches(ClusterId cluster_id, Source source)
    : cluster_id_(cluster_id), source_(std::move(source)) {}
MetadataWatches::~MetadataWatches() = default;

void MetadataWatches::Accept(std::unique_ptr<Stream> stream) {
  const uint64_t number = ++last_watch_;
  auto watch = std::make_unique<Watch>(*this, number, std::move(stream));
  Watch* raw = watch.get();
  watches_.emplace(number, std::move(watch));
  raw->Start();
}

void MetadataWatches::Committed(const std::vector<v1::CommittedBatch>& batches, MonotonicTime now) {
  if (watches_.empty()) return;
  v1::WatchMetadataResponse response;
  response.set_commit_index(source_.commit_index().value());
  for (const v1::CommittedBatch& batch : batches) *response.add_batches() = batch;
  for (auto& [number, watch] : watches_) watch->Send(response, now);
}

void MetadataWatches::Tick(MonotonicTime now) {
  v1::WatchMetadataResponse response;
  response.set_commit_index(source_.commit_index().value());
  for (auto& [number, watch] : watches_) watch->SignOfLife(response, now);
}

void MetadataWatches::CloseAll(const absl::Status& why) {
  for (auto& [number, watch] : watches_) watch->Close(why);
}

}  // namespace conclave::controller
