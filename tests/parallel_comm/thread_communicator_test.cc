#include "tests/threads/thread_communicator.h"
#include "tests/errors.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "core/memory.h"
#include "parallel/comm/staged_communicator.h"
#include "tests/late_copies.h"
#include "tests/parallel_comm/conformance.h"
#include "tests/parallel_comm/failure_of.h"

namespace concertina {
namespace {

using test::Contract;

class ThreadConformance : public ::testing::TestWithParam<std::tuple<Contract, int, Delivery>> {};

TEST_P(ThreadConformance, Holds) {
  const auto& [contract, ranks, delivery] = GetParam();
  run_threads(
      ranks, [&](Communicator& comm) { contract.check(comm); }, delivery);
}

INSTANTIATE_TEST_SUITE_P(
    All, ThreadConformance,
    ::testing::Combine(::testing::ValuesIn(test::contracts()), ::testing::Values(1, 2, 3, 5),
                       ::testing::Values(Delivery::rendezvous, Delivery::eager)),
    [](const auto& instance) {
      return std::string(std::get<0>(instance.param).name) + "_" +
             std::to_string(std::get<1>(instance.param)) +
             (std::get<2>(instance.param) == Delivery::eager ? "_eager" : "_rendezvous");
    });

/// Memory that, as far as a communicator knows, only copy() can access.
class CopiedMemory : public Memory {
 public:
  void* allocate(std::size_t, std::string_view) override { return nullptr; }
  void release(void*, std::size_t) noexcept override {}
  void copy(const void* from, void* to, std::size_t bytes) override {
    ++copies_;
    if (bytes > 0) std::memmove(to, from, bytes);
  }
  int copies() const { return copies_; }

 private:
  int copies_ = 0;
};

/// The same, with delayed copies.
class LateMemory final : public CopiedMemory {
 public:
  std::unique_ptr<Staging> make_staging(std::size_t bytes) override {
    return std::make_unique<test::LateStaging>(
        bytes, ++stagings_,
        [this](const void* from, void* to, std::size_t n) { copy(from, to, n); });
  }

