#include "experiments/predict/memory_advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "core/number_text.h"
#include "experiments/config/schedule_file.h"
#include "experiments/predict/predict_memory.h"
#include "experiments/run/planning.h"

namespace concertina {
namespace {

struct Candidate {
  int pp = 0, dp = 0, microbatches = 0;
  std::size_t bytes = 0;  // of the largest rank
  std::string schedule;   // in place of a file, which fits one layout only
};

/// All grids of this world size at this number of microbatches.
std::vector<Candidate> grids(RunConfig config, int world, int threads, int microbatches) {
  config.batch.microbatches = microbatches;
  config.parallel.layout = {};
  std::string schedule;
  if (is_schedule_file(config.parallel.schedule))
    schedule = config.parallel.schedule = ParallelSection{}.schedule;
  const Job job = job_of(config);
  const LayoutLimits limits{.world = world - config.parallel.spare,
                            .units = job.units(),
                            .microbatches = microbatches,
                            .leaves = job.leaves};
  std::vector<Candidate> result;
  for (const Grid& grid : fitting_grids(limits, folding_of(request_of(config, world)))) {
    config.parallel.pp = grid.pp;
    config.parallel.dp = grid.dp;
    const std::size_t bytes =
        largest_total(predict_memory(config, job, assignment_of(config, job, world), threads));
    result.push_back({grid.pp, grid.dp, microbatches, bytes, schedule});
  }
  return result;
}

std::string text(const Candidate& candidate, int microbatches) {
  std::string change = fmt::format("parallel.pp={} parallel.dp={}", candidate.pp, candidate.dp);
  if (candidate.microbatches != microbatches)
    change += fmt::format(" batch.microbatches={}", candidate.microbatches);
  if (!candidate.schedule.empty())
    change += fmt::format(" parallel.schedule={}", candidate.schedule);
  return fmt::format("{} ({} per rank)", change, gib_text(candidate.bytes));
}

}  // namespace

// The fewest changes first: another grid, then smaller microbatches as well.
std::string what_fits(const RunConfig& config, int world, int threads, std::size_t available) {
  std::optional<Candidate> least;
  const int given = config.batch.microbatches;
  for (int microbatches = given; config.batch.global % microbatches == 0; microbatches *= 2) {
    std::vector<std::string> fitting;
    for (const Candidate& candidate : grids(config, world, threads, microbatches)) {
      if (candidate.bytes <= available) fitting.push_back(text(candidate, given));
      if (!least || candidate.bytes < least->bytes) least = candidate;
    }
    if (!fitting.empty()) return fmt::format("what fits: {}", fmt::join(fitting, "; "));
  }
  if (!least) return "no pp x dp of this world size fits the model";
  return fmt::format("no layout of {} fits, the smallest is {}: more ranks or a smaller model",
                     counted(world, "rank"), text(*least, given));
}

std::vector<std::string> memory_advice(const RunConfig& config, int threads,
                                       const std::vector<RankMemory>& memory,
                                       const MemoryBytes& machine) {
  const std::size_t largest = largest_total(memory), available = machine.available;
  if (largest > available)
    return {fmt::format("the largest rank needs {}, {} has {} free; {}", gib_text(largest),
                        machine.name, gib_text(available),
                        what_fits(config, static_cast<int>(memory.size()), threads, available))};
  const std::size_t all =
      std::accumulate(memory.begin(), memory.end(), std::size_t{0},
                      [](std::size_t sum, const RankMemory& rank) { return sum + rank.total(); });
  if (all <= available) return {};
  return {fmt::format("all {} ranks need {}, {} has {} free: at most {} of them fit there",
                      memory.size(), gib_text(all), machine.name, gib_text(available),
                      available / largest)};
}

}  // namespace concertina
