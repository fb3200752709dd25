// Progress: numbers stay readable at every size, and streams get the right lines.
#include "experiments/record/progress.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <sstream>

#include "core/step_history.h"
#include "core/text/number_text.h"
#include "experiments/machine/output.h"
#include "experiments/record/monitor.h"

namespace concertina {
namespace {

const ProgressMetrics kMetrics{20, 200, 2.34567, 12345, 0.123, 42};

/// Returns what is written to a stream that is not a terminal if every `every`th line is due.
template <class Body>
std::string printed(int every, Body body) {
  std::FILE* const stream = std::tmpfile();
  {
    Progress progress(stream, every);
    body(progress);
  }
  std::rewind(stream);
  std::string text;
  for (int c = std::fgetc(stream); c != EOF; c = std::fgetc(stream)) text += static_cast<char>(c);
  std::fclose(stream);
  return text;
}

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

TEST(Progress, AnEvaluationSaysHowFarItIs) {
  EXPECT_EQ(printed(1,
                    [](Progress& progress) {
                      for (int second = 1; second <= 25; ++second)
                        progress.evaluation(100 * second, 2500, second);
                    }),
            "evaluating: 1,000 of 2,500 targets  ETA 0:15\n"
            "evaluating: 2,000 of 2,500 targets  ETA 0:05\n");
}

TEST(Progress, TrainingLooksAtSomeOfTheHeldOutData) {
  RunConfig config;
  EXPECT_EQ(final_batches(config.eval), 16);
  EXPECT_EQ(periodic_batches(config.eval), 16);
  config.eval.batches = 0;  // in configs of older runs: all
  EXPECT_EQ(final_batches(config.eval), 0);
  EXPECT_EQ(periodic_batches(config.eval), 0);
  config.eval.periodic_batches = 3;
  EXPECT_EQ(periodic_batches(config.eval), 3);
}

TEST(Help, IsBrokenBetweenWords) {
  const std::string text =
      "Trains models.\n\nOptions:\n  --set TABLE.KEY=VALUE ...   set one config key, after all "
      "files; may "
      "be repeated\n  --averyveryverylongoption=withoutanyspaceinit\n";
  const auto words = [](const std::string& of) {
    std::istringstream in(of);
    return std::vector<std::string>(std::istream_iterator<std::string>(in), {});
  };
  EXPECT_EQ(words(wrapped(text, 0)), words(text));
  for (int columns = 40; columns < 130; ++columns) {
    const std::string one = wrapped(text, columns);
    EXPECT_EQ(words(one), words(text)) << columns;
    std::istringstream lines(one);
    for (std::string line; std::getline(lines, line);)
      EXPECT_TRUE(line.size() <= static_cast<std::size_t>(columns) ||
                  line.find(' ', line.find_first_not_of(' ')) == std::string::npos)
          << columns << ": " << line;
  }
  EXPECT_EQ(wrapped(text, 130), text);
}

TEST(Progress, LineHasTheFiguresAndWhatHasChanged) {
  ProgressMetrics metrics = kMetrics;
  EXPECT_EQ(progress_line(metrics),
            "step 20/200  loss 2.3457  12.3k tokens/s  bubble 12%  ETA 0:42");
  metrics.elastic = "pp2xdp1, 7 of 12 layers frozen";
  EXPECT_EQ(progress_line(metrics),
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
  ProgressMetrics metrics = kMetrics;
  for (const double sign : {1.0, -1.0}) {
    metrics.loss = std::copysign(std::nan(""), sign);
    EXPECT_EQ(progress_line(metrics).substr(0, 24), "step 20/200  loss NaN  1");
  }
  EXPECT_EQ(number_text(-std::numeric_limits<double>::infinity()), "-infinity");
  EXPECT_EQ(grouped(440440), "440,440");
  EXPECT_EQ(grouped(-1234567), "-1,234,567");
  EXPECT_EQ(grouped(999), "999");
}

TEST(Progress, BarFitsEveryWidthAndGrowsWithTheSteps) {
  for (int width = -1; width < 300; ++width)
    EXPECT_LE(static_cast<int>(progress_bar(kMetrics, width).size()), std::max(width, 0)) << width;
  const auto filled = [](std::int64_t step) {
    ProgressMetrics metrics = kMetrics;
    metrics.step = step;
    const std::string bar = progress_bar(metrics, 160);
    return std::count(bar.begin(), bar.end(), '#');
  };
  for (std::int64_t step = 1; step <= 200; ++step) EXPECT_GE(filled(step), filled(step - 1));
  EXPECT_EQ(filled(0), 0);
  EXPECT_EQ(filled(200), 40);
  EXPECT_EQ(filled(100), 20);
}

TEST(Progress, NoTerminalGetsOneLineEveryNSteps) {
  const std::string text = printed(10, [](Progress& progress) {
    ProgressMetrics metrics = kMetrics;
    metrics.steps = 25;
    for (metrics.step = 1; metrics.step <= 25; ++metrics.step) progress.update(metrics);
  });
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);  // 10, 20 and the last
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(text.find("step 25/25"), std::string::npos);
}

TEST(Progress, HeldOutFiguresAreALineOfTheirOwn) {
  Validation result{.loss = 0.43219, .targets = 872, .of = 1744, .metrics = {{"accuracy", 0.8125}}};
  EXPECT_EQ(held_out_line(20, 200, result),
            "step 20/200  held-out loss 0.4322, accuracy 81.25%, over 872 of 1,744 targets");
  result.metrics.clear();
  result.targets = result.of;
  EXPECT_EQ(held_out_line(200, 200, result),
            "step 200/200  held-out loss 0.4322, over 1,744 targets");
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