 private:
  unsigned stagings_ = 0;
};

class StagedConformance : public ::testing::TestWithParam<std::tuple<Contract, int>> {};

TEST_P(StagedConformance, Holds) {
  const auto& [contract, ranks] = GetParam();
  run_threads(ranks, [&](Communicator& comm) {
    CopiedMemory memory;
    contract.check(*stage_through_host(comm, memory));
  });
}

TEST_P(StagedConformance, HoldsWithLateCopies) {
  const auto& [contract, ranks] = GetParam();
  run_threads(ranks, [&](Communicator& comm) {
    LateMemory memory;
    contract.check(*stage_through_host(comm, memory));
  });
}

INSTANTIATE_TEST_SUITE_P(All, StagedConformance,
                         ::testing::Combine(::testing::ValuesIn(test::contracts()),
                                            ::testing::Values(1, 2, 3, 5)),
                         [](const auto& instance) {
                           return std::string(std::get<0>(instance.param).name) + "_" +
                                  std::to_string(std::get<1>(instance.param));
                         });

TEST(StagedCommunicator, OneBlockToAllIsCopiedOnce) {
  run_threads(4, [](Communicator& comm) {
    CopiedMemory memory;
    const auto staged = stage_through_host(comm, memory);
    std::vector<int> all(4);
    all[comm.rank()] = comm.rank();
    std::vector<Bytes> parts;
    for (int& one : all) parts.push_back(std::as_writable_bytes(std::span(&one, 1)));
    staged->all_gather(parts[comm.rank()], parts).wait();
    EXPECT_EQ(all, (std::vector{0, 1, 2, 3}));
    EXPECT_EQ(memory.copies(), 1 + 3);
  });
}

// Rank 1 sends on the split communicator only after it has received on the whole one.
TEST(StagedCommunicator, WaitingForOneCommunicatorMovesAll) {
  run_threads(2, [](Communicator& comm) {
    LateMemory memory;
    const auto whole = stage_through_host(comm, memory), part = whole->split(0, comm.rank());
    std::byte one{1}, two{2}, got{};
    if (comm.rank() == 0) {
      Work send = whole->isend(ConstBytes(&one, 1), 1);
      part->irecv(Bytes(&got, 1), 1).wait();
      send.wait();
    } else {
      whole->irecv(Bytes(&got, 1), 0).wait();
      part->isend(ConstBytes(&two, 1), 0).wait();
    }
    EXPECT_EQ(got, comm.rank() == 0 ? two : one);
  });
}

TEST(ThreadCommunicator, RendezvousNeedsTheReceiveAndEagerDoesNot) {
  for (const Delivery delivery : {Delivery::rendezvous, Delivery::eager}) {
    run_threads(
        1,
        [&](Communicator& comm) {
          int out = 5, in = 0;
          Work send = comm.isend(std::as_bytes(std::span(&out, 1)), 0);
          EXPECT_EQ(send.test(), delivery == Delivery::eager);
          if (delivery == Delivery::eager) out = 6;  // done, so the buffer may be reused
          Work receive = comm.irecv(std::as_writable_bytes(std::span(&in, 1)), 0);
          EXPECT_TRUE(send.test());
          EXPECT_TRUE(receive.test());
          EXPECT_EQ(in, 5);
        },
        delivery);
  }
}

TEST(ThreadCommunicator, AFailingRankWakesAllOthers) {
  std::atomic<int> woken = 0;
  const std::string text = failure_of(4, [&](Communicator& comm) {
    if (comm.rank() == 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      throw std::runtime_error("rank two is broken");
    }
    try {
      std::byte byte{};
      if (comm.rank() == 0) comm.barrier();
      if (comm.rank() == 1) comm.irecv(Bytes(&byte, 1), 3).wait();  // not even from this rank
      if (comm.rank() == 3) comm.isend(ConstBytes(&byte, 1), 2).wait();
    } catch (const Error& error) {
      expect_has(error.message(), "rank 2 failed: rank two is broken");
      ++woken;
      throw;
    }
  });
  EXPECT_EQ(text, "rank two is broken");
  EXPECT_EQ(woken, 3);
}

TEST(ThreadCommunicator, WaitingForARankThatHasReturnedIsAnError) {
  const std::string text = failure_of(2, [](Communicator& comm) {
    std::byte byte{};
    if (comm.rank() == 1) comm.irecv(Bytes(&byte, 1), 0).wait();
  });
  expect_has(text, "rank 0 has returned without the other end");
  expect_has(text, "rank 1, irecv from rank 0");
}

TEST(ThreadCommunicator, AbortEndsAllRanksWithItsCode) {
  const Error error = thrown_by([&] {
    run_threads(3, [](Communicator& comm) {
      if (comm.rank() == 1) comm.abort(75);
      comm.barrier();
    });
  });
  EXPECT_EQ(error.code(), Exit::preempted);
  expect_has(error.what(), "rank 1");
}

TEST(ThreadCommunicator, ErrorsNameTheRanksOfTheJob) {
  const std::string text = failure_of(3, [](Communicator& comm) {
    const auto part = comm.split(comm.rank() == 0 ? -1 : 0, 0);  // ranks 1 and 2
    if (comm.rank() == 0) return;
    std::byte bytes[8];
    if (part->rank() == 0) part->isend(ConstBytes(bytes, 4), 1).wait();
    if (part->rank() == 1) part->irecv(Bytes(bytes, 8), 0).wait();
  });
  expect_has(text, "sizes differ");
  expect_has(text, "rank 1");
  expect_has(text, "rank 2");
}

// An exception unwinds past a posted receive: its buffer must not be written any more.
TEST(ThreadCommunicator, AnUnwoundReceiveIsWithdrawn) {
  run_threads(1, [](Communicator& comm) {
    const int out = 1;
    int second = 0;
    try {
      int first = 0;
      Work receive = comm.irecv(std::as_writable_bytes(std::span(&first, 1)), 0);
      throw std::runtime_error("unwinds");
    } catch (const std::runtime_error&) {
    }
    Work receive = comm.irecv(std::as_writable_bytes(std::span(&second, 1)), 0);
    comm.isend(std::as_bytes(std::span(&out, 1)), 0).wait();
    receive.wait();
    EXPECT_EQ(second, 1);
  });
}

}  // namespace
}  // namespace concertina
