// Every kernel of every backend against the oracle, and every thread count against one thread.
#include "core/backend.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/error.h"
#include "tests/buffer.h"
#include "tests/core/kernel_cases.h"
#include "tests/oracle_backend.h"

namespace concertina {
namespace {

constexpr DType kTypes[] = {DType::f32, DType::bf16};

struct Candidate {
  std::string name;
  int threads = 1;
  std::string isa;
  std::unique_ptr<Backend> make() const { return make_cpu_backend(threads, isa); }
};

/// The backend, or null where this machine lacks the instruction set.
std::unique_ptr<Backend> make_if_able(const Candidate& candidate) {
  try {
    return candidate.make();
  } catch (const Error&) {
    return nullptr;
  }
}

void PrintTo(const Candidate& candidate, std::ostream* out) {
  *out << candidate.name;
}

class BackendTest : public testing::TestWithParam<Candidate> {};

TEST_P(BackendTest, EveryKernelMatchesTheOracle) {
  if (make_if_able(GetParam()) == nullptr) GTEST_SKIP() << "not on this machine";
  for (const DType compute : kTypes)
    for (const KernelCase& kernel : kernel_cases(1, 12, compute)) {
      const auto oracle = make_oracle_backend();
      const auto backend = GetParam().make();  // anew: its workspace fits this case exactly
      expect_close(kernel.run(*backend), kernel.run(*oracle), kernel.name, compute);
    }
}

TEST_P(BackendTest, OneBackendServesManyShapes) {
  const auto backend = make_if_able(GetParam());
  if (backend == nullptr) GTEST_SKIP() << "not on this machine";
  for (const DType compute : kTypes)
    for (const KernelCase& kernel : kernel_cases(2, 4, compute)) {
      const auto expected = kernel.run(*make_oracle_backend());
      for (int repeat = 0; repeat < 2; ++repeat)
        expect_close(kernel.run(*backend), expected, kernel.name, compute);
    }
}

TEST_P(BackendTest, RefusesWhatItCannotCompute) {
  const auto backend = make_if_able(GetParam());
  if (backend == nullptr) GTEST_SKIP() << "not on this machine";
  for (const DType compute : kTypes) EXPECT_NO_THROW(backend->require(compute));
  EXPECT_THROW(backend->require(DType::i32), Error);
  EXPECT_FALSE(backend->describe().empty());
}

INSTANTIATE_TEST_SUITE_P(Cpu, BackendTest,
                         testing::Values(Candidate{"threads1", 1, ""}, Candidate{"threads2", 2, ""},
                                         Candidate{"baseline", 1, "baseline"},
                                         Candidate{"avx2", 1, "avx2"},
                                         Candidate{"avx512", 1, "avx512"}),
                         [](const auto& candidate) { return candidate.param.name; });

TEST_P(BackendTest, ThreadsNeverChangeABit) {
  if (make_if_able(GetParam()) == nullptr) GTEST_SKIP() << "not on this machine";
  for (const DType compute : kTypes)
    for (const KernelCase& kernel : kernel_cases(3, 6, compute)) {
      const auto one = kernel.run(*GetParam().make());
      for (const int threads : {2, 3}) {
        const auto many = kernel.run(*make_cpu_backend(threads, GetParam().isa));
        for (std::size_t i = 0; i < one.size(); ++i) {
          ASSERT_EQ(one[i].values.size(), many[i].values.size());
          EXPECT_EQ(0, std::memcmp(one[i].values.data(), many[i].values.data(),
                                   one[i].values.size() * sizeof(float)))
              << kernel.name << " in " << name_of(compute) << ": " << one[i].name << " with "
              << threads << " threads";
        }
      }
    }
}

TEST(CpuBackendTest, AnUnknownInstructionSetIsABadInput) {
  EXPECT_THROW(make_cpu_backend(1, "sse9"), Error);
}

/// sum_squares is in double: the test above sees it rounded to float only.
TEST(CpuBackendTest, SumSquaresIsDoublePrecise) {
  Data data(7);
  const Buffer x = data.normal(5000);
  std::vector<double> got(2), expected(2);
  make_cpu_backend(1)->sum_squares(x.view(), 4096, got);
  make_oracle_backend()->sum_squares(x.view(), 4096, expected);
  EXPECT_LE(relative_error(got, expected), 1e-12);
}

}  // namespace
}  // namespace concertina
