// Tests the CUDA backend's clock on a device that uses the test's clock, with a profiler attached.
#include <gtest/gtest.h>
#define NVTX_NO_IMPL  // this test is the profiler that NVTX calls
#include <nvtx3/nvToolsExt.h>

#include <string>
#include <vector>

#include "core/clock.h"
#include "core/cuda/backend.h"
#include "device_clock.h"

namespace concertina {
namespace {

std::vector<std::string> ranges;

int push(const char* name) {
  ranges.emplace_back(name);
  return 0;
}
int pop() {
  ranges.emplace_back("-");
  return 0;
}

/// What a profiler does when NVTX loads it.
int listen(NvtxGetExportTableFunc_t table) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable functions = nullptr;
  unsigned count = 0;
  if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &functions, &count) == 0) return 0;
  *functions[NVTX_CBID_CORE_RangePushA] = reinterpret_cast<NvtxFunctionPointer>(push);
  *functions[NVTX_CBID_CORE_RangePop] = reinterpret_cast<NvtxFunctionPointer>(pop);
  return 1;
}

constexpr double kKernel = 0x1p-3;  // seconds; distances between events are exact

class EventClockTest : public testing::Test {
 protected:
  EventClockTest() { emulation::kernels_take(kKernel); }
  ~EventClockTest() override { emulation::kernels_take(-1); }

  void kernels(int count) {
    for (int i = 0; i < count; ++i) backend_->run(Axpby{1, x_, 0, x_});
  }

  std::unique_ptr<Backend> backend_ = cuda::make_cuda_backend({});
  KernelClock& clock_ = backend_->clock();
  std::vector<float> memory_ = std::vector<float>(64);
  View x_{memory_.data(), memory_.size(), DType::f32};
};

TEST_F(EventClockTest, MarksAreBetweenKernels) {
  const double before = clock_.mark();
  kernels(3);
  const double middle = clock_.mark();
  kernels(1);
  const double behind = clock_.mark();
  clock_.settle();
  EXPECT_EQ(clock_.time(middle) - clock_.time(before), 3 * kKernel);
  EXPECT_EQ(clock_.time(behind) - clock_.time(middle), kKernel);
}

TEST_F(EventClockTest, TimesAreOnTheHostsClock) {
  kernels(5);
  for (int step = 0; step < 3; ++step) {
    const double start = clock_.mark();
    kernels(2);
    const double end = clock_.mark(), early = now();
    clock_.settle();
    const double late = now();
    EXPECT_GE(clock_.time(end), early);
    EXPECT_LE(clock_.time(end), late);
    EXPECT_NEAR(clock_.time(end) - clock_.time(start), 2 * kKernel, 1e-9);
  }
}

TEST_F(EventClockTest, AHostThatWaitsBesideKernelsIsNotIdle) {
  kernels(4);
  const double wait = clock_.mark();
  emulation::host_passes(3 * kKernel);
  const double over = clock_.mark();
  emulation::host_passes(2 * kKernel);
  const double late = clock_.mark();
  clock_.settle();
  EXPECT_EQ(clock_.time(over) - clock_.time(wait), 0);
  EXPECT_EQ(clock_.time(late) - clock_.time(over), kKernel);
}

TEST_F(EventClockTest, ReservedMarksMakeNothing) {
  clock_.reserve(100);
  const int made = emulation::events_made();
  for (int step = 0; step < 3; ++step) {
    double mark = 0;
    for (int i = 0; i < 100; ++i) mark = clock_.mark();
    clock_.settle();
    EXPECT_GT(clock_.time(mark), 0);
  }
  EXPECT_EQ(emulation::events_made(), made);
  for (int i = 0; i < 300; ++i) clock_.mark();  // more events, created only in the first such step
  const int grown = emulation::events_made();
  EXPECT_GT(grown, made);
  clock_.settle();
  for (int i = 0; i < 300; ++i) clock_.mark();
  EXPECT_EQ(emulation::events_made(), grown);
}

TEST_F(EventClockTest, AMarkHasATimeOnlyAfterSettle) {
  const double mark = clock_.mark();
  EXPECT_ANY_THROW((void)clock_.time(mark));
  clock_.settle();
  EXPECT_NO_THROW((void)clock_.time(mark));
  clock_.mark();
  EXPECT_ANY_THROW((void)clock_.time(mark));
}

TEST_F(EventClockTest, AProfilerSeesRanges) {
  ranges.clear();
  clock_.enter("outer");
  clock_.enter("inner");
  clock_.leave();
  clock_.leave();
  EXPECT_EQ(ranges, (std::vector<std::string>{"outer", "inner", "-", "-"}));
}

}  // namespace
}  // namespace concertina

extern "C" {
NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr = concertina::listen;
}
