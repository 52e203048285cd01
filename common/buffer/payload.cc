#include "common/buffer/payload.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace conclave {
namespace {

// Of the protobuf encoding.
enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// Tags and lengths, as generated code has it.
constexpr int kMostBytesOf32Bits = 5;

struct Tag {
  int field = 0;
  uint32_t type = 0;
};

void PutVarint(uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

void PutTag(Tag tag, std::string& out) {
  PutVarint(static_cast<uint64_t>(tag.field) << 3 | tag.type, out);
}

// Reads a buffer from its start on, across slices. What fails is at the end, or malformed.
class Cursor {
 public:
  explicit Cursor(const Buffer& buffer) : slices_(buffer.slices()), left_(buffer.size()) {}

  size_t left() const { return left_; }

  bool Varint(uint64_t& value, int most_bytes = 10) {
    value = 0;
    for (int shift = 0; shift < 7 * most_bytes; shift += 7) {
      if (left_ == 0) return false;
      const auto byte = static_cast<uint8_t>(*Here());
      Advance(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  bool NextTag(Tag& tag) {
    uint64_t value;
    if (!Varint(value, kMostBytesOf32Bits) || value > UINT32_MAX || value >> 3 == 0) return false;
    tag = {static_cast<int>(value >> 3), static_cast<uint32_t>(value & 7)};
    return true;
  }

  // Of a field of type bytes, which lies within what is left.
  bool Length(size_t& length) {
    uint64_t value;
    if (!Varint(value, kMostBytesOf32Bits) || value > left_) return false;
    length = value;
    return true;
  }

  // `length` is at most left(), here and below.
  void Copy(size_t length, std::string& out) {
    Each(length, [&](const Slice& slice) { out.append(slice.data(), slice.size()); });
  }
  Buffer Share(size_t length) {
    Buffer shared;
    Each(length, [&](Slice slice) { shared.Append(std::move(slice)); });
    return shared;
  }

 private:
  const char* Here() const { return slices_[slice_].data() + offset_; }

  void Advance(size_t length) {
    left_ -= length;
    offset_ += length;
    if (offset_ < slices_[slice_].size()) return;
    ++slice_;
    offset_ = 0;
  }

  template <class Take>
  void Each(size_t length, const Take& take) {
    while (length > 0) {
      const Slice& slice = slices_[slice_];
      const size_t here = std::min(length, slice.size() - offset_);
      take(slice.Sub(offset_, here));
      Advance(here);
      length -= here;
    }
  }

  const std::vector<Slice>& slices_;
  size_t slice_ = 0;
  size_t offset_ = 0;
  size_t left_;
};

// Copies one field, behind its tag. Groups, which proto3 has not, are refused.
bool CopyField(Cursor& in, Tag tag, std::string& out) {
  PutTag(tag, out);
  size_t length = 0;
  switch (tag.type) {
    case kVarint: {
      uint64_t value;
      if (!in.Varint(value)) return false;
      PutVarint(value, out);
      return true;
    }
    case kBytes:
      if (!in.Length(length)) return false;
      PutVarint(length, out);
      break;
    case kFixed64:
      length = 8;
      break;
    case kFixed32:
      length = 4;
      break;
    default:
      return false;
  }
  if (length > in.left()) return false;
  in.Copy(length, out);
  return true;
}

// Of one part, whose bytes end when `end` are left.
bool DetachPayload(Cursor& in, size_t end, int field, std::string& rest, Buffer& payload) {
  while (in.left() > end) {
    Tag tag;
    if (!in.NextTag(tag)) return false;
    if (tag.field != field || tag.type != kBytes) {
      if (!CopyField(in, tag, rest)) return false;
      continue;
    }
    size_t length;
    if (!in.Length(length) || length > in.left()) return false;
    payload = in.Share(length);  // The last one counts, as everywhere.
  }
  return in.left() == end;
}

}  // namespace

bool DetachPayloads(const Buffer& wire, PayloadPath path, std::string* rest,
                    std::vector<Buffer>* payloads) {
  Cursor in(wire);
  std::string part;
  while (in.left() > 0) {
    Tag tag;
    if (!in.NextTag(tag)) return false;
    if (tag.field != path.parts || tag.type != kBytes) {
      if (!CopyField(in, tag, *rest)) return false;
      continue;
    }
    size_t length;
    if (!in.Length(length)) return false;
    part.clear();
    const bool whole =
        DetachPayload(in, in.left() - length, path.payload, part, payloads->emplace_back());
    if (!whole) return false;
    PutTag(tag, *rest);
    PutVarint(part.size(), *rest);
    rest->append(part);
  }
  return true;
}

Buffer AttachPayloads(const std::string& rest, PayloadPath path,
                      const std::vector<Buffer>& payloads) {
  const Buffer shared(rest);
  Cursor in(shared);
  Buffer wire;
  std::string front;  // What goes before the next payload.
  size_t next = 0;
  while (in.left() > 0) {
    Tag tag;
    CHECK(in.NextTag(tag));
    if (tag.field != path.parts || tag.type != kBytes) {
      CHECK(CopyField(in, tag, front));
      continue;
    }
    size_t length;
    CHECK(in.Length(length));
    CHECK_LT(next, payloads.size()) << "a part without its payload";
    const Buffer& payload = payloads[next++];
    std::string before;
    if (!payload.empty()) {
      PutTag({path.payload, kBytes}, before);
      PutVarint(payload.size(), before);
    }
    PutTag(tag, front);
    PutVarint(length + before.size() + payload.size(), front);
    in.Copy(length, front);
    front.append(before);
    if (payload.empty()) continue;
    wire.Append(Slice::FromString(std::exchange(front, {})));
    wire.Append(payload);
  }
  CHECK_EQ(next, payloads.size()) << "a payload without its part";
  if (!front.empty()) wire.Append(Slice::FromString(std::move(front)));
  return wire;
}

}  // namespace conclave
