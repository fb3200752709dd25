#include "experiments/launch/run_result.h"

#include <algorithm>

#include "experiments/record/known_costs.h"
#include "experiments/record/report_figures.h"
#include "parallel/simulate/simulate.h"

namespace concertina {
namespace {

using Json = nlohmann::ordered_json;

/// Steps that each recorded one did at once.
int batches_of(const RunTrace& trace, const Job& job) {
  int microbatches = 0;
  for (const Pipeline& pipeline : trace.layout.pipelines)
    microbatches = std::max(microbatches, pipeline.last_microbatch);
  return std::max(1, microbatches / job.microbatches);
}

Json recorded_json(const RunTrace& trace, const ReportFigures& figures, int batches) {
  const IdleCauses causes = figures.causes();
  Json by_cause;
  for (std::size_t c = 0; c < kCauses; ++c)
    by_cause[std::string(name_of(static_cast<Cause>(c)))] = causes.by_cause[c];
  return {{"first_step", trace.steps.front().front().step},
          {"steps", batches * std::ssize(trace.steps)},
          {"median_step_ms", figures.seconds * 1e3 / batches},
          {"bubble", figures.bubble()},
          {"bubble_causes", by_cause}};
}

}  // namespace

Json predicted_figures(const Launch& launch, const std::string& directory,
                       const std::optional<RunTrace>& trace) {
  const Assignment& assignment = launch.trainer.assignment();
  // A trace numbers the working ranks among themselves.
  const KnownCosts known = known_costs(directory, trace ? trace->layout : assignment.layout,
                                       trace ? trace->plan : assignment.plan);
  Json json;
  if (trace) {  // as `report` predicts: what ranks that share cores lose is in the recorded times
    const ReportFigures figures = compute_figures(*trace, known);
    const int batches = batches_of(*trace, launch.trainer.job());
    json["predicted_step_ms"] = figures.predicted_seconds * 1e3 / batches;
    json["predicted_bubble"] = figures.predicted_bubble();
    json["recorded"] = recorded_json(*trace, figures, batches);
  } else if (known.costs) {
    const Timeline timeline = simulate(assignment.plan, assignment.layout, *known.costs);
    json["predicted_step_ms"] = timeline.makespan * 1e3 / assignment.batches;
    json["predicted_bubble"] = timeline.mean_bubble;
  }
  return json;
}

Json about_run(const Launch& launch) {
  const RunConfig& config = launch.config;
  return {{"parameters", parameter_count(launch.trainer.assignment().buckets)},
          {"layout", short_form(launch.trainer.layout())},
          {"ranks", launch.world.size()},
          {"schedule", config.parallel.schedule},
          {"microbatches", launch.trainer.job().microbatches},
          {"batch", launch.trainer.job().batch() * launch.trainer.assignment().batches},
          {"device", config.run.device},
          {"compute", config.numerics.compute},
          {"seed", config.run.seed}};
}

}  // namespace concertina
