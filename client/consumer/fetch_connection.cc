#include "client/consumer/fetch_connection.h"

#include <glog/logging.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error/error.h"

namespace conclave {

FetchConnection::FetchConnection(std::string endpoint, Transport& transport, Executor& executor,
                                 const Random& random, Owner& owner)
    : endpoint_(std::move(endpoint)),
      transport_(transport),
      executor_(executor),
      random_(random),
      owner_(owner),
      pause_(Duration::Milliseconds(20), Duration::Seconds(1)) {}

FetchConnection::~FetchConnection() { executor_.Cancel(pause_timer_); }

void FetchConnection::Open(const v1::FetchRequest& request, Members members) {
  CHECK(may_open());
  members_ = std::move(members);
  reading_ = true;
  stream_.reset();
  stream_ = std::make_unique<Stream>(
      transport_, endpoint_, fetch_methods::kFetchStreamWithPayloads, CallOptions{}, executor_,
      static_cast<MessageHandler<fetch_methods::FetchResponse>*>(this));
  stream_->Send(request);
  stream_->HalfClose();
}

void FetchConnection::Close() {
  stream_.reset();
  members_.clear();
}

void FetchConnection::SetReading(bool reading) {
  if (stream_ == nullptr || reading == reading_) return;
  reading_ = reading;
  stream_->SetReading(reading);
}

void FetchConnection::OnMessage(fetch_methods::FetchResponse response) {
  bool good = response.message.partitions_size() > 0;
  for (const auto& partition : response.message.partitions()) {
    good = good && partition.error().code() == v1::NONE;
  }
  if (good) pause_.Reset();
  owner_.OnFetched(*this, std::move(response));
}

void FetchConnection::OnClosed(absl::Status status) {
  if (status.ok()) {
    status = MakeError(v1::NETWORK_EXCEPTION,
                       absl::StrCat(endpoint_, " ended the stream; it may be stopping"));
  }
  VLOG(1) << "fetch stream from " << endpoint_ << ": " << Describe(status);
  stream_.reset();
  paused_ = true;
  pause_timer_ = executor_.PostAfter(pause_.Next(random_), lifetime_.Guard([this] {
    paused_ = false;
    owner_.OnMayOpen();
  }));
  owner_.OnEnded(*this, status);
  members_.clear();
}

}  // namespace conclave
