// Stop signals are blocked in every thread, without a handler, until they are queried.
#include "experiments/machine/signals.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/types.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <thread>

namespace concertina {
namespace {

bool blocked(int signal) {
  sigset_t now;
  pthread_sigmask(SIG_SETMASK, nullptr, &now);
  return sigismember(&now, signal) == 1;
}

TEST(StopSignals, WaitUntilAskedForAndTheFirstOneStays) {
  hold_stop_signals();
  EXPECT_EQ(stop_signal(), 0);
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) {
    EXPECT_TRUE(blocked(signal));
    std::thread([&] { EXPECT_TRUE(blocked(signal)); }).join();
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    EXPECT_EQ(action.sa_handler, SIG_DFL);
  }
  kill(getpid(), SIGUSR1);
  EXPECT_EQ(stop_signal(), SIGUSR1);
  kill(getpid(), SIGTERM);
  EXPECT_EQ(stop_signal(), SIGUSR1);
}

TEST(StopSignals, SigtermEndsAProcessThatReleasedIt) {
  EXPECT_EXIT(
      {
        hold_stop_signals();
        kill(getpid(), SIGTERM);
        release_sigterm();
        std::exit(0);
      },
      testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace concertina
