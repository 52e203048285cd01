#include "common/process/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/process/open_files.h"

namespace conclave {
namespace {

// Runs `in_child` in a process of its own; its exit code.
template <class Task>
int InChild(Task in_child) {
  const pid_t pid = fork();
  if (pid == 0) _exit(in_child());
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(ProcessTest, MissingStandardStreamsAreDevNull) {
  EXPECT_EQ(InChild([] {
              for (const int fd : {0, 1, 2}) close(fd);
              OpenStandardStreams();
              struct stat null, info;
              if (stat("/dev/null", &null) != 0) return 1;
              for (const int fd : {0, 1, 2}) {
                if (fstat(fd, &info) != 0 || info.st_rdev != null.st_rdev) return 2;
              }
              return open("/dev/null", O_RDONLY) > 2 ? 0 : 3;
            }),
            0);
}

TEST(ProcessTest, StandardStreamsThatAreThereStay) {
  EXPECT_EQ(InChild([] {
              int ends[2];
              if (pipe(ends) != 0 || dup2(ends[1], 1) != 1) return 1;
              close(0);
              OpenStandardStreams();
              char byte = 0;
              return write(1, "x", 1) == 1 && read(ends[0], &byte, 1) == 1 && byte == 'x' ? 0 : 2;
            }),
            0);
}

TEST(ProcessTest, TheLimitOfOpenFilesIsRaised) {
  EXPECT_EQ(InChild([] {
              rlimit limit;
              if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1;
              limit.rlim_cur = 64;
              if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return 2;
              RaiseOpenFilesLimit();
              if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 3;
              return limit.rlim_cur == limit.rlim_max ? 0 : 4;
            }),
            0);
}

TEST(ProcessTest, TellsHowManyDescriptorsAreLeft) {
  EXPECT_EQ(InChild([] {
              rlimit limit;
              if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1;
              limit.rlim_cur = 128;
              if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return 2;
              if (DescriptorsBesideLogs() != 16 + 32) return 3;
              if (!CheckOpenFilesLimit().ok()) return 6;
              limit.rlim_cur = 64;
              if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return 7;
              if (CheckOpenFilesLimit().ok()) return 8;
              limit.rlim_cur = 128;
              if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return 9;
              // 0 to 127 are the numbers there are.
              if (!LeavesDescriptors(111, 16) || LeavesDescriptors(112, 16)) return 4;
              limit.rlim_cur = limit.rlim_max;
              if (limit.rlim_max >= 4096 && setrlimit(RLIMIT_NOFILE, &limit) == 0 &&
                  DescriptorsBesideLogs() != 16 + 1024) {
                return 5;
              }
              return 0;
            }),
            0);
}

}  // namespace
}  // namespace conclave
