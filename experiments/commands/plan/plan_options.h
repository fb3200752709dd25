// Options shared by the `plan` commands.
#pragma once

#include <functional>
#include <string>

#include "experiments/commands/command.h"
#include "experiments/predict/plan_report.h"

namespace concertina {

constexpr int kMostPlannedRanks = 1 << 16;

/// Options for a prediction based on a run, a machine file or a rate.
struct PredictionSource : ConfigOptions {
  PlanOptions plan;
  std::string machine;  // preset or machine file, for `plan.costs`
};

void add_world_option(CLI::App& app, int& world);
/// Adds --costs, --machine and --links, and with `rates` also --rate, which `move` does not need.
void add_source_options(CLI::App& app, PredictionSource& options, bool rates);
/// The costs that the options specify. Throws Error{bad_input} if an option has no effect.
PlanOptions plan_options(const PredictionSource& options);

/// Returns a callback that prints the progress of long computations.
std::function<void(const std::string&)> slow_teller();

}  // namespace concertina
