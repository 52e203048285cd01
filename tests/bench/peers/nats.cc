#include "tests/bench/peers/nats.h"

#include <glog/logging.h>

#include <chrono>
#include <sstream>
#include <vector>

namespace conclave::bench {
namespace {

constexpr char kReplies[] = "bench.reply.";
constexpr auto kAnswerTimeout = std::chrono::seconds(1);

// The words of a control line: never more than five.
std::vector<std::string> Words(std::string_view line) {
  std::istringstream in{std::string(line)};
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

bool StartsWith(std::string_view text, std::string_view with) {
  return text.substr(0, with.size()) == with;
}

}  // namespace

NatsConnection::NatsConnection(const std::string& server) : socket_(server) {
  const std::string_view info = socket_.ReadLine();
  CHECK(StartsWith(info, "INFO ")) << server << " is no NATS server: it said " << info;
  socket_.Write(
      "CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":true,\"no_responders\":true}\r\n");
  Subscribe(std::string(kReplies) + ">");
}

void NatsConnection::Subscribe(std::string_view subject) {
  socket_.Write("SUB " + std::string(subject) + " " + std::to_string(++subscriptions_) + "\r\n");
}

void NatsConnection::AppendPublish(std::string_view subject, std::string_view reply,
                                   std::string_view body, std::string& out) {
  out.append("PUB ").append(subject).append(" ");
  if (!reply.empty()) out.append(reply).append(" ");
  out.append(std::to_string(body.size())).append("\r\n").append(body).append("\r\n");
}

NatsConnection::Message NatsConnection::Next() {
  for (;;) {
    const Message message = Take();
    if (!StartsWith(message.subject, kReplies)) return message;
  }
}

NatsConnection::Message NatsConnection::Take() {
  for (;;) {
    const std::string_view line = socket_.ReadLine();
    if (line == "PING") {
      socket_.Write("PONG\r\n");
      continue;
    }
    CHECK(!StartsWith(line, "-ERR")) << "the NATS server said " << line;
    const bool headers = StartsWith(line, "HMSG ");
    if (!headers && !StartsWith(line, "MSG ")) continue;
    // MSG subject sid [reply] bytes; HMSG subject sid [reply] header-bytes bytes.
    const std::vector<std::string> words = Words(line);
    subject_ = words[1];
    const size_t bytes = std::stoul(words.back());
    const size_t header_bytes = headers ? std::stoul(words[words.size() - 2]) : 0;
    std::string_view body = socket_.ReadCounted(bytes);
    if (headers && StartsWith(body, "NATS/1.0 503")) {
      static constexpr std::string_view kNobody = R"({"error":{"code":503}})";
      return {subject_, kNobody};
    }
    body.remove_prefix(header_bytes);
    return {subject_, body};
  }
}

std::optional<nlohmann::json> NatsConnection::Request(std::string_view subject,
                                                      const nlohmann::json& request) {
  const std::string reply = std::string(kReplies) + std::to_string(++requests_);
  std::string out;
  AppendPublish(subject, reply, request.is_null() ? "" : request.dump(), out);
  Write(out);
  while (socket_.Readable(kAnswerTimeout)) {
    const Message message = Take();
    if (message.subject == reply) return nlohmann::json::parse(message.body);
  }
  return std::nullopt;
}

}  // namespace conclave::bench
