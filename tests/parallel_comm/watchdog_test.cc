#include "parallel/comm/watchdog.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <thread>

#include "parallel/comm/thread_communicator.h"
#include "tests/parallel_comm/allocation_counter.h"

namespace concertina {
namespace {

using namespace std::chrono_literals;

TEST(Watchdog, NamesTheRankAndWhatItWaitsFor) {
  std::promise<std::string> promise;
  auto future = promise.get_future();
  Watchdog watchdog(3, 0.1s, [&](const std::string& report) { promise.set_value(report); });
  watchdog.at("RECV_F", 1, 5, 2);
  ASSERT_EQ(future.wait_for(20s), std::future_status::ready);
  const std::string report = future.get();
  EXPECT_EQ(report.find("rank 3: no progress for 0.1"), 0U) << report;
  EXPECT_NE(report.find("RECV_F, stage 1, microbatch 5, waits for rank 2"), std::string::npos)
      << report;
}

TEST(Watchdog, BeatsKeepItQuiet) {
  std::atomic<int> reports = 0;
  Watchdog watchdog(0, 1s, [&](const std::string&) { ++reports; });
  const auto end = std::chrono::steady_clock::now() + 1500ms;
  while (std::chrono::steady_clock::now() < end) {
    watchdog.beat();
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_EQ(reports, 0);
}

TEST(Watchdog, ReportsOncePerHangAndAgainAfterABeat) {
  std::atomic<int> reports = 0;
  Watchdog watchdog(0, 0.05s, [&](const std::string&) { ++reports; });
  const auto wait_for = [&](int wanted) {
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (reports < wanted && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(5ms);
    std::this_thread::sleep_for(150ms);
    return reports == wanted;
  };
  EXPECT_TRUE(wait_for(1));
  watchdog.beat();
  EXPECT_TRUE(wait_for(2));
}

TEST(Watchdog, NamesThePeerOfALongWait) {
  std::promise<std::string> promise;
  auto future = promise.get_future();
  std::atomic<bool> over = false;
  run_threads(3, [&](Communicator& world) {
    std::byte message{};
    const Bytes bytes(&message, 1);
    if (world.rank() == 2) {
      while (!over) std::this_thread::sleep_for(1ms);
      world.isend(bytes, 1).wait();
    }
    if (world.rank() != 1) return;
    Watchdog watchdog(1, 0.1s, [&](const std::string& report) {
      promise.set_value(report);
      over = true;
    });
    watchdog.at("gather");
    world.irecv(bytes, 2).wait();
  });
  ASSERT_EQ(future.wait_for(20s), std::future_status::ready);
  const std::string report = future.get();
  EXPECT_NE(report.find("gather, waits for rank 2"), std::string::npos) << report;
}

TEST(Watchdog, IsPatientAsLongAsItIsTold) {
  std::atomic<int> reports = 0;
  Watchdog watchdog(0, 0.05s, [&](const std::string&) { ++reports; });
  {
    const Watchdog::Patience patience(&watchdog, "saving");
    std::this_thread::sleep_for(300ms);
    EXPECT_EQ(reports, 0);
  }
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (reports == 0 && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(5ms);
  EXPECT_EQ(reports, 1);
}

TEST(Watchdog, OffHasNoThreadAndEndsAtOnce) {
  const auto start = std::chrono::steady_clock::now();
  {
    Watchdog off(0, 0s, [](const std::string&) { FAIL(); });
    off.at("nothing");
    Watchdog patient(0, 3600s, [](const std::string&) { FAIL(); });
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
}

TEST(Watchdog, BeatingDoesNotAllocate) {
  Watchdog watchdog(0, 3600s, [](const std::string&) {});
  const std::size_t before = test::allocations();
  for (int i = 0; i < 1000; ++i) watchdog.at("F", i, i, i);
  EXPECT_EQ(test::allocations(), before);
}

}  // namespace
}  // namespace concertina
