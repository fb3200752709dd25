#include "experiments/train/selection.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/text/nearest.h"
#include "core/text/number_text.h"

namespace concertina {
namespace {

constexpr const char* kLoss = "validation_loss";

/// The metric that the config names, and whether lower or higher is better.
Metric find_metric(const RunConfig& config, std::span<const Field> reads,
                   std::shared_ptr<const Dataset> dataset) {
  const std::string& name = config.checkpoint.best;
  if (name.empty() && config.run.patience == 0) return {};
  const char* const key = name.empty() ? "run.patience" : "checkpoint.best";
  if (dataset->targets(Split::validation) == 0)
    throw_input(fmt::format("{} needs evaluations, but there is no held-out data", key),
                config.where(key), "data.validation = 0.1, or data.validation_files");
  if (name.empty() || name == kLoss) return {.name = kLoss, .minimise = true};
  std::vector<std::string_view> names{kLoss};
  const auto predictions = make_predictions(config, reads, dataset, Split::validation);
  const std::vector<Metric> metrics =
      predictions == nullptr ? std::vector<Metric>() : predictions->metrics({});
  for (const Metric& metric : metrics) {
    if (metric.name == name) return metric;
    names.push_back(metric.name);
  }
  const std::string nearest(nearest_word(name, names));
  throw_input(
      fmt::format("checkpoint.best = \"{}\": evaluations of this task do not provide this metric",
                  name),
      config.where(key),
      fmt::format("{}one of: {}", nearest.empty() ? "" : "\"" + nearest + "\"; ",
                  fmt::join(names, ", ")));
}

double value_of(const Validation& validation, const std::string& name) {
  if (name == kLoss) return validation.loss;
  const auto found = std::ranges::find(validation.metrics, name, &Metric::name);
  CONCERTINA_CHECK(found != validation.metrics.end(), "an evaluation without {}", name);
  return found->value;
}

}  // namespace

Selection::Selection(const RunConfig& config, std::span<const Field> reads,
                     std::shared_ptr<const Dataset> dataset)
    : keeps_(!config.checkpoint.best.empty()),
      patience_(config.run.patience),
      least_(config.run.least_improvement),
      metric_(find_metric(config, reads, std::move(dataset))),
      metrics_(metric_.minimise),
      waiting_(metric_.minimise, least_) {}

void Selection::see(std::int64_t step, const Validation& validation, bool due) {
  const double value = value_of(validation, metric_.name);
  BestMetric next = waiting_;
  if (next.see(value) || due) waiting_ = next;
  if (!metrics_.see(value)) return;
  before_ = std::exchange(best_, BestCommit{metric_.name, step, value});
}

void Selection::lost() {
  best_ = before_;
  metrics_ = BestMetric(metric_.minimise);
  if (best_) metrics_.see(best_->value);
}

void Selection::forget() {
  before_.reset();
  lost();
}

nlohmann::json Selection::progress() const {
  nlohmann::json progress = {
      {"by", metric_.name}, {"no_better", waiting_.no_better()}, {"waiting_for", waiting_.best()}};
  if (best_) progress.update({{"step", best_->step}, {"value", best_->value}, {"kept", keeps_}});
  return progress;
}

void Selection::restore(const nlohmann::json& stored) {
  if (!stored.is_object() || stored.value("by", "") != metric_.name) return;
  const auto number = [&](const char* key) {
    const auto value = stored.find(key);
    return value != stored.end() && value->is_number() ? value->get<double>() : std::nan("");
  };
  waiting_.restore(number("waiting_for"), stored.value("no_better", 0));
  if (!stored.contains("step") || (keeps_ && !stored.value("kept", false))) return;
  best_ = BestCommit{metric_.name, stored["step"].get<std::int64_t>(), number("value")};
  metrics_.restore(best_->value, 0);
}

std::string ending(const Selection& selection) {
  return fmt::format("{} without a better {}", counted(selection.no_better(), "evaluation"),
                     selection.metric());
}

std::string standing(const Selection& selection, std::int64_t step) {
  if (!selection.best()) return "";
  const bool now = selection.best()->step == step;
  std::string text = now ? "best so far" : fmt::format("best: step {}", selection.best()->step);
  if (selection.patience() > 0 && selection.no_better() > 0)
    text += fmt::format("; {} of {} without a better one", selection.no_better(),
                        counted(selection.patience(), "evaluation"));
  return fmt::format(" ({})", text);
}

}  // namespace concertina
