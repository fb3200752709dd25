// The NCCL communicator and the device's staging over tests/core/cuda_emulation/nccl, which is as
// asynchronous as a GPU. It cannot test whether NCCL's kernels find room on a GPU.
#include "parallel/comm/nccl_communicator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <string>

#include "core/error.h"
#include "parallel/comm/nccl_pairs.h"
#include "parallel/comm/staged_communicator.h"
#include "parallel/comm/tensor_communicator.h"
#include "tests/core/cuda_emulation/nccl/gpu.h"
#include "tests/parallel_comm/conformance.h"
#include "tests/parallel_comm/failure_of.h"
#include "tests/threads/thread_communicator.h"

namespace concertina {
namespace {

using test::Contract;
using test::Gpu;

std::vector<int> everyone(const Communicator& comm) {
  std::vector<int> ranks(static_cast<std::size_t>(comm.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

enum class Transport { nccl, staged };

std::unique_ptr<Communicator> make(Transport transport, Communicator& control, Memory& memory) {
  auto comm = transport == Transport::nccl ? make_nccl_communicator(control, memory)
                                           : stage_through_host(control, memory);
  comm->connect(everyone(*comm));
  return comm;
}

class DeviceConformance : public ::testing::TestWithParam<std::tuple<Contract, int, Transport>> {};

TEST_P(DeviceConformance, Holds) {
  const auto& [contract, ranks, transport] = GetParam();
  if (transport == Transport::nccl && contract.name == std::string_view("sizes_must_match"))
    GTEST_SKIP() << "NCCL does not compare sizes";
  if (contract.name == std::string_view("exchanges_across_a_split"))
    GTEST_SKIP() << "every run waits for a device's exchanges before a split";
  run_threads(ranks, [&, &contract = contract, transport = transport](Communicator& control) {
    Gpu gpu(control.rank());
    contract.check(*make(transport, control, gpu.memory));
  });
}

INSTANTIATE_TEST_SUITE_P(All, DeviceConformance,
                         ::testing::Combine(::testing::ValuesIn(test::contracts()),
                                            ::testing::Values(1, 2, 3, 5),
                                            ::testing::Values(Transport::nccl, Transport::staged)),
                         [](const auto& instance) {
                           return std::string(std::get<0>(instance.param).name) + "_" +
                                  std::to_string(std::get<1>(instance.param)) +
                                  (std::get<2>(instance.param) == Transport::nccl ? "_nccl"
                                                                                  : "_staged");
                         });

class DeviceOrder : public ::testing::TestWithParam<Transport> {};

// "Kernels" here are copies in the kernels' stream that the host does not wait for: one fills the
// buffer to send, one reads the previous contents of the receive buffer.
TEST_P(DeviceOrder, MessagesKeepTheirPlaceAmongKernels) {
  constexpr std::size_t kBytes = 1000;
  run_threads(2, [&](Communicator& control) {
    Gpu gpu(control.rank());
    const auto comm = make(GetParam(), control, gpu.memory);
    auto* blocks = static_cast<std::byte*>(gpu.memory.allocate(4 * kBytes, "test"));
    std::byte *fresh = blocks, *out = fresh + kBytes, *in = out + kBytes, *old = in + kBytes;
    for (int round = 0; round < 50; ++round) {
      const std::vector<std::byte> mine(kBytes, std::byte(round * 2 + control.rank())),
          theirs(kBytes, std::byte(round * 2 + 1 - control.rank())),
          before(kBytes, std::byte{0xEE});
      std::vector<std::byte> got(kBytes), kept(kBytes);
      gpu.memory.copy(mine.data(), fresh, kBytes);
      gpu.memory.copy(before.data(), in, kBytes);
      gpu.memory.copy(fresh, out, kBytes);
      Work send = comm->isend(ConstBytes(out, kBytes), 1 - control.rank());
      gpu.memory.copy(in, old, kBytes);
      comm->irecv(Bytes(in, kBytes), 1 - control.rank()).wait();
      send.wait();
      gpu.memory.copy(old, kept.data(), kBytes);
      gpu.memory.copy(in, got.data(), kBytes);
      ASSERT_EQ(kept, before) << "round " << round;
      ASSERT_EQ(got, theirs) << "round " << round;
    }
    gpu.memory.release(blocks, 4 * kBytes);
  });
}

INSTANTIATE_TEST_SUITE_P(All, DeviceOrder, ::testing::Values(Transport::nccl, Transport::staged));

TEST(NcclCommunicator, AFailingRankWakesAllOthers) {
  for (const bool aborts : {true, false}) {
    std::atomic<int> woken = 0;
    const std::string text = failure_of(3, [&](Communicator& control) {
      std::byte byte{};
      Gpu gpu(control.rank());
      const auto comm = make(Transport::nccl, control, gpu.memory);
      control.barrier();  // all are connected
      if (control.rank() == 2) {
        if (aborts) comm->abort(75);
        throw std::runtime_error("rank two is broken");
      }
      try {
        comm->irecv(Bytes(&byte, 1), 1 - control.rank()).wait();  // not even from this rank
      } catch (const Error& error) {
        ++woken;
        EXPECT_NE(error.message().find("rank 2 failed"), std::string::npos) << error.message();
        throw;
      }
    });
    EXPECT_EQ(woken, 2);
    EXPECT_NE(text.find(aborts ? "aborted" : "rank two is broken"), std::string::npos) << text;
  }
}

/// An error reported by NCCL itself.
TEST(NcclCommunicator, AnErrorOfNcclNamesTheRanks) {
  std::string where, what;
  failure_of(2, [&](Communicator& control) {
    std::byte byte{};
    Gpu gpu(control.rank());
    const auto comm = make(Transport::nccl, control, gpu.memory);
    control.barrier();  // links fail after all are created
    try {
      emulation::break_links(true);
      if (control.rank() == 0) comm->irecv(Bytes(&byte, 1), 1).wait();
    } catch (const Error& error) {
      where = error.where();
      what = error.message();
    }
    control.barrier();
    throw std::runtime_error("unwind: nothing can be closed");
  });
  emulation::break_links(false);
  EXPECT_EQ(where, "rank 0, irecv of 1 bytes from rank 1");
  EXPECT_NE(what.find("remote process exited"), std::string::npos) << what;
}

TEST(TensorCommunicator, TakesNcclWhereEveryRankHasAGpu) {
  run_threads(3, [](Communicator& control) {
    Gpu gpu(control.rank());
    EXPECT_EQ(nccl_refusal(control, gpu.memory), "");
    EXPECT_NE(tensor_communicator(control, gpu.memory, "nccl"), nullptr);
  });
}

TEST(TensorCommunicator, SaysWhoSharesAGpu) {
  run_threads(3, [](Communicator& control) {
    Gpu gpu(control.rank() == 2 ? 0 : control.rank());
    const std::string refusal = nccl_refusal(control, gpu.memory);
    EXPECT_EQ(refusal.rfind("ranks 0 and 2 share GPU 0 of ", 0), 0U) << refusal;
    const auto comm = tensor_communicator(control, gpu.memory);
    ASSERT_NE(comm, nullptr);
    EXPECT_THROW(tensor_communicator(control, gpu.memory, "nccl"), Error);
  });
}

TEST(TensorCommunicator, HostMemoryNeedsNone) {
  run_threads(2, [](Communicator& control) {
    EXPECT_EQ(tensor_communicator(control, host_memory()), nullptr);
    EXPECT_THROW(tensor_communicator(control, host_memory(), "nccl"), Error);
  });
}

TEST(NcclPairs, ARoundTouchesARankOnce) {
  const int size = 8;
  Wishes wishes(size, std::vector<std::byte>(size));
  for (int r = 0; r + 1 < size; ++r) wishes[r][r + 1] = std::byte{1};
  std::vector<Pair> known{Pair{2, 3}};
  const auto rounds = pair_rounds(wishes, known);
  EXPECT_EQ(rounds.size(), 2U);
  std::size_t pairs = 0;
  for (const auto& round : rounds) {
    std::vector<int> uses(size);
    pairs += round.size();
    for (const Pair& pair : round)
      for (const int rank : pair) ++uses[rank];
    for (const int count : uses) EXPECT_LE(count, 1);
  }
  EXPECT_EQ(pairs, 6U);
  EXPECT_TRUE(pair_rounds(wishes, known).empty());
}

}  // namespace
}  // namespace concertina
