// Preloaded into a process, writes down what it has made durable, so that a tool can take the rest
// away again after the process was killed: a loss of power, for real processes
// (tests/powerloss/power_loss.py).
//
//   CONCLAVE_SYNC_JOURNAL  a file, in a directory on the same disk as the data; lines are added
//
// Lines, of inodes:
//   F <inode> <size>            a file was synced; its first <size> bytes are durable
//   T <inode> <size>            it is being cut to <size>
//   D <inode> <name>/<inode>... a directory was synced; it has these entries
//   R <inode>                   a directory is being removed
//
// What is unlinked or replaced gets another name beside the journal first, by its inode: its
// removal may not be durable, and no inode is given out twice.
//
// Covers what is written by appending; a file that is overwritten in place, or through a mapping,
// is taken to have had its last contents all along.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

template <class Function>
Function Next(const char* name) {
  void* const symbol = dlsym(RTLD_NEXT, name);
  if (symbol == nullptr) {
    std::fprintf(stderr, "sync_journal: libc has no %s\n", name);
    std::abort();
  }
  return reinterpret_cast<Function>(symbol);
}

const char* JournalPath() { return std::getenv("CONCLAVE_SYNC_JOURNAL"); }

int Journal() {
  static const int fd = [] {
    const char* const path = JournalPath();
    return path == nullptr ? -1 : open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  }();
  return fd;
}

// In one write, which lines of other threads do not come between. A journal that cannot be written
// would make every test of it worthless.
void WriteLine(std::string line) {
  if (Journal() < 0) return;
  line += '\n';
  if (write(Journal(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    std::perror("sync_journal: the journal cannot be written");
    std::abort();
  }
}

std::string Number(uint64_t value) { return std::to_string(value); }

std::string Entries(int directory) {
  std::string entries;
  // Its own position, whatever the descriptor's is.
  const int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const stream = fd < 0 ? nullptr : fdopendir(fd);
  if (stream == nullptr) {
    std::perror("sync_journal: a directory cannot be listed");
    std::abort();
  }
  while (const dirent* entry = readdir(stream)) {
    if (std::strcmp(entry->d_name, ".") == 0 || std::strcmp(entry->d_name, "..") == 0) continue;
    entries += std::string(" ") + entry->d_name + "/" + Number(entry->d_ino);
  }
  closedir(stream);
  return entries;
}

// What is durable once the sync has returned is what was there before it began.
std::string WhatASyncCovers(int fd) {
  struct stat found;
  if (fstat(fd, &found) != 0) return "";
  if (S_ISDIR(found.st_mode)) return "D " + Number(found.st_ino) + Entries(fd);
  if (!S_ISREG(found.st_mode)) return "";
  return "F " + Number(found.st_ino) + " " + Number(static_cast<uint64_t>(found.st_size));
}

int Synced(int fd, int (*sync)(int)) {
  const std::string covered = WhatASyncCovers(fd);
  const int result = sync(fd);
  const int error = errno;
  if (result == 0 && !covered.empty()) WriteLine(covered);
  errno = error;
  return result;
}

void NoteCut(ino_t inode, off_t size) {
  WriteLine("T " + Number(inode) + " " + Number(static_cast<uint64_t>(size)));
}

void KeepInode(int directory, const char* path) {
  const char* const journal = JournalPath();
  struct stat found;
  if (journal == nullptr || fstatat(directory, path, &found, AT_SYMLINK_NOFOLLOW) != 0) return;
  if (!S_ISREG(found.st_mode)) return;
  const std::string kept = std::string(journal) + ".kept." + Number(found.st_ino);
  if (linkat(directory, path, AT_FDCWD, kept.c_str(), 0) == 0 || errno == EEXIST) return;
  // Of another disk: not what is looked at.
  if (errno == EXDEV) return;
  std::perror("sync_journal: a file cannot be kept");
  std::abort();
}

void NoteRemoval(int directory, const char* path) {
  struct stat found;
  if (fstatat(directory, path, &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(found.st_mode)) {
    WriteLine("R " + Number(found.st_ino));
  }
}

}  // namespace

extern "C" {

int fsync(int fd) {
  static const auto next = Next<int (*)(int)>("fsync");
  return Synced(fd, next);
}

int fdatasync(int fd) {
  static const auto next = Next<int (*)(int)>("fdatasync");
  return Synced(fd, next);
}

int ftruncate(int fd, off_t size) noexcept {
  static const auto next = Next<int (*)(int, off_t)>("ftruncate");
  struct stat found;
  if (fstat(fd, &found) == 0 && S_ISREG(found.st_mode)) NoteCut(found.st_ino, size);
  return next(fd, size);
}

int ftruncate64(int fd, off64_t size) noexcept { return ftruncate(fd, size); }

int truncate(const char* path, off_t size) noexcept {
  static const auto next = Next<int (*)(const char*, off_t)>("truncate");
  struct stat found;
  if (stat(path, &found) == 0 && S_ISREG(found.st_mode)) NoteCut(found.st_ino, size);
  return next(path, size);
}

int unlink(const char* path) noexcept {
  static const auto next = Next<int (*)(const char*)>("unlink");
  KeepInode(AT_FDCWD, path);
  return next(path);
}

int unlinkat(int directory, const char* path, int flags) noexcept {
  static const auto next = Next<int (*)(int, const char*, int)>("unlinkat");
  if ((flags & AT_REMOVEDIR) != 0) {
    NoteRemoval(directory, path);
  } else {
    KeepInode(directory, path);
  }
  return next(directory, path, flags);
}

int remove(const char* path) noexcept {
  static const auto next = Next<int (*)(const char*)>("remove");
  KeepInode(AT_FDCWD, path);
  NoteRemoval(AT_FDCWD, path);
  return next(path);
}

int rmdir(const char* path) noexcept {
  static const auto next = Next<int (*)(const char*)>("rmdir");
  NoteRemoval(AT_FDCWD, path);
  return next(path);
}

int rename(const char* from, const char* to) noexcept {
  static const auto next = Next<int (*)(const char*, const char*)>("rename");
  KeepInode(AT_FDCWD, to);
  return next(from, to);
}

int renameat(int from_directory, const char* from, int to_directory, const char* to) noexcept {
  static const auto next = Next<int (*)(int, const char*, int, const char*)>("renameat");
  KeepInode(to_directory, to);
  return next(from_directory, from, to_directory, to);
}

}  // extern "C"
