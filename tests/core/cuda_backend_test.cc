// Every kernel of the CUDA backend against the oracle: on a GPU where there is one, and on the host
// by tests/core/cuda_emulation. Skips where neither is there.
#include "core/cuda/backend.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/cuda/device.h"
#include "core/error.h"
#include "tests/buffer.h"
#include "tests/core/cuda_staged_backend.h"
#include "tests/core/kernel_cases.h"
#include "tests/oracle_backend.h"

namespace concertina {
namespace {

std::unique_ptr<Backend> make() {
  return make_staged_backend(cuda::make_cuda_backend({}));
}

/// Those of kPrecisions that the device can do.
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

TEST_F(CudaBackendTest, EveryKernelMatchesTheOracle) {
  for (const Precision& precision : precisions())
    for (const KernelCase& kernel : kernel_cases(1, 8, precision))
      expect_close(kernel.run(*make()), kernel.run(*make_oracle_backend()), kernel);
}

TEST_F(CudaBackendTest, OneBackendServesManyShapes) {
  const auto backend = make();
  for (const Precision& precision : precisions())
    for (const KernelCase& kernel : kernel_cases(2, 4, precision))
      expect_close(kernel.run(*backend), kernel.run(*make_oracle_backend()), kernel);
}

TEST_F(CudaBackendTest, TheSameCallGivesTheSameBits) {
  for (const Precision& precision : precisions())
    for (const KernelCase& kernel : kernel_cases(4, 6, precision)) {
      const auto once = kernel.run(*make()), again = kernel.run(*make());
      for (std::size_t i = 0; i < once.size(); ++i) {
        ASSERT_EQ(once[i].values.size(), again[i].values.size());
        EXPECT_EQ(0, std::memcmp(once[i].values.data(), again[i].values.data(),
                                 once[i].values.size() * sizeof(float)))
            << kernel.name << ": " << once[i].name;
      }
    }
}

TEST_F(CudaBackendTest, SumSquaresIsDoublePrecise) {
  Data data(7);
  const Buffer x = data.normal(70000);
  for (const std::size_t block : {4096, 13}) {  // 13: more sums than one launch brings to the host
    std::vector<double> got((x.size() + block - 1) / block), expected(got.size());
    make()->sum_squares(x.view(), block, got);
    make_oracle_backend()->sum_squares(x.view(), block, expected);
    EXPECT_LE(relative_error(got, expected), 1e-12);
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
  try {
    backend->memory().allocate(std::size_t{1} << 50, "weights of stage 3");
    FAIL() << "a petabyte";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("weights of stage 3: 1125899906842624 bytes"), std::string::npos)
        << error.message();
  }
}

TEST_F(CudaBackendTest, RefusesWhatItCannotCompute) {
  const auto backend = make();
  for (const Precision& precision : {Precision(DType::f32), {DType::bf16}})
    EXPECT_NO_THROW(backend->require(precision));
  EXPECT_THROW(backend->require(DType::i32), Error);
  EXPECT_THROW(backend->attention({1, 8, 1, 256, DType::bf16}), Error);
}

/// Anywhere: also where there is no GPU, no driver, no library, no CUDA in the build.
TEST(CudaErrorTest, ADeviceThatIsNotThereIsABadInput) {
  try {
    cuda::make_cuda_backend({.device = 4096});
    FAIL() << "4097 GPUs";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::bad_input);
    EXPECT_FALSE(error.fix().empty());
  }
}

}  // namespace
}  // namespace concertina
