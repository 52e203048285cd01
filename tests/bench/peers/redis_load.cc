// redis_load: entries into a Redis stream by pipelined XADD; prints one JSON object. Counts what
// the stream holds at the end.
#include <glog/logging.h>

#include <CLI/CLI.hpp>
#include <cstring>
#include <iostream>
#include <string>
#include <thread>

#include "tests/bench/peers/load.h"
#include "tests/bench/peers/socket.h"

namespace {

using conclave::bench::Load;
using conclave::bench::LoadOptions;
using conclave::bench::Socket;

struct Arguments {
  std::string server;
  LoadOptions load;
};

void AppendWord(std::string_view word, std::string& out) {
  out.append("$").append(std::to_string(word.size())).append("\r\n").append(word).append("\r\n");
}

// XADD answers with the entry's id.
void TakeId(Socket& redis) {
  const std::string_view line = redis.ReadLine();
  CHECK(!line.empty() && line[0] == '$') << "an entry was refused: " << line;
  redis.ReadCounted(std::stoul(std::string(line.substr(1))));
}

int Run(const Arguments& arguments) {
  Socket redis(arguments.server);
  Load load(arguments.load);
  // Answers come in the order of requests.
  std::thread acknowledgements([&] {
    for (uint64_t number = 0; number < load.total(); ++number) {
      TakeId(redis);
      load.Acknowledged(number);
    }
  });
  std::string body(arguments.load.size, 'r');
  std::string out;
  load.Run([&](uint64_t, uint64_t count) {
    out.clear();
    for (uint64_t i = 0; i < count; ++i) {
      out.append("*5\r\n");
      for (const std::string_view word : {"XADD", "bench", "*", "v"}) AppendWord(word, out);
      AppendWord(body, out);
    }
    redis.Write(out);
  });
  acknowledgements.join();
  redis.Write("*2\r\n$4\r\nXLEN\r\n$5\r\nbench\r\n");
  const std::string stored(redis.ReadLine());
  CHECK_EQ(stored, ":" + std::to_string(load.total()))
      << "the stream holds another number than was acknowledged";
  nlohmann::ordered_json outcome = load.Outcome();
  outcome["counted"] = load.total();
  std::cout << outcome << std::endl;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  FLAGS_logtostderr = true;
  google::InitGoogleLogging(argv[0]);
  CLI::App app("Load for a Redis stream, in its own protocol");
  Arguments arguments;
  app.add_option("--server", arguments.server, "host:port, of a server without the key 'bench'")
      ->required();
  AddLoadOptions(app, arguments.load);
  CLI11_PARSE(app, argc, argv);
  return Run(arguments);
}
