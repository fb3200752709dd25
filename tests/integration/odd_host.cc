// To preload: makes a host unusual as $ODD_HOST says. clock: 3.5 s ahead; lock: locks have no
// effect; disk: a sync takes 150 ms; link: short messages are sent 0.2 ms late.
#include <dlfcn.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace {

bool is(const char* what) {
  static const char* const odd = std::getenv("ODD_HOST");
  return odd != nullptr && std::strcmp(odd, what) == 0;
}

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  static const auto real = next<int (*)(clockid_t, timespec*)>("clock_gettime");
  const int result = real(clock, time);
  if (clock == CLOCK_REALTIME && is("clock")) time->tv_sec += 4, time->tv_nsec /= 2;
  return result;
}

int flock(int descriptor, int operation) noexcept {
  static const auto real = next<int (*)(int, int)>("flock");
  return is("lock") ? 0 : real(descriptor, operation);
}

int fsync(int descriptor) {
  static const auto real = next<int (*)(int)>("fsync");
  if (is("disk")) ::usleep(150'000);
  return real(descriptor);
}

ssize_t writev(int descriptor, const iovec* pieces, int count) {
  static const auto real = next<ssize_t (*)(int, const iovec*, int)>("writev");
  std::size_t bytes = 0;
  for (int i = 0; i < count; ++i) bytes += pieces[i].iov_len;
  if (bytes < 1024 && is("link")) ::usleep(200);
  return real(descriptor, pieces, count);
}
}
