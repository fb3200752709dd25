#include "parallel/comm/mpi_communicator.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "core/error.h"
#include "tests/mpi_test.h"
#include "tests/parallel_comm/conformance.h"

namespace concertina {
namespace {

using test::Contract;

class MpiConformance : public ::testing::TestWithParam<Contract> {};

TEST_P(MpiConformance, Holds) {
  const auto comm = test::world().split(0, test::world().rank());
  GetParam().check(*comm);
}

/// The same with nearly every message split into several.
TEST_P(MpiConformance, HoldsInChunks) {
  const auto comm = make_mpi_world({.chunk_bytes = 1009});
  GetParam().check(*comm);
}

INSTANTIATE_TEST_SUITE_P(All, MpiConformance, ::testing::ValuesIn(test::contracts()),
                         [](const auto& instance) { return instance.param.name; });

TEST(MpiCommunicator, ErrorsNameTheRanksOfTheJob) {
  Communicator& world = test::world();
  if (world.size() < 3) GTEST_SKIP() << "needs 3 ranks";
  const auto part = world.split(world.rank() == 0 ? -1 : 0, 0);
  if (part == nullptr) return;
  std::byte bytes[8] = {};
  if (part->rank() == 0) part->isend(ConstBytes(bytes, 4), 1).wait();
  if (part->rank() != 1) return;
  try {
    part->irecv(Bytes(bytes, 8), 0).wait();
    ADD_FAILURE() << "4 bytes arrived as 8";
  } catch (const Error& error) {
    EXPECT_EQ(error.where(), "rank 2, irecv from rank 1");
  }
}

double thread_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Measures the basis of kWaitingShare (parallel/simulate/shared_cores.h).
TEST(MpiCommunicator, ARankThatWaitsTakesAShareOfItsCore) {
  Communicator& world = test::world();
  if (world.size() != 2) GTEST_SKIP() << "needs 2 ranks";
  constexpr int kWaits = 40;
  for (const int us : {500, 1000, 2000, 4000, 8000}) {
    const auto wait = std::chrono::microseconds(us);
    double wall = 0, cpu = 0;
    std::byte byte[1] = {};
    for (int i = 0; i < kWaits; ++i) {
      world.barrier();
      if (world.rank() == 1) {
        std::this_thread::sleep_for(wait);
        world.isend(byte, 0).wait();
      } else {
        const double start = now(), used = thread_seconds();
        world.irecv(byte, 1).wait();
        wall += now() - start;
        cpu += thread_seconds() - used;
      }
    }
    if (world.rank() != 0) continue;
    fmt::print("waits of {:.1f} ms: {:.0f}% of a core\n", 1e3 * wall / kWaits, 100 * cpu / wall);
    if (us == 8000) {
      EXPECT_LT(cpu, 0.5 * wall) << us << " us";
    }
  }
}

/// `bytes` of address space, all mapped to one small piece of memory.
class Repeated {
 public:
  static constexpr std::size_t kPiece = std::size_t{16} << 20;

  explicit Repeated(std::size_t bytes) : bytes_((bytes + kPiece - 1) / kPiece * kPiece) {
    const int file = ::memfd_create("message", 0);
    void* all = ::mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool good = file >= 0 && ::ftruncate(file, kPiece) == 0 && all != MAP_FAILED;
    data_ = static_cast<std::byte*>(all);
    for (std::size_t at = 0; good && at < bytes_; at += kPiece)
      good = ::mmap(data_ + at, kPiece, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) !=
             MAP_FAILED;
    if (file >= 0) ::close(file);
    if (!good) throw_errno("mmap", "a buffer of " + std::to_string(bytes_) + " bytes");
  }
  ~Repeated() { ::munmap(data_, bytes_); }
  Repeated(const Repeated&) = delete;
  Repeated& operator=(const Repeated&) = delete;

  std::byte* data() const { return data_; }

 private:
  std::size_t bytes_;
  std::byte* data_;
};

TEST(MpiCommunicator, MessagesAbove2To31Bytes) {
  Communicator& world = test::world();
  if (world.size() < 2) GTEST_SKIP() << "needs 2 ranks";
  if (world.rank() > 1) return;
  constexpr std::size_t kBytes = (std::size_t{1} << 31) + 12345;
  const Repeated buffer(kBytes);
  const auto expected = [](std::size_t i) { return static_cast<std::byte>(i * 31 + i / 4096); };
  for (std::size_t i = 0; world.rank() == 0 && i < Repeated::kPiece; ++i)
    buffer.data()[i] = expected(i);
  if (world.rank() == 0)
    world.isend(ConstBytes(buffer.data(), kBytes), 1).wait();
  else
    world.irecv(Bytes(buffer.data(), kBytes), 0).wait();
  for (std::size_t i = 0; i < Repeated::kPiece; i += 509)
    ASSERT_EQ(buffer.data()[i], expected(i)) << "byte " << i;
}

}  // namespace
}  // namespace concertina
