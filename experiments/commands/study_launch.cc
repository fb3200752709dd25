#include "experiments/commands/study_launch.h"

#include <csignal>
#include <ctime>
#include <filesystem>

namespace concertina {
namespace {

sigset_t child_signal() {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  return child;
}

}  // namespace

void hold_study_signals() {
  hold_stop_signals();
  const sigset_t child = child_signal();
  sigprocmask(SIG_BLOCK, &child, nullptr);
}

void wait_for_trials() {
  const sigset_t child = child_signal();
  const timespec soon{.tv_sec = 0, .tv_nsec = 100'000'000};
  sigtimedwait(&child, nullptr, &soon);
}

std::string own_program() {
  return std::filesystem::read_symlink("/proc/self/exe").string();
}

}  // namespace concertina
