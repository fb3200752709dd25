// To preload: the first fsync and the first pread of a shard take 3 seconds.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string>

namespace {

bool is_shard(int descriptor) {
  char path[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  const ssize_t length = ::readlink(link.c_str(), path, sizeof path - 1);
  if (length <= 0) return false;
  path[length] = '\0';
  return std::strstr(path, "/shard-") != nullptr;
}

void wait_once(std::atomic<bool>& done, int descriptor) {
  if (is_shard(descriptor) && !done.exchange(true)) ::sleep(3);
}

std::atomic<bool> synced = false, read_once = false;

template <class F>
F next(const char* name) {
  return reinterpret_cast<F>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

int fsync(int descriptor) {
  wait_once(synced, descriptor);
  return next<int (*)(int)>("fsync")(descriptor);
}

// As compiled here, with 64 bits for an offset, its name is pread64 too.
ssize_t pread(int descriptor, void* buffer, size_t bytes, off_t offset) {
  wait_once(read_once, descriptor);
  return next<ssize_t (*)(int, void*, size_t, off_t)>("pread64")(descriptor, buffer, bytes, offset);
}
}
