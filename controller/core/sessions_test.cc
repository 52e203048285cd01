#include "controller/core/sessions.h"

#include <gtest/gtest.h>

namespace conclave::controller {
namespace {

constexpr BrokerId kA{1};
constexpr BrokerId kB{2};
constexpr BrokerId kC{3};
constexpr BrokerEpoch kEpoch{5};

class SessionsTest : public ::testing::Test {
 protected:
  static MonotonicTime At(int64_t ms) { return MonotonicTime::FromNanoseconds(ms * 1'000'000); }

  void Connect(BrokerId broker, int64_t ms = 0) {
    sessions_.Begin(broker, kEpoch, At(ms));
    sessions_.Opened(broker, kEpoch, At(ms));
  }

  std::vector<BrokerId> ExpiredAt(int64_t ms) {
    std::vector<BrokerId> brokers;
    for (const auto& ended : sessions_.Expire(At(ms))) brokers.push_back(ended.broker);
    return brokers;
  }

  using Brokers = std::vector<BrokerId>;
  Sessions sessions_{Duration::Seconds(6), Duration::Milliseconds(200)};
};

TEST_F(SessionsTest, LivesWhileHeartbeatsCome) {
  Connect(kA);
  sessions_.Heard(kA, kEpoch, At(5999));
  EXPECT_EQ(ExpiredAt(11998), Brokers());
  EXPECT_EQ(sessions_.NextDeadline(), At(11999));
  const auto ended = sessions_.Expire(At(12500));
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].at, At(11999));
  EXPECT_NE(ended[0].why.find("6000 ms"), std::string::npos);
  EXPECT_FALSE(sessions_.IsLive(kA));
  EXPECT_EQ(sessions_.NextDeadline(), MonotonicTime::Never());
  EXPECT_EQ(ExpiredAt(99999), Brokers()) << "ends once";
}

TEST_F(SessionsTest, EndsEarlyWhenTheStreamIsNotBackWithinTheGrace) {
  Connect(kA);
  sessions_.Broken(kA, kEpoch, At(1000));
  EXPECT_TRUE(sessions_.IsLive(kA));
  EXPECT_FALSE(sessions_.IsConnected(kA));
  EXPECT_EQ(sessions_.NextDeadline(), At(1200));
  EXPECT_EQ(ExpiredAt(1199), Brokers());
  EXPECT_EQ(ExpiredAt(1200), Brokers{kA});
}

TEST_F(SessionsTest, AStreamThatIsBackEndsTheGrace) {
  Connect(kA);
  sessions_.Broken(kA, kEpoch, At(1000));
  sessions_.Opened(kA, kEpoch, At(1020));
  EXPECT_EQ(sessions_.NextDeadline(), At(6000));
}

TEST_F(SessionsTest, AHeartbeatThatWasUnderWayIsNoStream) {
  Connect(kA);
  sessions_.Broken(kA, kEpoch, At(1000));
  sessions_.Heard(kA, kEpoch, At(1001));
  EXPECT_EQ(ExpiredAt(1200), Brokers{kA});
}

TEST_F(SessionsTest, ANewerStreamMakesTheOldOnesBreakHarmless) {
  Connect(kA);
  sessions_.Opened(kA, kEpoch, At(500));
  sessions_.Broken(kA, kEpoch, At(510));
  EXPECT_TRUE(sessions_.IsConnected(kA));
  EXPECT_EQ(sessions_.NextDeadline(), At(6000));
}

TEST_F(SessionsTest, StreamsThatBreakTogetherEndNobodyEarly) {
  Connect(kA);
  Connect(kB);
  Connect(kC);
  sessions_.Broken(kA, kEpoch, At(1000));
  sessions_.Broken(kB, kEpoch, At(1200));
  EXPECT_EQ(sessions_.NextDeadline(), At(6000));
  // Within one grace of B's, though not of A's.
  sessions_.Broken(kC, kEpoch, At(1400));
  EXPECT_EQ(sessions_.NextDeadline(), At(6000));
  EXPECT_EQ(ExpiredAt(6000), (Brokers{kA, kB, kC}));
}

