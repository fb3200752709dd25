#include "experiments/record/launch_figures.h"

#include "core/step_history.h"

namespace concertina {

void LaunchFigures::add(int count, double seconds, double bubble) {
  seconds_.insert(seconds_.end(), static_cast<std::size_t>(count), seconds);
  sum_ += count * seconds;
  idle_ += count * bubble * seconds;
}

double LaunchFigures::median_seconds() const {
  return median(seconds_);
}

nlohmann::ordered_json to_json(const LaunchFigures& figures, const LaunchSummary& summary) {
  nlohmann::ordered_json json = {{"steps", summary.step}, {"launch_steps", figures.steps()}};
  if (summary.last)
    json.update({{"loss", summary.last->loss},
                 {"grad_norm", summary.last->grad_norm},
                 {"lr", summary.last->lr}});
  if (summary.validation.targets > 0)
    json.update({{"validation_loss", summary.validation.loss},
                 {"validation_tokens", summary.validation.targets},
                 {"validation_of_tokens", summary.validation.of}});
  for (const Metric& metric : summary.validation.metrics)
    json["validation_" + metric.name] = metric.value;
  if (figures.steps() > 0)
    json.update({{"tokens_per_s", figures.tokens_per_s()},
                 {"median_step_ms", figures.median_seconds() * 1e3},
                 {"bubble", figures.bubble()},
                 {"steps_s", figures.seconds()},
                 {"peak_bytes", summary.peak_bytes}});
  if (summary.cache) json["cache"] = to_json(*summary.cache);
  json.update({{"eval_s", summary.eval_seconds},
               {"checkpoint_s", summary.checkpoint_seconds},
               {"launch_s", summary.launch_seconds}});
  return json;
}

}  // namespace concertina
