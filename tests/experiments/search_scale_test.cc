// `schedule search` at a size that people search: it ends within half a minute, with a schedule
// that is no worse than any that has a name.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "experiments/predict/schedule_search_report.h"
#include "tests/own_figures.h"

namespace concertina {
namespace {

constexpr double kMostSeconds = 30;  // of one core, in an optimised build

TEST(LargeSearch, TakesSeconds) {
  const ScheduleSearch options{.ranks = 8, .microbatches = 32, .memory = 8};
  const double start = cpu_seconds();
  const SearchedSchedule found = search_schedule(options, ScheduleCosts({"1", "1", "1"}));
  const double seconds = cpu_seconds() - start;
  double named = 0;
  for (const auto& one : found.report.at("named"))
    if (one.at("within").get<bool>())
      named = named == 0 ? one.at("makespan").get<double>()
                         : std::min(named, one.at("makespan").get<double>());
  const double makespan = found.report.at("makespan").get<double>();
  EXPECT_GT(named, 0);
  EXPECT_LE(makespan, named);
  EXPECT_GE(makespan, 3 * 32);
  std::printf("%d ranks, %d microbatches: searched in %.2f s, makespan %g, best with a name %g\n",
              options.ranks, options.microbatches, seconds, makespan, named);
  if (!kOptimised) GTEST_SKIP() << "no bounds for builds that are not optimised";
  EXPECT_LT(seconds, kMostSeconds);
}

}  // namespace
}  // namespace concertina