TEST_F(SessionsTest, AlsoWhenTheFirstIsBackOrReplacedAlready) {
  Connect(kA);
  Connect(kB);
  sessions_.Broken(kA, kEpoch, At(1000));
  sessions_.Begin(kA, BrokerEpoch(9), At(1100));
  sessions_.Broken(kB, kEpoch, At(1150));
  EXPECT_EQ(ExpiredAt(1400), Brokers());
}

TEST_F(SessionsTest, BreaksApartEndEarlyEach) {
  Connect(kA);
  Connect(kB);
  sessions_.Broken(kA, kEpoch, At(1000));
  EXPECT_EQ(ExpiredAt(1200), Brokers{kA});
  sessions_.Broken(kB, kEpoch, At(1201));
  EXPECT_EQ(ExpiredAt(1401), Brokers{kB});
}

TEST_F(SessionsTest, AfterAChangeOfControllerTheSessionIsFull) {
  sessions_.BeginAfterChangeOfController(kA, kEpoch, At(0));
  sessions_.Opened(kA, kEpoch, At(50));
  sessions_.Broken(kA, kEpoch, At(1000));
  EXPECT_EQ(ExpiredAt(5999), Brokers());
  EXPECT_EQ(ExpiredAt(6000), Brokers{kA});
  // Past it, the grace counts again.
  sessions_.BeginAfterChangeOfController(kB, kEpoch, At(0));
  sessions_.Opened(kB, kEpoch, At(50));
  sessions_.Heard(kB, kEpoch, At(5900));
  sessions_.Broken(kB, kEpoch, At(5950));
  EXPECT_EQ(sessions_.NextDeadline(), At(6150));
}

TEST_F(SessionsTest, ThreeBreaksInFiveMinutesLeaveTheTimeoutAlone) {
  Connect(kA);
  for (int64_t ms : {1000, 2000}) {
    sessions_.Broken(kA, kEpoch, At(ms));
    EXPECT_EQ(sessions_.NextDeadline(), At(ms + 200));
    sessions_.Opened(kA, kEpoch, At(ms + 20));
    sessions_.Heard(kA, kEpoch, At(ms + 20));
  }
  sessions_.Broken(kA, kEpoch, At(3000));
  EXPECT_EQ(sessions_.NextDeadline(), At(8020));
  // Another incarnation starts with no history.
  sessions_.Begin(kA, BrokerEpoch(9), At(4000));
  sessions_.Opened(kA, BrokerEpoch(9), At(4000));
  sessions_.Broken(kA, BrokerEpoch(9), At(5000));
  EXPECT_EQ(sessions_.NextDeadline(), At(5200));
}

TEST_F(SessionsTest, BreaksOlderThanFiveMinutesAreForgotten) {
  Connect(kA);
  int64_t ms = 0;
  for (int i = 0; i < 5; ++i) {
    ms += 150'001;
    sessions_.Heard(kA, kEpoch, At(ms));
    sessions_.Broken(kA, kEpoch, At(ms));
    EXPECT_EQ(sessions_.NextDeadline(), At(ms + 200)) << i;
    sessions_.Opened(kA, kEpoch, At(ms + 20));
  }
}

TEST_F(SessionsTest, OtherIncarnationsAreNotTakenNoticeOf) {
  Connect(kA);
  sessions_.Broken(kA, BrokerEpoch(4), At(1000));
  EXPECT_TRUE(sessions_.IsConnected(kA));
  sessions_.Broken(kB, kEpoch, At(1000));
  EXPECT_EQ(sessions_.NextDeadline(), At(6000));
}

TEST_F(SessionsTest, AStoppedProcessThatGoesOnRevives) {
  Connect(kA);
  EXPECT_EQ(ExpiredAt(6000), Brokers{kA});
  EXPECT_FALSE(sessions_.IsConnected(kA)) << "its stream is open and means nothing";
  sessions_.Heard(kA, kEpoch, At(9000));
  EXPECT_TRUE(sessions_.IsConnected(kA));
  EXPECT_EQ(sessions_.NextDeadline(), At(15000));
}

TEST_F(SessionsTest, EndedInTheOrderInWhichTheyFellDue) {
  Connect(kA, 20);
  Connect(kB, 10);
  EXPECT_EQ(ExpiredAt(7000), (Brokers{kB, kA}));
}

}  // namespace
}  // namespace conclave::controller
