// Checks all kernels of all backends against the oracle, and all thread counts against one thread.
#include "core/backend.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <thread>
#include <tuple>

#include "core/cpu/isa.h"
#include "core/cpu/team.h"
#include "core/cpu/whole_product.h"
#include "tests/buffer.h"
#include "tests/core/kernels/cases.h"
#include "tests/errors.h"
#include "tests/oracle/products.h"
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

/// Returns the backend, or null if this machine lacks the instruction set.
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

TEST(Isa, OneDnnsLimitIsThatOfTheLoopsToo) {
  if (::getenv("ONEDNN_MAX_CPU_ISA") != nullptr || ::getenv("DNNL_MAX_CPU_ISA") != nullptr)
    GTEST_SKIP() << "the environment already sets the limit";
  ASSERT_EQ(::setenv("DNNL_MAX_CPU_ISA", "sse41", 1), 0);
  EXPECT_EQ(cpu::choose_isa("").name, "baseline");
  EXPECT_THROW(cpu::choose_isa("avx2"), Error);
  ::unsetenv("DNNL_MAX_CPU_ISA");
}

class BackendTest : public testing::TestWithParam<Candidate> {
 protected:
  void SetUp() override {
    if (backend_ == nullptr) GTEST_SKIP() << "not supported on this machine";
  }

  const std::unique_ptr<Backend> backend_ = make_if_able(GetParam());
};

/// The oracle's results for kernel_cases() with these arguments, computed once for all candidates.
const std::vector<Outputs>& expected_of(unsigned seed, int rounds, DType compute) {
  static std::map<std::tuple<unsigned, int, DType>, std::vector<Outputs>> known;
  const auto [at, is_new] = known.try_emplace({seed, rounds, compute});
  if (is_new)
    for (const KernelCase& kernel : kernel_cases(seed, rounds, compute))
      at->second.push_back(kernel.run(*make_oracle_backend()));
  return at->second;
}

TEST_P(BackendTest, EveryKernelMatchesTheOracle) {
  for (const DType compute : kTypes) {
    auto expected = expected_of(1, 12, compute).begin();
    for (const KernelCase& kernel : kernel_cases(1, 12, compute))  // a workspace that fits exactly
      expect_close(kernel.run(*GetParam().make()), *expected++, kernel);
  }
}

TEST_P(BackendTest, OneBackendServesManyShapes) {
  for (const DType compute : kTypes) {
    auto expected = expected_of(2, 4, compute).begin();
    for (const KernelCase& kernel : kernel_cases(2, 4, compute)) {
      for (int repeat = 0; repeat < 2; ++repeat)
        expect_close(kernel.run(*backend_), *expected, kernel);
      ++expected;
    }
  }
}

/// GELU is as accurate as documented; the map here multiplies by 1, so its product is the input.
TEST_P(BackendTest, PhiIsWithinOneInTenMillion) {
  constexpr std::int64_t kPoints = 30001;
  PackedMap map(*backend_, {kPoints, 1, 1, false, DType::f32});
  const Workspace workspace(*backend_);
  const Buffer x(kPoints), slope(kPoints), none(std::vector<float>{0});
  for (std::int64_t i = 0; i < kPoints; ++i)
    x.data()[i] = static_cast<float>(i - kPoints / 2) / 1000;
  map.pack(Buffer(std::vector<float>{1}));
  const Buffer y = map.forward(x, none.view(), {Epilogue::Kind::gelu_erf, slope.view()});
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto u = static_cast<double>(x.data()[i]);
    const double expected = oracle::gelu_erf(u);  // y is also rounded to fp32
    ASSERT_NEAR(static_cast<double>(y.data()[i]), expected,
                1e-7 * std::abs(u) + 0x1p-24 * std::abs(expected))
        << u;
    ASSERT_NEAR(static_cast<double>(slope.data()[i]), oracle::gelu_erf_slope(u), 3e-7) << u;
    if (u < 0 && u > -12) {
      ASSERT_NEAR(static_cast<double>(y.data()[i]) / expected, 1, 6e-6) << u;
    }
  }
}

