#include "common/buffer/buffer.h"

#include <gtest/gtest.h>

#include "common/buffer/message_buffer.h"
#include "conclave/v1/errors.pb.h"

namespace conclave {
namespace {

TEST(BufferTest, SharesBytesAndKeepsThemAlive) {
  Buffer whole;
  {
    Buffer first(std::string("hello, "));
    Buffer second(std::string("world"));
    whole.Append(first);
    whole.Append(second);
    EXPECT_EQ(whole.slices()[0].data(), first.slices()[0].data());
  }
  EXPECT_EQ(whole.ToString(), "hello, world");
  EXPECT_EQ(whole.size(), 12u);
}

TEST(BufferTest, SubCrossesSlices) {
  Buffer b;
  for (const char* part : {"abc", "", "de", "fghi"}) b.Append(Slice::CopyOf(part));
  EXPECT_EQ(b.slices().size(), 3u);
  EXPECT_EQ(b.Sub(2, 4).ToString(), "cdef");
  EXPECT_EQ(b.Sub(9, 0).ToString(), "");
  EXPECT_EQ(b.Sub(0, 9).ToString(), "abcdefghi");
  char out[3];
  b.CopyTo(4, 3, out);
  EXPECT_EQ(std::string(out, 3), "efg");
}

TEST(BufferTest, AppendsItself) {
  Buffer b(std::string("xy"));
  b.Append(b);
  EXPECT_EQ(b.ToString(), "xyxy");
}

TEST(MessageBufferTest, ParsesAcrossEverySplit) {
  v1::Error error;
  error.set_code(v1::NOT_CONTROLLER);
  error.set_message("some text that is long enough to be split in many places");
  error.mutable_hint()->set_endpoint("localhost:7300");
  const Buffer bytes = SerializeToBuffer(error);
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    Buffer split = bytes.Sub(0, cut);
    split.Append(bytes.Sub(cut, bytes.size() - cut));
    v1::Error parsed;
    ASSERT_TRUE(ParseFromBuffer(split, &parsed)) << cut;
    EXPECT_EQ(parsed.SerializeAsString(), error.SerializeAsString());
  }
}

TEST(MessageBufferTest, RefusesWhatIsNoMessage) {
  v1::Error parsed;
  EXPECT_FALSE(ParseFromBuffer(Buffer(std::string("\xff\xff\xff\xff")), &parsed));
  const Buffer bytes = SerializeToBuffer([] {
    v1::Error e;
    e.set_message("cut off");
    return e;
  }());
  EXPECT_FALSE(ParseFromBuffer(bytes.Sub(0, bytes.size() - 1), &parsed));
}

}  // namespace
}  // namespace conclave
