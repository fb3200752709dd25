// Options that the commands of `plan` share.
#pragma once

#include <functional>
#include <string>

#include "experiments/commands/command.h"
#include "experiments/predict/plan_report.h"

namespace concertina {

constexpr int kMostPlannedRanks = 1 << 16;

/// The options of a prediction from a run, a machine file or a rate.
struct PredictionSource : ConfigOptions {
  PlanOptions plan;
  std::string machine;  // a preset or a machine file, as `plan.costs`
};

void add_world_option(CLI::App& app, int& world);
/// Adds --costs, --machine and --links; with `rates` also --rate, which moves do not need.
void add_source_options(CLI::App& app, PredictionSource& options, bool rates);
/// The costs that the options name; throws Error{bad_input} for those that leave others without
/// effect.
PlanOptions plan_options(const PredictionSource& options);

/// Tells what goes on, where it takes long.
std::function<void(const std::string&)> slow_teller();

}  // namespace concertina