TEST_P(BackendTest, TanhKeepsItsRelativeAccuracy) {
  std::vector<float> points;
  for (float x = 1e-30F; x < 30; x *= 1.01F) points.insert(points.end(), {x, -x});
  const Buffer x(points), y(x.size());
  backend_->run(Tanh{x.view(), y.view()});
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double expected = std::tanh(static_cast<double>(x.data()[i]));
    ASSERT_NEAR(static_cast<double>(y.data()[i]) / expected, 1, 4e-7) << x.data()[i];
  }
}

TEST_P(BackendTest, RefusesWhatItCannotCompute) {
  for (const DType compute : kTypes) EXPECT_NO_THROW(backend_->require(compute));
  EXPECT_THROW(backend_->require(DType::i32), Error);
  for (const Precision& on_gpus :
       {Precision(DType::f32, Products::tf32), {DType::bf16, Products::fp8}}) {
    const Error error = input_error([&] {
      backend_->linear({16, 16, 16, false, on_gpus.storage, on_gpus.products});
    });
    expect_has(error.fix(), "one of: fp32, bf16, or a GPU");
  }
  EXPECT_FALSE(backend_->describe().empty());
}

INSTANTIATE_TEST_SUITE_P(Cpu, BackendTest,
                         testing::Values(Candidate{"threads1", 1, ""}, Candidate{"threads2", 2, ""},
                                         Candidate{"baseline", 1, "baseline"},
                                         Candidate{"avx2", 1, "avx2"},
                                         Candidate{"avx512", 1, "avx512"},
                                         Candidate{"avx512_bf16", 1, "avx512_bf16"}),
                         [](const auto& candidate) { return candidate.param.name; });

TEST_P(BackendTest, ThreadsNeverChangeABit) {
  for (const DType compute : kTypes)
    for (const KernelCase& kernel : kernel_cases(3, 6, compute)) {
      const auto one = kernel.run(*GetParam().make());
      for (const int threads : {2, 3}) {
        SCOPED_TRACE(threads);
        expect_same_bits(kernel.run(*make_cpu_backend(threads, GetParam().isa)), one, kernel);
      }
    }
}

TEST(TeamTest, EachPieceRunsOnce) {
  for (const int threads : {1, 2, 5}) {
    const cpu::Team team(threads);
    for (const int pieces : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> times(static_cast<std::size_t>(pieces));
      for (int round = 1; round <= 50; ++round) {
        team.each(pieces, [&](std::int64_t i, int thread) {
          EXPECT_LT(thread, threads);
          ++times[i];
        });
        for (const auto& count : times) ASSERT_EQ(count, round);
      }
    }
  }
}

