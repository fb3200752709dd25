#include "experiments/machine/signals.h"

#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <ctime>

namespace concertina {
namespace {

int received = 0;

constexpr int kStopSignals[] = {SIGTERM, SIGINT, SIGUSR1, SIGHUP, SIGXCPU};

/// Excludes signals that the parent process has set to be ignored, as `nohup` does with SIGHUP.
sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kStopSignals) {
    struct sigaction now {};
    if (sigaction(signal, nullptr, &now) != 0 || now.sa_handler != SIG_IGN) sigaddset(&set, signal);
  }
  return set;
}

}  // namespace

void hold_stop_signals() {
  const sigset_t set = stop_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

void release_sigterm() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

bool sigterm_waits() {
  sigset_t set;
  return sigpending(&set) == 0 && sigismember(&set, SIGTERM) == 1;
}

bool stop_waits() {
  sigset_t set;
  if (sigpending(&set) != 0) return false;
  const sigset_t wanted = stop_signals();
  return std::ranges::any_of(kStopSignals, [&](int signal) {
    return sigismember(&wanted, signal) == 1 && sigismember(&set, signal) == 1;
  });
}

std::string signal_text(int signal) {
  const char* const name = ::sigabbrev_np(signal);
  return std::string("SIG") + (name == nullptr ? "?" : name);
}

int stop_signal() {
  const sigset_t set = stop_signals();
  const timespec now{};
  if (received == 0)
    if (const int signal = sigtimedwait(&set, nullptr, &now); signal > 0) received = signal;
  return received;
}

}  // namespace concertina
