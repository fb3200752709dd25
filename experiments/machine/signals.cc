#include "experiments/machine/signals.h"

#include <pthread.h>

#include <csignal>
#include <ctime>

namespace concertina {
namespace {

int received = 0;

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGUSR1);
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
  return sigismember(&set, SIGTERM) == 1 || sigismember(&set, SIGINT) == 1 ||
         sigismember(&set, SIGUSR1) == 1;
}

int stop_signal() {
  const sigset_t set = stop_signals();
  const timespec now{};
  if (received == 0)
    if (const int signal = sigtimedwait(&set, nullptr, &now); signal > 0) received = signal;
  return received;
}

}  // namespace concertina