/// A thread that lost its core delays only its current piece; others take the rest of its share.
TEST(TeamTest, AThreadThatStandsStillKeepsNoPieceFromOthers) {
  const cpu::Team team(2);
  std::atomic<int> done{0};
  bool others_done = false;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  team.each(8, [&](std::int64_t i, int) {
    if (i == 0) {
      while (done < 7 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
      others_done = done == 7;
    }
    ++done;
  });
  EXPECT_TRUE(others_done);
}

TEST(TeamTest, WhatAPieceThrowsReachesTheCaller) {
  const cpu::Team team(3);
  for (const std::int64_t bad : {0, 99})
    EXPECT_THROW(team.each(100, [&](std::int64_t i, int) { CONCERTINA_CHECK(i != bad, "here"); }),
                 Error);
  std::atomic<int> done{0};
  team.each(100, [&](std::int64_t, int) { ++done; });
  EXPECT_EQ(done, 100);
}

/// All weights of the whole products are 0.01.
TEST(WholeProductsTest, ComputeWhatLinearMapsCompute) {
  constexpr std::int64_t kRows = 70, kIn = 40, kOut = 24;
  Data data(13);
  const Buffer x = data.normal(kRows * kIn), dy = data.normal(kRows * kOut),
               weight(std::vector<float>(kIn * kOut, 0.01F)), sum = data.normal(kIn * kOut);
  for (const bool transposed : {false, true})
    for (const int threads : {1, 2}) {
      const LinearShape shape{kRows, kIn, kOut, transposed};
      const auto backend = make_cpu_backend(1);
      PackedMap linear(*backend, shape);
      const auto whole = cpu::make_whole_products(shape, threads);
      const Workspace workspace(*backend);
      linear.pack(weight);
      const Buffer dw(sum.values());
      const Buffer whole_y(kRows * kOut), whole_dx(kRows * kIn), whole_dw(sum.values());
      linear.weight(x, dy, dw.view(), {}, true);
      whole->forward(x.view(), whole_y.view());
      whole->backward_input(dy.view(), whole_dx.view());
      whole->backward_weight(x.view(), dy.view(), whole_dw.view());
      EXPECT_LE(relative_error(whole_y.values(), linear.forward(x, {}).values()), 1e-5);
      EXPECT_LE(relative_error(whole_dx.values(), linear.backward(dy).values()), 1e-5);
      EXPECT_LE(relative_error(whole_dw.values(), dw.values()), 1e-5);
    }
  EXPECT_EQ(cpu::make_whole_products({kRows, kIn, kOut, false, DType::bf16}, 1), nullptr);
}

TEST(CpuBackendTest, AnUnknownInstructionSetIsABadInput) {
  EXPECT_THROW(make_cpu_backend(1, "sse9"), Error);
}

/// Random bits include denormals, infinities and NaN. x + 0 is x, so the embedding only rounds.
TEST(CpuBackendTest, Bf16IsRoundedAlikeOnEveryInstructionSet) {
  constexpr std::int64_t kWidth = 1003;
  Data data(5);
  const Buffer bits = data.integers(kWidth, std::numeric_limits<std::int32_t>::min(),
                                    std::numeric_limits<std::int32_t>::max());
  const Buffer table(kWidth), zeros(std::vector<float>(kWidth, 0.0F)), token(1, DType::i32);
  for (std::int64_t i = 0; i < kWidth; i += 3) bits.view().i32()[i] &= ~0x7F800000;  // denormals
  std::memcpy(table.data(), bits.view().i32(), table.view().bytes());
  token.view().i32()[0] = 0;
  for (const char* isa : {"baseline", "avx2", "avx512"}) {
    const auto backend = make_if_able({isa, 1, isa});
    if (backend == nullptr) continue;
    const Buffer x(kWidth, DType::bf16);
    backend->run(Embed{token.view(), table.view(), zeros.view(), 1, x.view()});
    for (std::int64_t i = 0; i < kWidth; ++i) {
      const float exact = table.data()[i], got = to_float(x.view().as<Bf16>()[i]);
      if (std::isnan(exact))
        EXPECT_TRUE(std::isnan(got)) << isa;
      else
        EXPECT_EQ(got, to_float(rounded<Bf16>(exact))) << isa << " of " << exact;
    }
  }
}

/// Sums of two weights are exact enough in fp32 to show whether each weight was rounded first, and
/// the sum only once afterwards.
TEST(CpuBackendTest, ProductsReadWeightsRoundedAndAddThemInFp32) {
  constexpr std::size_t kWide = 300;
  Data data(11);
  const Buffer weight = data.normal(2 * kWide);  // [2,kWide], or transposed
  const Buffer ones(std::vector<float>{1, 1}, DType::bf16);
  std::vector<float> expected;
  for (std::size_t i = 0; i < kWide; ++i)
    expected.push_back(to_float(rounded<Bf16>(to_float(rounded<Bf16>(weight.data()[i])) +
                                              to_float(rounded<Bf16>(weight.data()[kWide + i])))));
  for (const char* isa : {"baseline", "avx2", "avx512"})
    for (const bool backward : {false, true}) {
      const auto backend = make_if_able({isa, 1, isa});
      if (backend == nullptr) continue;
      const std::int64_t in = backward ? kWide : 2, out = backward ? 2 : kWide;
      PackedMap linear(*backend, {1, in, out, backward, DType::bf16});
      const Workspace workspace(*backend);
      linear.pack(weight);
      const Buffer sums = backward ? linear.backward(ones) : linear.forward(ones, {});
      EXPECT_EQ(sums.values(), expected) << isa << (backward ? ", backward" : "");
    }
}

/// sum_squares is accumulated in double: the test above only sees it rounded to float.
TEST(CpuBackendTest, SumSquaresIsDoublePrecise) {
  Data data(7);
  const Buffer x = data.normal(5000);
  std::vector<double> got(2), expected(2);
  make_cpu_backend(1)->run(SumSquares{x.view(), 4096, got});
  make_oracle_backend()->run(SumSquares{x.view(), 4096, expected});
  EXPECT_LE(relative_error(got, expected), 1e-12);
}

}  // namespace
}  // namespace concertina
