#include "common/sim/sim_wire.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/buffer/buffer.h"
#include "common/random/random.h"
#include "common/sim/sim_clock.h"
#include "common/sim/sim_executor.h"
#include "common/sim/sim_scheduler.h"
#include "common/transport/memory_transport.h"

namespace conclave {
namespace {

constexpr Duration Ms(int64_t n) { return Duration::Milliseconds(n); }
constexpr char kMethod[] = "/test.Test/Echo";

// A node that echoes what comes on a stream, and keeps what comes back on its own.
class Node : public StreamHandler {
 public:
  Node(SimScheduler& scheduler, MemoryNetwork& network, const std::string& name)
      : clock_(scheduler), executor_(scheduler, clock_), transport_(network.Join(name)) {
    auto server = transport_->Listen(
        name + ":7000", {{kMethod, &executor_, [this](std::unique_ptr<ServerStream> stream) {
                            echoes_.push_back(std::make_unique<Echo>(std::move(stream)));
                          }}});
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  // As a process ends: nothing of it runs while its parts go.
  ~Node() override { executor_.Stop(); }

  void Open(const std::string& peer) {
    stream_ = transport_->OpenStream(peer + ":7000", kMethod, {}, executor_, this);
  }
  void Send(const std::string& text) { stream_->Send(Buffer(text)); }

  const std::vector<std::string>& received() const { return received_; }
  const std::vector<absl::Status>& closed() const { return closed_; }

 private:
  struct Echo : public StreamHandler {
    explicit Echo(std::unique_ptr<ServerStream> s) : stream(std::move(s)) { stream->Start(this); }
    void OnMessage(Buffer message) override { stream->Send(std::move(message)); }
    void OnClosed(absl::Status) override {}
    std::unique_ptr<ServerStream> stream;
  };

  void OnMessage(Buffer message) override { received_.push_back(message.ToString()); }
  void OnClosed(absl::Status status) override { closed_.push_back(std::move(status)); }

  SimClock clock_;
  SimExecutor executor_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Server> server_;
  std::vector<std::unique_ptr<Echo>> echoes_;
  std::unique_ptr<ClientStream> stream_;
  std::vector<std::string> received_;
  std::vector<absl::Status> closed_;
};

class World {
 public:
  explicit World(uint64_t seed, SimWire::Options options = SimWire::Options())
      : wire_(new SimWire(scheduler_, Random(seed), options)),
        network_(std::unique_ptr<Wire>(wire_)),
        a_(scheduler_, network_, "a"),
        b_(scheduler_, network_, "b") {
    wire_->SetBreakStreams([this](const std::string& one, const std::string& other) {
      network_.BreakStreams(one, other);
    });
    a_.Open("b");
    scheduler_.RunFor(Ms(50));
  }

  SimScheduler& scheduler() { return scheduler_; }
  SimWire& wire() { return *wire_; }
  MemoryNetwork& network() { return network_; }
  Node& a() { return a_; }

