#include "common/buffer/buffer.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstring>

namespace conclave {

Slice Slice::FromString(std::string bytes) {
  auto owner = std::make_shared<std::string>(std::move(bytes));
  const char* data = owner->data();
  const size_t size = owner->size();
  return Slice(std::move(owner), data, size);
}

Slice Slice::Sub(size_t offset, size_t length) const {
  CHECK_LE(offset, size_);
  CHECK_LE(length, size_ - offset);
  return Slice(owner_, data_ + offset, length);
}

void Buffer::Append(Slice slice) {
  if (slice.size() == 0) return;
  size_ += slice.size();
  slices_.push_back(std::move(slice));
}

void Buffer::Append(const Buffer& other) {
  slices_.reserve(slices_.size() + other.slices_.size());
  for (size_t i = 0, n = other.slices_.size(); i < n; ++i) Append(Slice(other.slices_[i]));
}

Buffer Buffer::Sub(size_t offset, size_t length) const {
  CHECK_LE(offset, size_);
  CHECK_LE(length, size_ - offset);
  Buffer part;
  for (const Slice& slice : slices_) {
    if (length == 0) break;
    if (offset >= slice.size()) {
      offset -= slice.size();
      continue;
    }
    const size_t take = std::min(length, slice.size() - offset);
    part.Append(slice.Sub(offset, take));
    offset = 0;
    length -= take;
  }
  return part;
}

void Buffer::CopyTo(size_t offset, size_t length, char* out) const {
  const Buffer part = Sub(offset, length);
  for (const Slice& slice : part.slices()) {
    std::memcpy(out, slice.data(), slice.size());
    out += slice.size();
  }
}

std::string Buffer::ToString() const {
  std::string bytes;
  bytes.reserve(size_);
  for (const Slice& slice : slices_) bytes.append(slice.data(), slice.size());
  return bytes;
}

}  // namespace conclave
