#include "parallel/comm/thread_stack.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <boost/stacktrace.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <mutex>
#include <thread>

namespace concertina {
namespace {

constexpr std::size_t kMostFrames = 64;
constexpr std::size_t kHandlerFrames = 1;  // the handler itself; the kernel's frame follows
using Frame = boost::stacktrace::frame::native_frame_ptr_t;

Frame frames[kMostFrames];
std::atomic<bool> dumped = false;

void dump_stack(int) {
  const int error = errno;
  boost::stacktrace::safe_dump_to(kHandlerFrames, static_cast<void*>(frames), sizeof(frames));
  dumped.store(true, std::memory_order_release);
  errno = error;
}

/// Returns "name at file:line" or the known part of it, shortened: lambdas have long names.
std::string text_of(const boost::stacktrace::frame& frame) {
  constexpr std::size_t kLongest = 100;
  std::string text = boost::stacktrace::to_string(frame);
  if (text.size() > kLongest) text.replace(kLongest, std::string::npos, "...");
  return text;
}

}  // namespace

void prepare_stacks() {
  struct sigaction action {};
  action.sa_handler = dump_stack;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGURG, &action, nullptr);
  // The unwinder may initialize itself on first use, which a signal handler must not do.
  boost::stacktrace::safe_dump_to(static_cast<void*>(frames), sizeof(frames));
}

std::vector<std::string> stack_of(pid_t thread) {
  using namespace std::chrono_literals;
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  dumped = false;
  if (::syscall(SYS_tgkill, ::getpid(), thread, SIGURG) != 0) return {};
  for (int i = 0; i < 100 && !dumped.load(std::memory_order_acquire); ++i)
    std::this_thread::sleep_for(10ms);
  if (!dumped.load(std::memory_order_acquire)) return {};
  std::vector<std::string> calls;
  for (const auto& frame :
       boost::stacktrace::stacktrace::from_dump(static_cast<const void*>(frames), sizeof(frames)))
    calls.push_back(text_of(frame));
  return calls;
}

}  // namespace concertina
