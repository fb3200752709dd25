#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/log.h"
#include "parallel/comm/communicator.h"
#include "parallel/comm/work_pool.h"
#include "tests/errors.h"

namespace concertina {
namespace {

struct FakeState final : Work::State {
  bool test() override {
    if (fails) throw std::runtime_error("peer died");
    return done || (done_at && std::chrono::steady_clock::now() >= *done_at);
  }
  void recycle() override { ++recycled; }
  int waits_for() const override { return -1; }

  bool done = false, fails = false;
  std::optional<std::chrono::steady_clock::time_point> done_at;
  int recycled = 0;
};

/// Captures everything that is logged during its lifetime.
class LogCapture {
 public:
  LogCapture() : before_(spdlog::default_logger()) {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "capture", std::make_shared<spdlog::sinks::ostream_sink_mt>(stream_)));
  }
  ~LogCapture() { spdlog::set_default_logger(before_); }
  std::string text() const { return stream_.str(); }

 private:
  std::ostringstream stream_;
  std::shared_ptr<spdlog::logger> before_;
};

TEST(Work, IsRecycledOnceWhenDone) {
  const LogCapture log;
  FakeState state;
  {
    Work work(&state);
    EXPECT_FALSE(work.test());
    state.done = true;
    EXPECT_TRUE(work.test());
    EXPECT_TRUE(work.test());
    work.wait();
  }
  EXPECT_EQ(state.recycled, 1);
  EXPECT_EQ(log.text(), "");
}

TEST(Work, DestroyedUnfinishedIsLogged) {
  const LogCapture log;
  FakeState dropped, replaced, kept;
  kept.done = true;
  { const Work work(&dropped); }
  Work work(&replaced);
  work = Work(&kept);
  work.wait();
  EXPECT_EQ(dropped.recycled, 1);
  EXPECT_EQ(replaced.recycled, 1);
  EXPECT_EQ(kept.recycled, 1);
  const std::string text = log.text();
  expect_has(text, "destroyed before it was done");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
}

TEST(Work, UnwindingIsSilent) {
  const LogCapture log;
  FakeState state;
  try {
    const Work work(&state);
    throw std::runtime_error("unwinds");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(state.recycled, 1);
  EXPECT_EQ(log.text(), "");
}

TEST(Work, AFailureEndsIt) {
  FakeState state;
  state.fails = true;
  Work work(&state);
  EXPECT_THROW(work.wait(), std::runtime_error);
  EXPECT_FALSE(work.pending());
  EXPECT_EQ(state.recycled, 1);
}

// Ranks may outnumber cores: a long wait must leave the core to others.
TEST(Work, WaitingDoesNotBurnTheCore) {
  const auto cpu_seconds = [] {
    rusage usage{};
    ::getrusage(RUSAGE_THREAD, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  };
  FakeState state;
  state.done_at = std::chrono::steady_clock::now() + std::chrono::milliseconds(400);
  Work work(&state);
  const double before = cpu_seconds();
  work.wait();
  EXPECT_LT(cpu_seconds() - before, 0.1);
}

TEST(WorkPool, UsesStatesAgain) {
  WorkPool<FakeState> pool;
  int made = 0;
  const auto make = [&] {
    ++made;
    return std::make_unique<FakeState>();
  };
  for (int round = 0; round < 3; ++round) {
    std::vector<FakeState*> states;
    for (int i = 0; i < 5; ++i) states.push_back(&pool.take(make));
    EXPECT_EQ(pool.in_use(), 5U);
    for (FakeState* state : states) pool.give(*state);
    EXPECT_EQ(pool.in_use(), 0U);
  }
  EXPECT_EQ(made, 5);
}

}  // namespace
}  // namespace concertina
