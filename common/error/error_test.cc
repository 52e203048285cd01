#include "common/error/error.h"

#include <gtest/gtest.h>

namespace conclave {
namespace {

TEST(ErrorTest, CodeMessageAndHintSurviveTheWire) {
  v1::NodeHint hint;
  hint.set_node_id(2);
  hint.set_endpoint("localhost:7300");
  const absl::Status made = MakeError(v1::NOT_CONTROLLER, "this is controller 1", hint);
  EXPECT_EQ(made.code(), absl::StatusCode::kUnavailable);

  const absl::Status back = StatusFromError(ErrorFromStatus(made));
  EXPECT_EQ(ErrorCodeOf(back), v1::NOT_CONTROLLER);
  EXPECT_EQ(ErrorFromStatus(back).hint().node_id(), 2);
  EXPECT_EQ(Describe(back), "NOT_CONTROLLER: this is controller 1");
}

TEST(ErrorTest, OkStaysOk) {
  EXPECT_EQ(ErrorCodeOf(absl::OkStatus()), v1::NONE);
  EXPECT_TRUE(StatusFromError(v1::Error()).ok());
  EXPECT_EQ(ErrorFromStatus(absl::OkStatus()).code(), v1::NONE);
}

TEST(ErrorTest, StrangersGetTheNearestCode) {
  EXPECT_EQ(ErrorCodeOf(absl::DeadlineExceededError("x")), v1::REQUEST_TIMED_OUT);
  EXPECT_EQ(ErrorCodeOf(absl::UnavailableError("x")), v1::NETWORK_EXCEPTION);
  EXPECT_EQ(ErrorCodeOf(absl::InternalError("x")), v1::UNKNOWN_SERVER_ERROR);
}

TEST(ErrorTest, ACodeOfTheFutureIsNamed) {
  v1::Error error;
  error.set_code(static_cast<v1::ErrorCode>(9999));
  error.set_message("new trouble");
  const absl::Status status = StatusFromError(error);
  EXPECT_EQ(ErrorCodeOf(status), v1::UNKNOWN_SERVER_ERROR);
  EXPECT_NE(status.message().find("9999"), std::string::npos);
  EXPECT_NE(status.message().find("new trouble"), std::string::npos);
}

TEST(ErrorTest, EveryCodeSaysWhatACallerMayDo) {
  EXPECT_TRUE(IsRetriable(v1::NOT_CONTROLLER));
  EXPECT_TRUE(HasNoEffect(v1::NOT_CONTROLLER));
  EXPECT_TRUE(IsRetriable(v1::REQUEST_TIMED_OUT));
  EXPECT_FALSE(HasNoEffect(v1::REQUEST_TIMED_OUT));
  EXPECT_FALSE(HasNoEffect(v1::NOT_ENOUGH_REPLICAS_AFTER_APPEND));
  const auto* codes = v1::ErrorCode_descriptor();
  for (int i = 0; i < codes->value_count(); ++i) {
    const auto code = static_cast<v1::ErrorCode>(codes->value(i)->number());
    EXPECT_EQ(CanonicalCode(code) == absl::StatusCode::kOk, code == v1::NONE);
  }
}

}  // namespace
}  // namespace conclave
