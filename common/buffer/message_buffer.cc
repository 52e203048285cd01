#include "common/buffer/message_buffer.h"

#include <glog/logging.h>
#include <google/protobuf/io/zero_copy_stream.h>
#include <google/protobuf/message_lite.h>

#include <algorithm>
#include <limits>
#include <string>

namespace conclave {
namespace {

class BufferInputStream : public google::protobuf::io::ZeroCopyInputStream {
 public:
  explicit BufferInputStream(const Buffer& buffer) : buffer_(buffer) {}

  bool Next(const void** data, int* size) override {
    if (slice_ == buffer_.slices().size()) return false;
    const Slice& slice = buffer_.slices()[slice_++];
    CHECK_LE(slice.size(), static_cast<size_t>(std::numeric_limits<int>::max()));
    *data = slice.data() + offset_;
    *size = static_cast<int>(slice.size() - offset_);
    read_ += *size;
    offset_ = 0;
    return true;
  }

  void BackUp(int count) override {
    --slice_;
    offset_ = buffer_.slices()[slice_].size() - static_cast<size_t>(count);
    read_ -= count;
  }

  bool Skip(int count) override {
    while (count > 0) {
      const void* data;
      int size;
      if (!Next(&data, &size)) return false;
      if (size > count) BackUp(size - count);
      count -= std::min(size, count);
    }
    return true;
  }

  int64_t ByteCount() const override { return read_; }

 private:
  const Buffer& buffer_;
  size_t slice_ = 0;
  size_t offset_ = 0;
  int64_t read_ = 0;
};

}  // namespace

Buffer SerializeToBuffer(const google::protobuf::MessageLite& message) {
  std::string bytes;
  CHECK(message.SerializeToString(&bytes)) << "a " << message.GetTypeName() << " over 2 GiB";
  return Buffer(std::move(bytes));
}

bool ParseFromBuffer(const Buffer& buffer, google::protobuf::MessageLite* message) {
  BufferInputStream in(buffer);
  return message->ParseFromZeroCopyStream(&in);
}

}  // namespace conclave
