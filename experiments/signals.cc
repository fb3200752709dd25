#include "experiments/signals.h"

#include <csignal>
#include <initializer_list>

namespace concertina {
namespace {

volatile std::sig_atomic_t received = 0;

extern "C" void remember(int signal) {
  received = signal;
}

}  // namespace

void catch_stop_signals() {
  struct sigaction action {};
  action.sa_handler = remember;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGTERM, SIGUSR1}) sigaction(signal, &action, nullptr);
}

int stop_signal() {
  return received;
}

}  // namespace concertina