 private:
  SimScheduler scheduler_;
  SimWire* wire_;
  MemoryNetwork network_;
  Node a_;
  Node b_;
};

std::vector<std::string> Numbers(int count) {
  std::vector<std::string> numbers;
  for (int i = 0; i < count; ++i) numbers.push_back(std::to_string(i));
  return numbers;
}

TEST(SimWireTest, AStreamKeepsItsOrderWhateverTheDelays) {
  SimWire::Options options;
  options.delay_min = Duration();
  options.delay_max = Ms(50);
  options.slow = 0.2;
  options.slow_delay_max = Ms(500);
  World world(1, options);
  for (int i = 0; i < 200; ++i) {
    world.a().Send(std::to_string(i));
    world.scheduler().RunFor(Ms(3));
  }
  world.scheduler().RunFor(Duration::Seconds(10));
  EXPECT_EQ(world.a().received(), Numbers(200));
}

TEST(SimWireTest, MessagesTakeTheirTime) {
  SimWire::Options options;
  options.delay_min = Ms(10);
  options.delay_max = Ms(20);
  World world(1, options);
  world.a().Send("0");
  world.scheduler().RunFor(Ms(19));
  EXPECT_TRUE(world.a().received().empty());
  world.scheduler().RunFor(Ms(22));
  EXPECT_EQ(world.a().received(), Numbers(1));
}

TEST(SimWireTest, ACutLinkHoldsWhatIsSentUntilItHeals) {
  for (bool way_there : {false, true}) {
    World world(2);
    world.wire().Cut(way_there ? "a" : "b", way_there ? "b" : "a");
    EXPECT_FALSE(world.wire().CanConnect("a", "b"));
    EXPECT_FALSE(world.wire().CanConnect("b", "a"));
    EXPECT_TRUE(world.wire().CanConnect("a", "c"));
    for (int i = 0; i < 10; ++i) world.a().Send(std::to_string(i));
    world.scheduler().RunFor(Duration::Seconds(5));
    EXPECT_TRUE(world.a().received().empty());
    world.wire().Heal(way_there ? "a" : "b", way_there ? "b" : "a");
    world.scheduler().RunFor(Duration::Seconds(1));
    EXPECT_EQ(world.a().received(), Numbers(10));
    EXPECT_TRUE(world.a().closed().empty());
  }
}

TEST(SimWireTest, CuttingAndHealingOftenLosesAndSwapsNothing) {
  Random random(5);
  World world(3);
  for (int i = 0; i < 500; ++i) {
    world.a().Send(std::to_string(i));
    if (random.Chance(0.3)) world.wire().Cut("a", "b");
    if (random.Chance(0.3)) world.wire().Cut("b", "a");
    if (random.Chance(0.3)) world.wire().HealAll();
    world.scheduler().RunFor(Duration::Microseconds(random.Between(0, 1'000)));
  }
  world.wire().HealAll();
  world.scheduler().RunFor(Duration::Seconds(1));
  EXPECT_EQ(world.a().received(), Numbers(500));
  EXPECT_TRUE(world.a().closed().empty());
}

TEST(SimWireTest, ALongCutBreaksTheStreams) {
  World world(4);
  world.wire().Cut("b", "a");
  world.a().Send("0");
  world.scheduler().RunFor(Duration::Seconds(9));
  EXPECT_TRUE(world.a().closed().empty());
  // The time counts from the newest cut.
  world.wire().Heal("b", "a");
  world.wire().Cut("b", "a");
  world.scheduler().RunFor(Duration::Seconds(9));
  EXPECT_TRUE(world.a().closed().empty());
  world.scheduler().RunFor(Duration::Seconds(2));
  ASSERT_EQ(world.a().closed().size(), 1u);
  EXPECT_TRUE(absl::IsUnavailable(world.a().closed()[0])) << world.a().closed()[0];
  // And no new one comes to be.
  world.a().Open("b");
  world.scheduler().RunFor(Duration::Seconds(1));
  ASSERT_EQ(world.a().closed().size(), 2u);
  EXPECT_TRUE(absl::IsUnavailable(world.a().closed()[1]));
  world.wire().HealAll();
  world.a().Open("b");
  world.a().Send("1");
  world.scheduler().RunFor(Duration::Seconds(1));
  EXPECT_EQ(world.a().received(), (std::vector<std::string>{"1"}));
}

TEST(SimWireTest, BreaksStreamsAsOftenAsItIsTold) {
  SimWire::Options options;
  options.break_streams = 1;
  World world(5, options);
  world.a().Send("0");
  world.scheduler().RunFor(Ms(50));
  ASSERT_EQ(world.a().closed().size(), 1u);
  EXPECT_TRUE(absl::IsUnavailable(world.a().closed()[0]));
}

TEST(SimWireTest, TheSameSeedIsTheSameHistory) {
  const auto hash = [](uint64_t seed) {
    SimWire::Options options;
    options.slow = 0.01;
    World world(seed, options);
    Random random(seed);
    for (int i = 0; i < 200; ++i) {
      world.a().Send(std::to_string(i));
      if (random.Chance(0.1)) world.wire().CutBothWays("a", "b");
      if (random.Chance(0.2)) world.wire().HealAll();
      world.scheduler().RunFor(Duration::Microseconds(random.Between(0, 1'000)));
    }
    world.wire().HealAll();
    world.scheduler().RunFor(Duration::Seconds(2));
    EXPECT_EQ(world.a().received(), Numbers(200));
    return world.scheduler().trace_hash();
  };
  EXPECT_EQ(hash(7), hash(7));
  EXPECT_NE(hash(7), hash(8));
}

}  // namespace
}  // namespace conclave
