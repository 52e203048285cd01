// nats_load: messages into NATS JetStream streams, each acknowledged by its stream; prints one JSON
// object. Counts what the streams hold at the end.
#include <glog/logging.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstring>
#include <iostream>
#include <memory>
#include <thread>

#include "tests/bench/peers/load.h"
#include "tests/bench/peers/nats.h"

namespace {

using conclave::bench::Load;
using conclave::bench::LoadOptions;
using conclave::bench::NatsConnection;
using nlohmann::json;

struct Arguments {
  std::string server;
  int replicas = 1;
  int streams = 1;
  bool end_to_end = false;
  LoadOptions load;
};

constexpr char kAcks[] = "bench.ack.";
constexpr char kDelivered[] = "bench.delivered";
constexpr auto kReadyTimeout = std::chrono::seconds(60);

std::string StreamName(int stream) { return "BENCH" + std::to_string(stream); }
std::string Subject(int stream) { return "bench.in." + std::to_string(stream); }

// Asks until the answer suits, as servers of a cluster need a while to find each other. Each
// question waits for its answer; nothing is measured meanwhile.
template <class Suits>
json AskUntil(NatsConnection& nats, const std::string& subject, const json& request, Suits suits) {
  const auto deadline = std::chrono::steady_clock::now() + kReadyTimeout;
  for (;;) {
    const auto answer = nats.Request(subject, request);
    if (answer && suits(*answer)) return *answer;
    CHECK(std::chrono::steady_clock::now() < deadline)
        << "the server does not do " << subject << "; it last said "
        << (answer ? answer->dump() : "nothing");
  }
}

void MakeStream(NatsConnection& nats, int stream, int replicas) {
  const json made = {{"name", StreamName(stream)},
                     {"subjects", {Subject(stream)}},
                     {"retention", "limits"},
                     {"storage", "file"},
                     {"discard", "old"},
                     {"num_replicas", replicas},
                     {"max_msgs", -1},
                     {"max_bytes", -1},
                     {"max_consumers", -1},
                     {"max_age", 0}};
  AskUntil(nats, "$JS.API.STREAM.CREATE." + StreamName(stream), made,
           [](const json& answer) { return !answer.contains("error"); });
  // Every replica there and caught up, as Conclave's are before it is measured.
  AskUntil(nats, "$JS.API.STREAM.INFO." + StreamName(stream), nullptr, [&](const json& answer) {
    if (answer.contains("error")) return false;
    if (replicas == 1) return true;
    if (!answer.contains("cluster") || answer["cluster"].value("leader", "").empty()) return false;
    const json others = answer["cluster"].value("replicas", json::array());
    int current = 0;
    for (const json& other : others) current += other.value("current", false) ? 1 : 0;
    return current == replicas - 1;
  });
}

// Numbers are the messages' first eight bytes.
uint64_t NumberIn(std::string_view body) {
  uint64_t number;
  CHECK_GE(body.size(), sizeof number);
  std::memcpy(&number, body.data(), sizeof number);
  return number;
}

void SubscribeToAll(NatsConnection& nats, int streams) {
  nats.Subscribe(kDelivered);
  for (int i = 0; i < streams; ++i) {
    const json consumer = {{"stream_name", StreamName(i)},
                           {"config",
                            {{"deliver_subject", kDelivered},
                             {"deliver_policy", "all"},
                             {"ack_policy", "none"},
                             {"replay_policy", "instant"}}}};
    AskUntil(nats, "$JS.API.CONSUMER.CREATE." + StreamName(i), consumer,
             [](const json& answer) { return !answer.contains("error"); });
  }
}

int Run(const Arguments& arguments) {
  CHECK_GE(arguments.load.size, sizeof(uint64_t)) << "a message holds its number";
  NatsConnection nats(arguments.server);
  for (int i = 0; i < arguments.streams; ++i) MakeStream(nats, i, arguments.replicas);

  Load load(arguments.load);
  // Their acknowledgements come on a connection's only inbox.
  nats.Subscribe(std::string(kAcks) + ">");
  std::thread acknowledgements([&] {
    for (uint64_t left = load.total(); left > 0; --left) {
      const NatsConnection::Message message = nats.Next();
      CHECK(message.body.find("\"error\"") == std::string_view::npos)
          << "a message was refused: " << message.body;
      load.Acknowledged(std::stoull(std::string(message.subject.substr(sizeof kAcks - 1))));
    }
  });
  std::unique_ptr<NatsConnection> reader;
  std::thread consumer;
  if (arguments.end_to_end) {
    reader = std::make_unique<NatsConnection>(arguments.server);
    SubscribeToAll(*reader, arguments.streams);
    consumer = std::thread([&] {
      for (uint64_t left = load.total(); left > 0; --left) {
        load.Consumed(NumberIn(reader->Next().body));
      }
    });
  }
  std::vector<std::string> subjects;
  for (int i = 0; i < arguments.streams; ++i) subjects.push_back(Subject(i));
  std::string body(arguments.load.size, 'n');
  std::string out;
  load.Run([&](uint64_t first, uint64_t count) {
    out.clear();
    for (uint64_t number = first; number < first + count; ++number) {
      std::memcpy(body.data(), &number, sizeof number);
      NatsConnection::AppendPublish(subjects[number % subjects.size()],
                                    kAcks + std::to_string(number), body, out);
    }
    nats.Write(out);
  });
  acknowledgements.join();
  if (consumer.joinable()) consumer.join();

  uint64_t stored = 0;
  for (int i = 0; i < arguments.streams; ++i) {
    const json info = AskUntil(nats, "$JS.API.STREAM.INFO." + StreamName(i), nullptr,
                               [](const json& answer) { return answer.contains("state"); });
    stored += info["state"]["messages"].get<uint64_t>();
  }
  CHECK_EQ(stored, load.total()) << "the streams hold another number than was acknowledged";
  nlohmann::ordered_json outcome = load.Outcome();
  outcome["replicas"] = arguments.replicas;
  outcome["streams"] = arguments.streams;
  outcome["counted"] = stored;
  std::cout << outcome << std::endl;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  FLAGS_logtostderr = true;
  google::InitGoogleLogging(argv[0]);
  CLI::App app("Load for NATS JetStream, in its own protocol");
  Arguments arguments;
  app.add_option("--server", arguments.server, "host:port of one server")->required();
  app.add_option("--replicas", arguments.replicas, "Of each stream");
  app.add_option("--streams", arguments.streams, "Filled in turn");
  AddLoadOptions(app, arguments.load);
  app.add_flag("--end-to-end", arguments.end_to_end, "Consume at the same time");
  CLI11_PARSE(app, argc, argv);
  return Run(arguments);
}
