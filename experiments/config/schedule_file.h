// A user's own schedule: a file where `parallel.schedule` names one.
// Invariant: what comes out of `fit` is a layout that validates and a plan that check() accepts; a
// file says what each rank does, never which units or samples.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/config/config.h"
#include "parallel/plan/check.h"
#include "parallel/plan/schedule.h"

namespace concertina {

/// `text` names a file: it has a '/', ends in ".csv", or is no schedule of the registry and a file
/// of that name exists.
bool is_schedule_file(const std::string& text);

/// As it is written: `layout` is what its rows say, one unit a stage.
struct ScheduleFile {
  std::string path;
  Plan plan;
  Layout layout;
};

/// A longer file is refused: it would have more actions than a plan may have (kMostActions).
inline constexpr std::uint64_t kMostScheduleBytes = std::uint64_t{256} << 20;

/// Throws Error{bad_input} if the file cannot be read or is no schedule. It is not checked yet.
ScheduleFile read_schedule_file(const std::string& path);

/// Replicas of `file` in a world of this size: as many as its microbatches go into those of a step.
/// 0 if that is not what the world has ranks for.
int fitting_replicas(const ScheduleFile& file, int world, int microbatches);

/// The file's plan on all ranks, complete (parallel/generate/passes.h), and its layout:
/// `parallel.layout`, or replicas of the file's own with units of these costs cut by
/// `parallel.partition`. Throws Error{bad_input} if the file does not fit the config, the model or
/// the world size, or breaks a rule of the checker.
struct FittedSchedule {
  Plan plan;
  Layout layout;
};
FittedSchedule fit(const ScheduleFile& file, const RunConfig& config,
                   const std::vector<double>& unit_costs, const LayoutLimits& limits);

}  // namespace concertina
