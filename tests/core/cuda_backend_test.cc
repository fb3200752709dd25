// Checks every kernel of the CUDA backend against the oracle, on a GPU if there is one, or on the
// host with tests/core/cuda_emulation. Skipped if neither is available.
#include "core/cuda/backend.h"

#include <gtest/gtest.h>

#include "core/cuda/device.h"
#include "tests/buffer.h"
#include "tests/core/cuda_staged_backend.h"
#include "tests/core/kernels/cases.h"
#include "tests/errors.h"
#include "tests/oracle_backend.h"

namespace concertina {
namespace {

std::unique_ptr<Backend> make(cuda::AttentionBy attention = cuda::AttentionBy::automatic) {
  return make_staged_backend(cuda::make_cuda_backend({.attention = attention}));
}

/// The precisions of kPrecisions that the device supports.
std::vector<Precision> precisions() {
  const auto backend = make();
  std::vector<Precision> able;
  for (const Precision& precision : kPrecisions) try {
      backend->require(precision);
      able.push_back(precision);
    } catch (const Error&) {
    }
  return able;
}

class CudaBackendTest : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda::device_count() == 0) GTEST_SKIP() << "no GPU: " << cuda::status();
  }
};

class CudaKernelTest : public CudaBackendTest, public testing::WithParamInterface<std::string> {
 protected:
  /// The cases of this kernel in all precisions.
  static std::vector<KernelCase> cases(unsigned seed, int rounds) {
    std::vector<KernelCase> chosen;
    for (const Precision& precision : precisions())
      for (KernelCase& one : kernel_cases(seed, rounds, precision))
        if (one.name.starts_with(GetParam() + " ")) chosen.push_back(std::move(one));
    return chosen;
  }
  /// Returns nothing and fails the test if the backend throws, so that the other cases still run.
  static std::vector<Output> run(const KernelCase& kernel, Backend& backend) {
    try {
      return kernel.run(backend);
    } catch (const Error& error) {
      ADD_FAILURE() << kernel.name << ": " << error.what();
      return {};
    }
  }
  static void compare(const KernelCase& kernel, Backend& backend) {
    const std::vector<Output> got = run(kernel, backend);
    if (!got.empty()) expect_close(got, kernel.run(*make_oracle_backend()), kernel);
  }
};

// A fault makes the device unusable for the process, so each kernel can also be run by itself.
INSTANTIATE_TEST_SUITE_P(, CudaKernelTest, testing::ValuesIn(kernel_names()),
                         [](const auto& kernel) { return kernel.param; });

TEST_P(CudaKernelTest, MatchesTheOracle) {
  for (const KernelCase& kernel : cases(1, 8)) compare(kernel, *make());
}

TEST_P(CudaKernelTest, OneBackendServesManyShapes) {
  const auto backend = make();
  for (const KernelCase& kernel : cases(2, 4)) compare(kernel, *backend);
}

TEST_P(CudaKernelTest, TheSameCallGivesTheSameBits) {
  for (const KernelCase& kernel : cases(4, 6)) {
    const auto once = run(kernel, *make());
    expect_same_bits(run(kernel, *make()), once, kernel);
  }
}

/// The tests above use cuDNN's attention if cuDNN is available.
TEST_F(CudaBackendTest, OurOwnAttentionMatchesTheOracleBesideCudnns) {
  if (const std::string refusal = cuda::dnn_refusal(0); !refusal.empty()) GTEST_SKIP() << refusal;
  for (const KernelCase& kernel : kernel_cases(6, 8, DType::bf16)) {
    if (kernel.name.find("attention") != 0) continue;
    const auto ours = kernel.run(*make(cuda::AttentionBy::own));
    expect_close(ours, kernel.run(*make_oracle_backend()), kernel);
    expect_same_bits(kernel.run(*make(cuda::AttentionBy::own)), ours, kernel);
  }
}

TEST_F(CudaBackendTest, SumSquaresIsDoublePrecise) {
  Data data(7);
  const Buffer x = data.normal(70000);
  // Consecutive calls; with blocks of 4, more results than can wait for the host at a time.
  const std::size_t blocks[] = {4096, 4, 13};
  std::vector<std::vector<double>> got;
  for (const std::size_t block : blocks) got.emplace_back((x.size() + block - 1) / block);
  const auto backend = make();
  for (std::size_t i = 0; i < got.size(); ++i)
    backend->run(SumSquares{x.view(), blocks[i], got[i]});
  backend->synchronize();
  for (std::size_t i = 0; i < got.size(); ++i) {
    std::vector<double> expected(got[i].size());
    make_oracle_backend()->run(SumSquares{x.view(), blocks[i], expected});
    EXPECT_LE(relative_error(got[i], expected), 1e-12) << blocks[i];
  }
}

TEST_F(CudaBackendTest, MemoryIsCopiedInEveryDirection) {
  const auto backend = cuda::make_cuda_backend({});
  const Buffer values = Data(8).normal(1000), back(values.size());
  void* one = backend->memory().allocate(values.view().bytes(), "one");
  void* two = backend->memory().allocate(values.view().bytes(), "two");
  backend->memory().copy(values.data(), one, values.view().bytes());
  backend->memory().copy(one, two, values.view().bytes());
  backend->memory().copy(two, back.data(), values.view().bytes());
  EXPECT_EQ(back.values(), values.values());
  backend->memory().release(one, values.view().bytes());
  backend->memory().release(two, values.view().bytes());
}

TEST_F(CudaBackendTest, ABlockThatDoesNotFitIsNamed) {
  const auto backend = cuda::make_cuda_backend({});
  const Error error =
      thrown_by([&] { backend->memory().allocate(std::size_t{1} << 50, "weights of stage 3"); });
  expect_has(error.message(), "weights of stage 3: needs 1125899906842624 bytes");
}

TEST_F(CudaBackendTest, RefusesWhatItCannotCompute) {
  const auto backend = make();
  for (const Precision& precision : {Precision(DType::f32), {DType::bf16}})
    EXPECT_NO_THROW(backend->require(precision));
  EXPECT_THROW(backend->require(DType::i32), Error);
  EXPECT_THROW(backend->attention({1, 8, 1, 256, DType::bf16}), Error);
}

/// Works on every machine: also without a GPU, a driver, a library, or CUDA in the build.
TEST(CudaErrorTest, ADeviceThatIsNotThereIsABadInput) {
  const Error error = input_error([&] { cuda::make_cuda_backend({.device = 4096}); });
  EXPECT_FALSE(error.fix().empty());
}

}  // namespace
}  // namespace concertina
