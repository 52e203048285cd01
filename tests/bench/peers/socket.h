#ifndef CONCLAVE_TESTS_BENCH_PEERS_SOCKET_H_
#define CONCLAVE_TESTS_BENCH_PEERS_SOCKET_H_

#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>

namespace conclave::bench {

// A TCP connection to a server of text protocols: lines that end in CR LF, and counted bytes. Ends
// the process where the connection breaks: half a run is no figure. One thread reads; any write.
class Socket {
 public:
  // host:port; a numeric address.
  explicit Socket(const std::string& address);
  // Takes over a connected descriptor.
  explicit Socket(int fd);
  ~Socket();
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  // All of it, and nobody else's bytes between.
  void Write(std::string_view bytes);
  // Whether anything can be read, or can be within this time.
  bool Readable(std::chrono::milliseconds within);
  // The next line, without its end; valid until the next read.
  std::string_view ReadLine();
  // The next so many bytes, and the CR LF behind them, which is left out; valid as above.
  std::string_view ReadCounted(size_t bytes);

 private:
  // At least so many bytes are there from at_ on.
  void Fill(size_t bytes);

  int fd_;
  std::mutex write_mutex_;
  std::string buffer_;
  // What is read and not taken: [at_, end_).
  size_t at_ = 0;
  size_t end_ = 0;
};

}  // namespace conclave::bench

#endif  // CONCLAVE_TESTS_BENCH_PEERS_SOCKET_H_
