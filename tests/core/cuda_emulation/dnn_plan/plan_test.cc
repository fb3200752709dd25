// Lets cuDNN plan our graphs for the description of a Hopper GPU, and checks which kernels and how
// much scratch memory it chooses. Nothing runs. Skipped if cuDNN is not installed.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

#include "core/cuda/base/sizes.h"
#include "core/cuda/dnn/attention.h"
#include "core/cuda/dnn/graph.h"
#include "core/cuda/dnn/plan.h"
#include "core/error.h"

namespace concertina::cuda {
namespace {

// cuDNN's description of an H200; found by observing which keys it reads.
constexpr std::string_view kHopper = R"({"cudaDeviceId": 0, "deviceVer": 900, "driverVer": 13000,
  "totalGlobalMem": 150754820096, "maxGridSize": [2147483647, 65535, 65535],
  "maxBlockSize": [1024, 1024, 64], "regsPerBlock": 65536, "multiProcessorCount": 132,
  "warpSize": 32, "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448,
  "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536, "maxCtasPerSM": 32,
  "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "pciDeviceId": 0, "isTccDriver": 0,
  "supportCoopLaunch": 1, "smClockRateKHz": 1980000, "memClockRateKHz": 3201000,
  "l2CacheSize": 62914560, "deviceName": "H200"})";

/// Returns the names of the kernels that cuDNN gave to the driver since the last call.
std::string kernels() {
  static void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  using Names = const char* (*)();
  static const auto names = reinterpret_cast<Names>(dlsym(driver, "emulated_driver_kernels"));
  return names();
}

class DnnPlanTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!dnn_problem().empty()) GTEST_SKIP() << dnn_problem();
    hopper_.emplace(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    hopper_->set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, kHopper.size(),
                 kHopper.data());
    hopper_->finalize();
    kernels();
  }
  DnnPlan plan(DnnGraph graph, std::size_t most_scratch) const {
    return DnnPlan(std::move(graph), {.properties = &*hopper_}, most_scratch);
  }

 private:
  std::optional<DnnDescriptor> hopper_;
};

const AttentionShape kShapes[] = {
    {4, 1024, 12, 64, DType::bf16}, {1, 77, 3, 40, DType::bf16},
    {2, 2, 1, 8, DType::bf16},      {3, 129, 5, 128, DType::bf16},
    {2, 300, 2, 96, DType::bf16},   {1, 63, 2, 72, DType::bf16},
    {1, 4096, 25, 64, DType::bf16}, {3, 16, 2, 16, DType::bf16},
    {2, 1000, 4, 120, DType::bf16}, {4, 512, 12, 64, DType::bf16, 0, false},
};

TEST_F(DnnPlanTest, EachDirectionIsOneFlashKernelWithinItsScratch) {
  for (const AttentionShape& s : kShapes) {
    SCOPED_TRACE(
        fmt::format("{} x {} tokens, {} heads of {}", s.samples, s.tokens, s.heads, s.head_dim));
    ASSERT_TRUE(dnn_takes(s));
    const DnnPlan forward = plan(attention_graph(s), dnn_plan_scratch(s));
    const std::string ahead = kernels();
    const DnnPlan backward = plan(attention_gradient_graph(s), dnn_plan_scratch(s));
    const std::string back = kernels();
    EXPECT_NE(ahead.find("sm90_flash_fprop"), std::string::npos) << ahead;
    EXPECT_NE(back.find("sm90_flash_bprop"), std::string::npos) << back;
    // The gradient of all scores, which makes the order of dq's sum deterministic.
    const auto scores = static_cast<std::size_t>(s.samples * s.heads * s.tokens * s.tokens);
    EXPECT_GE(backward.scratch_bytes(), 2 * scores);
    EXPECT_LT(forward.scratch_bytes(), 4096U);
  }
}

TEST_F(DnnPlanTest, TheSameGraphGetsTheSameKernel) {
  const AttentionShape& s = kShapes[0];
  std::vector<std::string> names;
  for (int time = 0; time < 2; ++time) {
    plan(attention_graph(s), dnn_plan_scratch(s));
    plan(attention_gradient_graph(s), dnn_plan_scratch(s));
    names.push_back(kernels());
  }
  EXPECT_FALSE(names[0].empty());
  EXPECT_EQ(names[0], names[1]);
}

TEST_F(DnnPlanTest, MoreScratchThanAllowedIsRefused) {
  const AttentionShape& s = kShapes[0];
  const std::size_t least = plan(attention_gradient_graph(s), dnn_plan_scratch(s)).scratch_bytes();
  try {
    plan(attention_gradient_graph(s), least / 2);
    FAIL() << "found a plan that needs at most half the scratch";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find(fmt::format("{} bytes of scratch", least)), std::string::npos)
        << error.message();
  }
}

TEST_F(DnnPlanTest, AShapeThatNoKernelFitsIsRefusedWithAReason) {
  try {
    plan(attention_graph({1, 64, 1, 12, DType::bf16}), 1 << 20);
    FAIL() << "accepted heads of 12 columns";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("cuDNN has no plan: "), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace concertina::cuda
