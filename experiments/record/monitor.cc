#include "experiments/record/monitor.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/log.h"
#include "core/text/number_text.h"
#include "experiments/run/planning.h"
#include "io/run_files.h"

namespace concertina {

std::string held_out_line(std::int64_t step, std::int64_t steps, const Validation& result) {
  return fmt::format("step {}/{}  held-out loss {}{}, over {}", step, steps,
                     number_text(result.loss), metrics_text(result), text_share(result));
}

Monitor::Monitor(const RunConfig& config, const std::string& directory, std::int64_t last_step)
    : model_(job_of(config).model),
      freezes_(config.freeze.policy != "none"),
      batch_(config.batch.global),
      steps_(config.run.steps),
      progress_(stderr, config.log.every) {
  attempt(kMetricsFile, [&] { metrics_.emplace(run_file(directory, kMetricsFile), last_step); });
  attempt(kEventsFile, [&] { events_.emplace(run_file(directory, kEventsFile), last_step); });
  if (config.log.tensorboard)
    attempt("TensorBoard",
            [&] { tensorboard_.emplace(run_file(directory, kTensorBoardFolder), last_step); });
}

void Monitor::attempt(const std::string& what, const std::function<void()>& write) {
  try {
    write();
  } catch (const Error& error) {
    if (failed_.insert(what).second)
      log::warn("cannot write {}, so lines are lost: {} ({}); training continues", what,
                error.message(), error.where());
  }
}

/// The layout, frozen layers and batch, once one of them has changed.
std::string Monitor::elastic_text(const StepMetrics& metrics) {
  if (first_layout_.empty()) first_layout_ = metrics.layout;
  if (metrics.frozen_units == 0 && metrics.layout == first_layout_ && metrics.batches == 1)
    return "";
  const std::string frozen = frozen_text(model_, metrics.frozen_units);
  const std::string batch =
      metrics.batches > 1 ? fmt::format(", batch {}", metrics.batches * batch_) : "";
  return metrics.layout + (frozen.empty() ? "" : ", ") + frozen + batch;
}

void Monitor::step(const StepMetrics& metrics, double evaluations) {
  if (metrics_) attempt(kMetricsFile, [&] { metrics_->write(to_json(metrics)); });
  eta_.add(metrics.step_ms * 1e-3);
  progress_.update(
      {.step = metrics.step,
       .steps = steps_,
       .loss = metrics.loss,
       .tokens_per_s = metrics.tokens_per_s,
       .bubble = metrics.bubble,
       .seconds_left = eta_.seconds_left(static_cast<double>(steps_ - metrics.step) + evaluations),
       .elastic = elastic_text(metrics),
       .batches = metrics.batches});
  if (!tensorboard_) return;
  attempt("TensorBoard", [&] {
    for (const MetricNumber& number : metric_numbers(metrics))
      if (!number.tag.empty() && (freezes_ || number.name != "frozen_units"))
        tensorboard_->scalar(number.tag, metrics.step, number.value);
  });
}

void Monitor::validation(std::int64_t step, const Validation& result, bool final) {
  nlohmann::ordered_json facts{{"loss", result.loss},
                               {"tokens", result.targets},
                               {"of_tokens", result.of},
                               {"seconds", result.seconds},
                               {"final", final}};
  for (const Metric& metric : result.metrics) facts[metric.name] = metric.value;
  facts.update(measure_json(result));
  event(step, EventKind::validation, facts);
  if (!final) curve_tokens_ = result.targets;
  const bool on_curve = curve_tokens_ == 0 || curve_tokens_ == result.targets;
  if (!tensorboard_) return;
  attempt("TensorBoard", [&] {
    tensorboard_->scalar(on_curve ? "validation/loss" : "validation/final_loss", step, result.loss);
    for (const Metric& metric : result.metrics)
      tensorboard_->scalar((on_curve ? "validation/" : "validation/final_") + metric.name, step,
                           metric.value);
  });
}

void Monitor::event(std::int64_t step, EventKind kind, const nlohmann::ordered_json& details) {
  if (events_) attempt(kEventsFile, [&] { events_->write(event_line(step, kind, details)); });
}

}  // namespace concertina
