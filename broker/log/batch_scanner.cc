#include "broker/log/batch_scanner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/record/batch_check.h"

namespace conclave {
namespace {

constexpr uint64_t kHeaderWindowBytes = 4096;
constexpr uint64_t kWholeWindowBytes = 1 << 20;

}  // namespace

BatchScanner::BatchScanner(const File& file, uint64_t position, uint64_t end, Depth depth)
    : file_(file), position_(position), end_(std::min(end, file.size())), depth_(depth) {}

std::string_view BatchScanner::Window() const {
  return std::string_view(window_).substr(position_ - window_at_);
}

absl::Status BatchScanner::Fill(uint64_t bytes) {
  if (position_ >= window_at_ && position_ + bytes <= window_at_ + window_.size()) {
    return absl::OkStatus();
  }
  const uint64_t usual = depth_ == Depth::kWhole ? kWholeWindowBytes : kHeaderWindowBytes;
  const uint64_t size = std::min(std::max(bytes, usual), end_ - position_);
  auto read = file_.ReadAt(position_, size);
  if (!read.ok()) return read.status();
  window_ = *std::move(read);
  window_at_ = position_;
  return absl::OkStatus();
}

absl::StatusOr<std::optional<ScannedBatch>> BatchScanner::Next() {
  if (!stop_reason_.empty() || position_ >= end_) return std::nullopt;
  const uint64_t left = end_ - position_;
  if (left < kBatchHeaderBytes) {
    stop_reason_ = absl::StrCat("the file ends ", left, " bytes into a batch's header");
    return std::nullopt;
  }
  if (absl::Status status = Fill(kBatchHeaderBytes); !status.ok()) return status;
  if (Window().size() < kBatchHeaderBytes) {
    stop_reason_ = "the file became shorter while it was read";
    return std::nullopt;
  }
  const BatchHeader header = ParseBatchHeader(Window());
  if (const absl::Status status = CheckBatchHeader(header); !status.ok()) {
    stop_reason_ = std::string(status.message());
    return std::nullopt;
  }
  const auto size = static_cast<uint64_t>(header.size_bytes());
  if (size > left) {
    stop_reason_ = absl::StrCat("the file ends ", left, " bytes into a batch of ", size);
    return std::nullopt;
  }
  if (depth_ == Depth::kWhole) {
    if (absl::Status status = Fill(size); !status.ok()) return status;
    const std::string_view bytes = Window().substr(0, size);
    if (bytes.size() < size) {
      stop_reason_ = "the file became shorter while it was read";
      return std::nullopt;
    }
    const uint32_t crc = ComputeBatchCrc(bytes);
    if (crc != header.crc) {
      stop_reason_ =
          absl::StrFormat("the batch at offset %d has the CRC %08x, and its bytes give %08x",
                          header.base_offset.value(), header.crc, crc);
      return std::nullopt;
    }
  }
  const ScannedBatch batch{position_, header};
  position_ += size;
  return batch;
}

}  // namespace conclave
