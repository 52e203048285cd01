#ifndef CONCLAVE_COMMON_PROCESS_FILE_DESCRIPTOR_H_
#define CONCLAVE_COMMON_PROCESS_FILE_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace conclave {

// Closes what it holds; -1 is none.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }
  // The caller closes it.
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

}  // namespace conclave

#endif  // CONCLAVE_COMMON_PROCESS_FILE_DESCRIPTOR_H_
