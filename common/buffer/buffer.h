#ifndef CONCLAVE_COMMON_BUFFER_BUFFER_H_
#define CONCLAVE_COMMON_BUFFER_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace conclave {

// A run of bytes with shared ownership. Copying shares the bytes. The bytes are immutable but for
// mutable_data(), which only the code that has just received or made them may use, before it shares
// them.
class Slice {
 public:
  Slice() = default;
  // `owner` keeps [data, data + size) alive.
  Slice(std::shared_ptr<const void> owner, const char* data, size_t size)
      : owner_(std::move(owner)), data_(data), size_(size) {}

  static Slice FromString(std::string bytes);
  static Slice CopyOf(std::string_view bytes) { return FromString(std::string(bytes)); }

  const char* data() const { return data_; }
  size_t size() const { return size_; }
  std::string_view view() const { return {data_, size_}; }
  char* mutable_data() { return const_cast<char*>(data_); }
  const std::shared_ptr<const void>& owner() const { return owner_; }

  // A part of it, sharing the bytes. `offset + length` is within the slice.
  Slice Sub(size_t offset, size_t length) const;

 private:
  std::shared_ptr<const void> owner_;
  const char* data_ = nullptr;
  size_t size_ = 0;
};

// A payload: a chain of slices, passed from network to file to network without copying the bytes
// (architecture, rule 5). Copying a Buffer copies the chain and shares the bytes. Not thread-safe;
// distinct Buffers over the same bytes may be read from different threads.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(Slice slice) { Append(std::move(slice)); }
  explicit Buffer(std::string bytes) { Append(Slice::FromString(std::move(bytes))); }

  void Append(Slice slice);
  void Append(const Buffer& other);

  const std::vector<Slice>& slices() const { return slices_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // The bytes [offset, offset + length), sharing them; the range is within the buffer.
  Buffer Sub(size_t offset, size_t length) const;

  // Copies [offset, offset + length) to `out`; the range is within the buffer.
  void CopyTo(size_t offset, size_t length, char* out) const;

  // One contiguous copy of everything.
  std::string ToString() const;

 private:
  std::vector<Slice> slices_;
  size_t size_ = 0;
};

}  // namespace conclave

#endif  // CONCLAVE_COMMON_BUFFER_BUFFER_H_
