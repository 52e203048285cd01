#include "common/metadata/topic_name.h"

#include <gtest/gtest.h>

#include "common/error/error.h"

namespace conclave {
namespace {

TEST(TopicNameTest, R38NamesOfKafkaAreAccepted) {
  for (const std::string& name :
       {std::string("a"), std::string("a.b"), std::string("a_b"), std::string("A-9"),
        std::string("..."), std::string("__consumer_offsets"), std::string(249, 'x')}) {
    EXPECT_TRUE(CheckTopicName(name).ok()) << name;
  }
}

TEST(TopicNameTest, R38OthersAreRefusedByName) {
  for (const std::string& name : {std::string(), std::string("."), std::string(".."),
                                  std::string(250, 'x'), std::string("a/b"), std::string("a\0b", 3),
                                  std::string("größe"), std::string("a b"), std::string("a\n")}) {
    EXPECT_EQ(ErrorCodeOf(CheckTopicName(name)), v1::INVALID_TOPIC) << name;
  }
  EXPECT_NE(CheckTopicName(std::string(5000, 'y')).message().find("5000 characters"),
            std::string::npos);
  EXPECT_LT(CheckTopicName(std::string(5000, 'y')).message().size(), 200u);
}

TEST(TopicNameTest, DotAndUnderscoreAreOneInMetrics) {
  EXPECT_EQ(CanonicalTopicName("a.b_c"), CanonicalTopicName("a_b.c"));
  EXPECT_NE(CanonicalTopicName("a-b"), CanonicalTopicName("a_b"));
}

TEST(TopicNameTest, TwoUnderscoresAreTheClustersOwn) {
  EXPECT_TRUE(IsInternalTopicName("__consumer_offsets"));
  EXPECT_FALSE(IsInternalTopicName("_a"));
  EXPECT_FALSE(IsInternalTopicName(""));
}

}  // namespace
}  // namespace conclave
