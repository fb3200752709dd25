// Progress: figures that stay readable at every size, and what reaches a stream.
#include "experiments/run/progress.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "core/number_text.h"
#include "core/step_history.h"
#include "experiments/run/utilization.h"

namespace concertina {
namespace {

const ProgressFigures kFigures{20, 200, 2.34567, 12345, 0.123, 42};

TEST(Progress, Durations) {
  EXPECT_EQ(format_duration(0), "0:00");
  EXPECT_EQ(format_duration(5.4), "0:05");
  EXPECT_EQ(format_duration(59.6), "1:00");
  EXPECT_EQ(format_duration(754), "12:34");
  EXPECT_EQ(format_duration(10921), "3:02:01");
  EXPECT_EQ(format_duration(127 * 3600.0), "5d 07h");
  for (const double unknown : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()})
    EXPECT_EQ(format_duration(unknown), "?");
}

TEST(Progress, RatesKeepThreeDigits) {
  EXPECT_EQ(format_rate(0), "0");
  EXPECT_EQ(format_rate(950.4), "950");
  EXPECT_EQ(format_rate(999.6), "1.00k");
  EXPECT_EQ(format_rate(1234), "1.23k");
  EXPECT_EQ(format_rate(9999), "10.0k");
  EXPECT_EQ(format_rate(99990), "100k");
  EXPECT_EQ(format_rate(12345678), "12.3M");
  EXPECT_EQ(format_rate(std::nan("")), "?");
  for (double rate = 1; rate < 1e14; rate *= 1.07) EXPECT_LE(format_rate(rate).size(), 5U) << rate;
}

TEST(Progress, LineHasTheFigures) {
  EXPECT_EQ(progress_line(kFigures),
            "step 20/200  loss 2.3457  12.3k tokens/s  bubble 12%  ETA 0:42");
}

TEST(Progress, LineHasWhatHasChanged) {
  ProgressFigures figures = kFigures;
  figures.elastic = "pp2xdp1, 7 of 12 layers frozen";
  EXPECT_EQ(progress_line(figures),
            "step 20/200  loss 2.3457  12.3k tokens/s  bubble 12%  pp2xdp1, 7 of 12 layers frozen  "
            "ETA 0:42");
}

TEST(Progress, WhatComesEveryNStepsComesOnceForEachMultipleThatIsReached) {
  for (const std::int64_t every : {1, 2, 3, 7, 10})
    for (const std::int64_t together : {1, 2, 3, 5})
      for (std::int64_t before = 0; before <= 60; before += together) {
        bool reached = false;
        for (std::int64_t step = before + 1; step <= before + together; ++step)
          reached = reached || step % every == 0;
        EXPECT_EQ(is_due(before, before + together, every), reached);
      }
  EXPECT_FALSE(is_due(0, 10, 0));
}

TEST(Progress, WhatIsNoNumberIsSaidInWords) {
  ProgressFigures figures = kFigures;
  for (const double sign : {1.0, -1.0}) {
    figures.loss = std::copysign(std::nan(""), sign);
    EXPECT_EQ(progress_line(figures).substr(0, 24), "step 20/200  loss NaN  1");
  }
  EXPECT_EQ(number_text(-std::numeric_limits<double>::infinity()), "-infinity");
  EXPECT_EQ(grouped(440440), "440,440");
  EXPECT_EQ(grouped(-1234567), "-1,234,567");
  EXPECT_EQ(grouped(999), "999");
}

TEST(Utilization, IsThatOfThePublishedFormula) {
  RunConfig config;
  // The 145.6B model of Narayanan et al. 2021, table 1: 80 layers, width 12288, batch 2304.
  config.model = {"gpt", 80, 12288, 96, 2048, 51200};
  config.batch.global = 2304;
  const double B = 2304, s = 2048, l = 80, h = 12288, V = 51200;
  const double recomputed = 96 * B * s * l * h * h * (1 + s / (6 * h) + V / (16 * l * h));
  const double again = 24 * B * s * l * h * h * (1 + s / (6 * h));  // the layers' forward pass
  EXPECT_NEAR(model_flops(config) / (recomputed - again), 1, 1e-12);
  EXPECT_NEAR(hardware_flops(config, Recompute::full) / recomputed, 1, 1e-12);
  EXPECT_NEAR(hardware_flops(config, Recompute::selective) - model_flops(config),
              4 * B * s * s * h * l, 1e9);
  const ForwardFlops forward = forward_flops(config.model);
  EXPECT_NEAR(l * (forward.products + forward.attention) + forward.head,
              model_flops(config) / (3 * B), 1);
  config.model.family = "other";
  EXPECT_EQ(model_flops(config), 0);
  // Published for a trial of BLOOM: 117.07 s a step of 2048 samples are 137.70 TFLOP/s on 384 GPUs.
  config.model = {"gpt", 72, 14336, 64, 2048, 250880};
  config.batch.global = 2048;
  EXPECT_NEAR(hardware_flops(config, Recompute::full) / (117.07 * 384 * 1e12), 137.70, 0.02);

  EXPECT_EQ(peak_flops_per_s(config, "NVIDIA H100 80GB HBM3"), 0);  // runs on the CPU
  config.run.device = "cuda";
  config.numerics.compute = "bf16";
  EXPECT_DOUBLE_EQ(peak_flops_per_s(config, "cuda: NVIDIA H200, 141 GB"), 989.5e12);
  EXPECT_DOUBLE_EQ(peak_flops_per_s(config, "NVIDIA H100 PCIe"), 756.5e12);
  EXPECT_DOUBLE_EQ(peak_flops_per_s(config, "NVIDIA A100-SXM4-80GB"), 312e12);
  EXPECT_EQ(peak_flops_per_s(config, "NVIDIA GeForce GTX 1080"), 0);
  config.numerics.compute = "fp8";
  EXPECT_EQ(peak_flops_per_s(config, "NVIDIA A100-SXM4-80GB"), 0);
  config.run.peak_tflops = 5;
  EXPECT_DOUBLE_EQ(peak_flops_per_s(config, "NVIDIA A100-SXM4-80GB"), 5e12);
}

TEST(Progress, BarFitsEveryWidthAndGrowsWithTheSteps) {
  for (int width = -1; width < 300; ++width)
    EXPECT_LE(static_cast<int>(progress_bar(kFigures, width).size()), std::max(width, 0)) << width;
  const auto filled = [](std::int64_t step) {
    ProgressFigures figures = kFigures;
    figures.step = step;
    const std::string bar = progress_bar(figures, 160);
    return std::count(bar.begin(), bar.end(), '#');
  };
  for (std::int64_t step = 1; step <= 200; ++step) EXPECT_GE(filled(step), filled(step - 1));
  EXPECT_EQ(filled(0), 0);
  EXPECT_EQ(filled(200), 40);
  EXPECT_EQ(filled(100), 20);
}

TEST(Progress, NoTerminalGetsOneLineEveryNSteps) {
  std::FILE* stream = std::tmpfile();
  ASSERT_NE(stream, nullptr);
  {
    Progress progress(stream, 10);
    for (std::int64_t step = 1; step <= 25; ++step) {
      ProgressFigures figures = kFigures;
      figures.step = step;
      figures.steps = 25;
      progress.update(figures);
    }
  }
  std::rewind(stream);
  std::string text;
  for (int c = std::fgetc(stream); c != EOF; c = std::fgetc(stream)) text += static_cast<char>(c);
  std::fclose(stream);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);  // 10, 20 and the last
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(text.find("step 25/25"), std::string::npos);
}

TEST(Eta, FollowsTheLatestSteps) {
  Eta eta;
  EXPECT_LT(eta.seconds_left(10), 0);
  eta.add(2);
  EXPECT_DOUBLE_EQ(eta.seconds_left(10), 20);
  for (int i = 0; i < 200; ++i) eta.add(1);
  EXPECT_NEAR(eta.seconds_left(10), 10, 1e-6);
  EXPECT_DOUBLE_EQ(eta.seconds_left(0), 0);
}

}  // namespace
}  // namespace concertina
