#include "experiments/results/figure_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/number_text.h"

namespace concertina {
namespace {

struct KnownName {
  const char *column, *title, *label, *unit;
  double factor = 1;
};

constexpr double kMebibyte = 1.0 / (1 << 20);
constexpr KnownName kKnownNames[] = {
    {"loss", "Training loss", "loss", "per target"},
    {"validation_loss", "Validation loss", "validation loss", "per target"},
    {"validation_bits_per_byte", "Validation bits/byte", "validation bits per byte", ""},
    {"validation_accuracy", "Validation accuracy (%)", "validation accuracy", "%", 100},
    {"train_s", "Training (s)", "training time", "s"},
    {"tokens_per_s", "Tokens/s", "throughput", "tokens/s"},
    {"median_step_ms", "Step time (ms)", "step time", "ms"},
    {"step_ms", "Step time (ms)", "step time", "ms"},
    {"bubble", "Bubble (%)", "bubble", "%", 100},
    {"mfu", "MFU (%)", "model FLOPs utilization", "%", 100},
    {"peak_bytes", "Peak memory (MiB)", "peak memory", "MiB", kMebibyte},
    {"grad_norm", "Gradient norm", "gradient norm", ""},
    {"parameters", "Parameters", "parameters", ""},
    {"trial_s", "Trial time (s)", "trial time", "s"},
    {"lr", "Learning rate", "learning rate", ""},
    {"optimizer.lr", "Learning rate", "learning rate", ""},
    {"optimizer.weight_decay", "Weight decay", "weight decay", ""},
    {"lr.warmup", "Warmup (steps)", "warmup", "steps"},
    {"arm", "Arm", "arm", ""},
    {"parallel.schedule", "Schedule", "schedule", ""},
    {"parallel.pp", "Stages", "pipeline stages", ""},
    {"parallel.dp", "Replicas", "replicas", ""},
    {"parallel.layout", "Layout", "layout", ""},
    {"layout", "Layout", "layout", ""},
    {"batch.global", "Batch", "batch", ""},
    {"batch.microbatches", "Microbatches", "microbatches", ""},
    {"model.layers", "Layers", "layers", ""},
    {"model.width", "Width", "width", ""},
    {"model.heads", "Heads", "heads", ""},
    {"model.context", "Context", "context", ""},
    {"model.dropout", "Dropout", "dropout", ""},
    {"run.seed", "Seed", "seed", ""},
    {"run.steps", "Steps", "steps", ""},
    {"run.threads", "Threads", "threads", ""},
    {"ranks", "Ranks", "ranks", ""},
    {"step", "Step", "step", ""},
};

BetterEnd better_by_name(const std::string& column) {
  const auto ends = [&](const char* end) { return column.ends_with(end); };
  if (ends("_per_s") || column == "mfu" || ends("accuracy") || ends("exact_match") || ends("f1") ||
      ends("precision") || ends("recall") || ends("correlation"))
    return BetterEnd::higher;
  if (ends("loss") || ends("bits_per_byte") || ends("_error") || ends("_ms") || ends("_s") ||
      ends("_bytes") || column == "seconds" || column.find("bubble") != std::string::npos)
    return BetterEnd::lower;
  return BetterEnd::neither;
}

constexpr std::string_view kTimeTo = "time_to_";

constexpr int kMostDecimals = 9;
constexpr int kMostDigits = 10;  // of a figure: more than any measurement has

/// The power of ten of the first digit: 2 of 123, -1 of 0.5.
int magnitude(double value) {
  return static_cast<int>(std::floor(std::log10(value)));
}

}  // namespace

std::string time_to(const std::string& metric, const std::string& target) {
  return fmt::format("{}{}_{}_s", kTimeTo, metric, target);
}

bool is_time_to(const std::string& column) {
  return column.starts_with(kTimeTo) && column.ends_with("_s");
}

std::string metric_of_time_to(const std::string& column) {
  if (!is_time_to(column)) return column;
  const std::string rest = column.substr(kTimeTo.size(), column.size() - kTimeTo.size() - 2);
  return rest.substr(0, rest.rfind('_'));
}

FigureName name_of_figure(const std::string& column) {
  if (is_time_to(column)) {
    const std::string of = metric_of_time_to(column);
    const FigureName metric = name_of_figure(of);
    const std::string target = column.substr(kTimeTo.size() + of.size() + 1,
                                             column.size() - kTimeTo.size() - of.size() - 3);
    const bool of_baseline = target.starts_with(kBaselineTarget);
    std::string said = of_baseline ? kBaselineTarget : "";
    const std::string figure = target.substr(said.size());
    if (!figure.empty())
      said += fmt::format(fmt::runtime(of_baseline ? " {:+.6g}{}" : "{:.6g}{}"),
                          metric.factor * std::strtod(figure.c_str(), nullptr),
                          metric.unit == "%" ? "%" : "");
    const std::string what = fmt::format("time to {} of {}", metric.label, said);
    return {"T" + what.substr(1) + " (s)", what, "s", 1, BetterEnd::lower};
  }
  const BetterEnd better = better_by_name(column);
  const auto* known = std::ranges::find(kKnownNames, column, &KnownName::column);
  if (known != std::end(kKnownNames))
    return {known->title, known->label, known->unit, known->factor, better};
  const char* unit = column.ends_with("_ms")                                 ? "ms"
                     : column.ends_with("_s") && !column.ends_with("_per_s") ? "s"
                                                                             : "";
  return {column, column, unit, 1, better};
}

FigureDigits digits_for(const std::vector<double>& values,
                        const std::vector<double>& uncertainties) {
  double largest = 0;
  bool whole = true;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    largest = std::max(largest, std::abs(value));
    whole = whole && value == std::floor(value);
  }
  std::vector<double> sizes;
  for (const double size : uncertainties)
    if (std::isfinite(size) && size > 0) sizes.push_back(size);
  std::ranges::sort(sizes);
  if (sizes.empty() && (whole || largest == 0)) return {0, largest >= 1e15};
  int decimals = 4 - (largest > 0 ? magnitude(largest) : 0);
  if (!sizes.empty()) {
    const int usual = 1 - magnitude(sizes[sizes.size() / 2]);
    decimals = std::max(usual, std::min(-magnitude(sizes.front()), usual + 2));
  }
  if (largest > 0) decimals = std::min(decimals, kMostDigits - 1 - magnitude(largest));
  return {std::clamp(decimals, 0, kMostDecimals), decimals > kMostDecimals || largest >= 1e15};
}

std::string figure_text(double value, const FigureDigits& digits) {
  if (!std::isfinite(value)) return number_text(value);
  if (digits.powers && value != 0) return fmt::format("{:.3e}", value);
  std::string text = fmt::format("{:.{}f}", value, digits.decimals);
  if (text.find_first_of("123456789") == std::string::npos) {
    if (value != 0) return fmt::format("{:.0e}", value);
    return text.front() == '-' ? text.substr(1) : text;
  }
  const std::size_t first = text.front() == '-' ? 1 : 0;
  const std::size_t point = std::min(text.find('.'), text.size());
  for (std::size_t at = point; at > first + 3; at -= 3) text.insert(at - 3, 1, ',');
  return text;
}

}  // namespace concertina
