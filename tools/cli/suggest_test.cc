#include "tools/cli/suggest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

namespace conclave::tools {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class SuggestTest : public testing::Test {
 protected:
  SuggestTest() {
    app_.add_option("--bootstrap", text_);
    app_.require_subcommand(1);
    CLI::App* topic = app_.add_subcommand("topic");
    topic->require_subcommand(1);
    topic->add_subcommand("describe")->add_option("name", text_);
    CLI::App* create = topic->add_subcommand("create");
    create->add_option("name", text_);
    create->add_option("--partitions", text_);
    app_.add_subcommand("produce");
  }

  CLI::App app_{"test"};
  std::string text_;
};

TEST_F(SuggestTest, AWordThatIsNearIsNamed) {
  EXPECT_THAT(ExplainUnknown(app_, {"topic", "descibe"}), HasSubstr("did you mean 'describe'?"));
  EXPECT_THAT(ExplainUnknown(app_, {"topci", "list"}), HasSubstr("did you mean 'topic'?"));
}

TEST_F(SuggestTest, AllThereAreAreNamedToo) {
  const std::string text = ExplainUnknown(app_, {"topic", "frobnicate"});
  EXPECT_THAT(text, HasSubstr("'conclave topic frobnicate'"));
  EXPECT_THAT(text, HasSubstr("describe, create"));
  EXPECT_THAT(text, Not(HasSubstr("did you mean")));
  EXPECT_THAT(ExplainUnknown(app_, {"topic"}), HasSubstr("describe, create"));
}

TEST_F(SuggestTest, AnOptionIsNamedToo) {
  EXPECT_THAT(ExplainUnknown(app_, {"topic", "create", "t", "--partition", "3"}),
              HasSubstr("did you mean '--partitions'?"));
  EXPECT_THAT(ExplainUnknown(app_, {"produce", "--bootstrp=x"}), HasSubstr("'--bootstrap'"));
}

TEST_F(SuggestTest, ValuesAreNoWords) {
  EXPECT_THAT(ExplainUnknown(app_, {"--bootstrap", "h:1", "topic", "create", "--", "--x"}),
              IsEmpty());
  EXPECT_THAT(ExplainUnknown(app_, {"topic", "create", "--partitions", "-1", "word"}), IsEmpty());
}

}  // namespace
}  // namespace conclave::tools
