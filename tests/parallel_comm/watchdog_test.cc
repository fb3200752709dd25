#include "parallel/comm/watchdog.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/index.h"
#include "tests/errors.h"
#include "tests/parallel_comm/allocation_counter.h"
#include "tests/threads/thread_communicator.h"

namespace concertina {
namespace {

using namespace std::chrono_literals;

/// Returns whether `holds` becomes true within 20 s.
bool comes(const std::function<bool()>& holds) {
  for (const auto end = std::chrono::steady_clock::now() + 20s;
       std::chrono::steady_clock::now() < end; std::this_thread::sleep_for(5ms))
    if (holds()) return true;
  return false;
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
  for (const int wanted : {1, 2}) {
    EXPECT_TRUE(comes([&] { return reports >= wanted; }));
    std::this_thread::sleep_for(150ms);
    EXPECT_EQ(reports, wanted);
    watchdog.beat();
  }
}

TEST(Watchdog, NamesTheRankAndThePeerOfALongWait) {
  std::string report;
  std::atomic<bool> over = false;
  run_threads(3, [&](Communicator& world) {
    std::byte message{};
    const Bytes bytes(&message, 1);
    if (world.rank() == 2) {
      EXPECT_TRUE(comes([&] { return over.load(); }));
      world.isend(bytes, 1).wait();
    }
    if (world.rank() != 1) return;
    Watchdog watchdog(1, 0.1s, [&](const std::string& text) {
      if (!over) report = text;
      over = true;
    });
    watchdog.at("RECV_F", 1, 5);
    world.irecv(bytes, 2).wait();
  });
  EXPECT_EQ(report.find("rank 1: no progress for 0.1"), 0U) << report;
  expect_has(report, "RECV_F, stage 1, microbatch 5, waits for rank 2");
}

TEST(Watchdog, IsPatientAsLongAsItIsTold) {
  std::atomic<int> reports = 0;
  Watchdog watchdog(0, 0.05s, [&](const std::string&) { ++reports; });
  {
    const Watchdog::Patience patience(&watchdog, "saving");
    std::this_thread::sleep_for(300ms);
    EXPECT_EQ(reports, 0);
  }
  EXPECT_TRUE(comes([&] { return reports == 1; }));
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

/// Ranks of one host as threads, each with a watchdog that knows that steps take 10 ms.
class Host {
 public:
  explicit Host(int ranks) : logs_(static_cast<std::size_t>(ranks)) {}

  /// Runs `body` on every rank until all have ended; `limit` as in WatchdogOptions.
  void run(Watchdog::Seconds limit, const std::function<void(Communicator&, Watchdog&)>& body) {
    run_threads(static_cast<int>(logs_.size()), [&](Communicator& world) {
      const int rank = world.rank();
      WatchdogOptions options{.limit = limit,
                              .ends_by_pace = true,
                              .log = &logs_[at(rank)],
                              .on_stall = [this](const Stall& stall) { keep(stall); }};
      for (const OperationLog& log : logs_) options.host.push_back(&log);
      world.barrier();
      Watchdog watchdog(rank, options, [this](const std::string& report) {
        const std::lock_guard lock(mutex_);
        ends_.push_back(report);
        over_ = true;
      });
      for (int step = 1; step <= 5; ++step) watchdog.step_done(step, 0.01);
      body(world, watchdog);
    });
  }
  /// Waits until a rank is reported; returns an empty stall of rank 0 if none is within 20 s.
  Stall wait_for_stall() {
    EXPECT_TRUE(comes([&] { return stalls() > 0; })) << "no rank is reported";
    const std::lock_guard lock(mutex_);
    return stalls_.empty() ? Stall{} : stalls_[0];
  }
  std::size_t stalls() { return std::lock_guard(mutex_), stalls_.size(); }
  std::vector<std::string> ends() { return std::lock_guard(mutex_), ends_; }
  std::atomic<bool> over_ = false;

 private:
  void keep(const Stall& stall) {
    const std::lock_guard lock(mutex_);
    stalls_.push_back(stall);
  }

  std::vector<OperationLog> logs_;
  std::mutex mutex_;
  std::vector<Stall> stalls_;
  std::vector<std::string> ends_;
};

/// Rank 1 runs `hang` until it is over; rank 0 waits for a message from it, and rank 2 for rank 0.
Stall stall_of_rank_1(Host& host, const std::function<void()>& hang) {
  Stall stall;
  host.run(3600s, [&](Communicator& world, Watchdog& watchdog) {
    std::byte message{};
    const Bytes bytes(&message, 1);
    if (world.rank() == 1) {
      watchdog.at("RECV_F", 1, 6, 0);
      watchdog.at("F", 1, 7);
      std::thread waiter([&] {
        stall = host.wait_for_stall();
        host.over_ = true;
      });
      hang();
      waiter.join();
      world.isend(bytes, 0).wait();
    } else if (world.rank() == 0) {
      watchdog.at("RECV_B", 0, 7, 1);
      world.irecv(bytes, 1).wait();
      world.isend(bytes, 2).wait();
    } else {
      watchdog.at("gather of norms and losses");
      world.irecv(bytes, 0).wait();
    }
  });
  return stall;
}

TEST(Pace, ABusyLoopIsNamedByTheRankItselfWithItsStackAndWhoWaits) {
  Host host(3);
  const Stall stall = stall_of_rank_1(host, [&] {
    while (!host.over_) {
    }
  });
  EXPECT_EQ(host.stalls(), 1U) << "waiting ranks must not be reported";
  EXPECT_EQ(stall.rank, 1);
  EXPECT_TRUE(stall.silence == Silence::computes || stall.silence == Silence::starved)
      << name_of(stall.silence) << "; starved is possible next to many other programs";
  EXPECT_FALSE(stall.ends);
  EXPECT_GE(stall.seconds, 1.7);
  EXPECT_LE(stall.seconds, 2.5);
  EXPECT_EQ(stall.waiting, (std::vector<int>{0, 2}));
  EXPECT_FALSE(stall.stack.empty());
  const std::string report = report_of(stall);
  for (const char* text : {"in F, stage 1, microbatch 7: it ", "ranks 0, 2 wait for it",
                           "RECV_F, stage 1, microbatch 6, rank 0", "last operations of rank 2:",
                           "RECV_B, stage 0, microbatch 7, rank 1", "gather of norms and losses"})
    expect_has(report, text);
}

TEST(Pace, AStuckThreadStands) {
  Host host(3);
  const Stall stall = stall_of_rank_1(host, [&] {
    while (!host.over_) std::this_thread::sleep_for(50ms);
  });
  EXPECT_EQ(stall.rank, 1);
  EXPECT_EQ(stall.silence, Silence::blocked);
}

TEST(Pace, ALostMessageIsACircleOfWhichOneSpeaks) {
  Host host(2);
  host.run(3600s, [&](Communicator& world, Watchdog& watchdog) {
    std::byte in{}, out{};
    const int other = 1 - world.rank();
    watchdog.at("RECV_F", world.rank(), 3, other);
    Work send;
    bool sent = false;
    const auto send_once = [&] {
      if (!std::exchange(sent, true)) send = world.isend(ConstBytes(&out, 1), other);
    };
    world.irecv(Bytes(&in, 1), other).wait([&] {
      if (host.stalls() > 0) send_once();
    });
    send_once();
    send.wait();
  });
  const Stall stall = host.wait_for_stall();
  EXPECT_EQ(host.stalls(), 1U);
  EXPECT_EQ(stall.silence, Silence::cycle);
  EXPECT_EQ(stall.rank, 0);
  EXPECT_EQ(stall.waits_for, 1);
  expect_has(headline(stall), "a message was lost");
}

TEST(Pace, WhatReadsIsSlowAndNeverEnded) {
  Host host(2);
  host.run(2.5s, [&](Communicator& world, Watchdog& watchdog) {
    std::byte message{};
    const Bytes bytes(&message, 1);
    if (world.rank() == 1) {
      watchdog.at("F", 1, 0);
      const int zeros = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
      std::vector<char> buffer(1U << 16U);
      for (const auto end = std::chrono::steady_clock::now() + 4500ms;
           std::chrono::steady_clock::now() < end; std::this_thread::sleep_for(20ms))
        EXPECT_GT(::read(zeros, buffer.data(), buffer.size()), 0);
      ::close(zeros);
      world.isend(bytes, 0).wait();
    } else {
      watchdog.at("RECV_B", 0, 0, 1);
      world.irecv(bytes, 1).wait();
    }
  });
  EXPECT_EQ(host.ends(), std::vector<std::string>{}) << "neither it nor the rank that waits for it";
  const Stall stall = host.wait_for_stall();
  EXPECT_EQ(stall.rank, 1);
  EXPECT_EQ(stall.silence, Silence::storage);
}

TEST(Pace, AHangEndsLongBeforeTheLimit) {
  Host host(1);
  const auto start = std::chrono::steady_clock::now();
  host.run(2.5s, [&](Communicator&, Watchdog& watchdog) {
    watchdog.at("F", 0, 0);
    while (!host.over_) std::this_thread::sleep_for(10ms);
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, 12s);
  ASSERT_EQ(host.ends().size(), 1U);
  expect_has(host.ends()[0], "rank 0 on ");
  EXPECT_EQ(end_seconds(0.01), 30);
  EXPECT_EQ(end_seconds(10), 200);
  EXPECT_EQ(report_seconds(0.01), 2);
  EXPECT_EQ(report_seconds(10), 30);
}

TEST(OperationLog, KeepsTheLastOperationsAndNeverAllocates) {
  OperationLog log;
  const std::size_t before = test::allocations();
  for (int i = 0; i < 200; ++i) log.begin(i % 2 == 0 ? "F" : "SEND_F", i, i, i);
  EXPECT_EQ(test::allocations(), before);
  const std::vector<Operation> all = log.last();
  ASSERT_EQ(all.size(), OperationLog::kKept);
  EXPECT_EQ(to_text(all.back()), "SEND_F, stage 199, microbatch 199, rank 199");
  EXPECT_EQ(all.front().stage, 136);
  EXPECT_EQ(log.last(3).front().stage, 197);
  log.begin("a name that is longer than a slot of the log has room for", -1, -1, -1);
  EXPECT_EQ(log.last(1)[0].what, "a name that is longer than a slot of th");
}

}  // namespace
}  // namespace concertina
