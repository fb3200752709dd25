// For LD_PRELOAD: makes chosen system calls fail, kill the process, or take longer.
// FAILING_CALL="NAME FIRST LAST WHAT PART": calls FIRST to LAST of NAME (fsync, rename, mkdir,
// unlinkat, write, fallocate, pwrite, pread) on paths containing PART; WHAT is an errno, 0 for
// SIGKILL, or -SECONDS of delay.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

struct Plan {
  char name[16] = "", part[256] = "";
  int first = 0, last = -1, code = 0;
  Plan() {
    const char* text = std::getenv("FAILING_CALL");
    if (text != nullptr) std::sscanf(text, "%15s %d %d %d %255s", name, &first, &last, &code, part);
  }
};

/// Returns whether this call must fail, and sets errno.
bool fails(const char* name, const char* path) {
  static const Plan plan;
  static std::atomic<int> calls = 0;
  if (std::strcmp(name, plan.name) != 0 || std::strstr(path, plan.part) == nullptr) return false;
  const int call = ++calls;
  if (call < plan.first || call > plan.last) return false;
  if (plan.code == 0) ::kill(::getpid(), SIGKILL);
  if (plan.code < 0) return ::sleep(static_cast<unsigned>(-plan.code)) != 0;
  errno = plan.code;
  return true;
}

bool fails(const char* name, int descriptor) {
  char link[64], path[4096];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ssize_t length = ::readlink(link, path, sizeof path - 1);
  if (length < 0) return false;
  path[length] = 0;
  return fails(name, path);
}

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

int fsync(int descriptor) {
  static const auto real = next<int (*)(int)>("fsync");
  return fails("fsync", descriptor) ? -1 : real(descriptor);
}

ssize_t write(int descriptor, const void* data, std::size_t bytes) {
  static const auto real = next<ssize_t (*)(int, const void*, std::size_t)>("write");
  return fails("write", descriptor) ? -1 : real(descriptor, data, bytes);
}

// Uses the names for files of more than 2 GiB.
static_assert(sizeof(off_t) == 8);
int fallocate(int descriptor, int mode, off_t offset, off_t bytes) {
  static const auto real = next<int (*)(int, int, off_t, off_t)>("fallocate64");
  return fails("fallocate", descriptor) ? -1 : real(descriptor, mode, offset, bytes);
}

ssize_t pwrite(int descriptor, const void* data, std::size_t bytes, off_t offset) {
  static const auto real = next<ssize_t (*)(int, const void*, std::size_t, off_t)>("pwrite64");
  return fails("pwrite", descriptor) ? -1 : real(descriptor, data, bytes, offset);
}

ssize_t pread(int descriptor, void* data, std::size_t bytes, off_t offset) {
  static const auto real = next<ssize_t (*)(int, void*, std::size_t, off_t)>("pread64");
  return fails("pread", descriptor) ? -1 : real(descriptor, data, bytes, offset);
}

int rename(const char* from, const char* to) noexcept {
  static const auto real = next<int (*)(const char*, const char*)>("rename");
  return fails("rename", to) ? -1 : real(from, to);
}

int mkdir(const char* path, mode_t mode) noexcept {
  static const auto real = next<int (*)(const char*, mode_t)>("mkdir");
  return fails("mkdir", path) ? -1 : real(path, mode);
}

int unlinkat(int directory, const char* name, int flags) noexcept {
  static const auto real = next<int (*)(int, const char*, int)>("unlinkat");
  // For a name relative to an open directory, that directory's path counts.
  const bool failed = *name == '/' || directory == AT_FDCWD ? fails("unlinkat", name)
                                                            : fails("unlinkat", directory);
  return failed ? -1 : real(directory, name, flags);
}
}
