// A training on the emulated CUDA backend, whose kernels all take the same time on the device's
// clock: the trace, the bubble, the costs and the profile must show that time, not the host's.
#include <gtest/gtest.h>

#include <cmath>

#include "core/cuda/backend.h"
#include "core/profile_backend.h"
#include "experiments/predict/measured_costs.h"
#include "experiments/record/tracing.h"
#include "tests/core/cuda_emulation/device_clock.h"
#include "tests/core/cuda_emulation/streams.h"
#include "tests/integration/training.h"
#include "tests/threads/thread_communicator.h"

namespace concertina {
namespace {

constexpr double kKernel = 0x1p-10;  // seconds; distances between events are exact
constexpr double kNear = 1e-7;
constexpr int kSteps = 3;

RunConfig tiny_config() {
  RunConfig config = with_grid(small_config(), 1, 1, "1f1b");
  config.model = {.layers = 1, .width = 16, .heads = 2, .context = 8, .vocab = 13};
  config.batch = {4, 2};
  return config;
}

double kernels(double seconds) {
  EXPECT_NEAR(seconds / kKernel, std::round(seconds / kKernel), kNear / kKernel);
  return std::round(seconds / kKernel);
}

/// One rank on the emulated device.
struct EmulatedRank {
  EmulatedRank(Communicator& world, bool profiles)
      : trainer(config, profiles ? *profiled : *device, world) {
    emulation::kernels_take(kKernel);
    trainer.start();
    trainer.initialize();
  }
  ~EmulatedRank() { emulation::kernels_take(-1); }
  EmulatedRank(const EmulatedRank&) = delete;
  EmulatedRank& operator=(const EmulatedRank&) = delete;

  /// Returns the number of kernels that the step issued.
  int step(int number) {
    const int before = emulation::kernels_issued();
    trainer.step(number, source);
    return emulation::kernels_issued() - before;
  }

  const RunConfig config = tiny_config();
  std::unique_ptr<Backend> device = cuda::make_cuda_backend({});
  Profile profile;
  std::unique_ptr<Backend> profiled = make_profile_backend(*device, profile);
  Trainer trainer;
  SyntheticSource source{config.model.context, config.model.vocab};
};

/// A rank that has trained kSteps recorded and profiled steps.
struct Trained : EmulatedRank {
  explicit Trained(Communicator& world) : EmulatedRank(world, true) {
    trainer.engine().executor().recorder().keep(1, kSteps);
    profiled->clock().settle();
    profile.reset();
    for (int number = 1; number <= kSteps; ++number) issued = step(number);
  }
  int issued = 0;
};

TEST(DeviceTimes, TheTraceHasThemAndNoIdleTime) {
  run_threads(1, [](Communicator& world) {
    Trained trained(world);
    const RunTrace trace = gather_trace(trained.trainer, trained.config, measure_offset(world));
    const std::vector<Action>& row = trace.plan.rows[0];
    for (const std::vector<StepRecord>& step : trace.steps) {
      const StepRecord& record = step[0];
      EXPECT_EQ(kernels(record.end - record.start), trained.issued);
      EXPECT_EQ(kernels(busy_seconds(row, record)), trained.issued);
      double sum = 0;
      for (std::size_t i = 0; i < row.size(); ++i) {
        sum += kernels(record.actions[i].busy);
        EXPECT_TRUE(record.actions[i].busy > 0 || !is_compute(row[i].kind));
        const std::size_t same = row[i].kind == Kind::F ? 0 : i;
        EXPECT_NEAR(record.actions[i].busy, record.actions[same].busy, kNear);
      }
      EXPECT_EQ(sum, trained.issued);
    }
  });
}

TEST(DeviceTimes, CostsAreMadeOfThem) {
  run_threads(1, [](Communicator& world) {
    Trained trained(world);
    const StepRecord record = trained.trainer.engine().executor().recorder().last();
    const MeasuredCosts costs = measure_costs(trained.trainer, *trained.profiled, 1);
    double forward = 0, all = 0;
    for (const UnitSeconds& unit : costs.units) {
      forward += kernels(unit.forward);
      all += unit.forward + unit.input + unit.weight;
    }
    EXPECT_EQ(forward, kernels(record.actions[0].busy));
    EXPECT_NEAR(all * trained.trainer.job().microbatches, record.stage_seconds, kNear);
    EXPECT_NEAR(costs.machine.combine_s_per_byte * (1 << 20), kKernel, kNear);
    const auto elements = static_cast<double>(trained.trainer.engine().trained_elements());
    const double step =
        costs.machine.norm_s_per_element * elements + costs.machine.update_s_per_element * elements;
    double pack = 0;
    for (const UnitSeconds& unit : costs.units) pack += unit.pack;
    EXPECT_EQ(kernels(step + pack), kernels(record.actions.back().busy));
  });
}

TEST(DeviceTimes, TheProfileHasThem) {
  run_threads(1, [](Communicator& world) {
    Trained trained(world);
    double seconds = 0;
    for (const auto& [name, kernel] : trained.profile.kernels) {
      if (kernel.calls == 0) continue;
      EXPECT_GE(kernel.seconds, static_cast<double>(kernel.calls) * kKernel - kNear) << name;
      seconds += kernel.seconds;
    }
    EXPECT_EQ(kernels(seconds), kSteps * trained.issued);
  });
}

/// The same kernels, with the same times in the trace, using a fraction of the calls.
TEST(DeviceTimes, GraphsSaveCallsAndKeepTimes) {
  run_threads(1, [](Communicator& world) {
    EmulatedRank rank(world, false);
    int first_kernels = 0, first_calls = 0;
    for (int step = 1; step <= 4; ++step) {
      const int before = emulation::calls_made();
      const int issued = rank.step(step);
      const int calls = emulation::calls_made() - before;
      if (step == 1) first_kernels = issued, first_calls = calls;
      EXPECT_EQ(issued, first_kernels) << "step " << step;
      EXPECT_EQ(kernels(busy_seconds(rank.trainer.engine().executor().row(),
                                     rank.trainer.engine().executor().recorder().last())),
                issued);
      if (step > 2) {
        EXPECT_LT(calls, first_calls / 2) << "step " << step;
      }
    }
  });
}

TEST(DeviceTimes, AStepMakesNoEvent) {
  run_threads(1, [](Communicator& world) {
    EmulatedRank rank(world, false);
    rank.trainer.engine().executor().recorder().keep(2, 1);
    const int made = emulation::events_made();
    for (int step = 1; step <= kSteps; ++step) rank.step(step);
    EXPECT_EQ(emulation::events_made(), made);
  });
}

}  // namespace
}  // namespace concertina
