#include "experiments/results/figure_names.h"

#include <algorithm>

namespace concertina {
namespace {

struct KnownName {
  const char *column, *title, *label, *unit;
  double factor = 1;
};

constexpr double kMebibyte = 1.0 / (1 << 20);
constexpr KnownName kKnownNames[] = {
    {"loss", "Training loss", "loss", "nats per target"},
    {"validation_loss", "Validation loss", "validation loss", "nats per target"},
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
  if (ends("_per_s") || column == "mfu" || ends("accuracy")) return BetterEnd::higher;
  if (ends("loss") || ends("_ms") || ends("_s") || ends("_bytes") || column == "seconds" ||
      column.find("bubble") != std::string::npos)
    return BetterEnd::lower;
  return BetterEnd::neither;
}

}  // namespace

FigureName name_of_figure(const std::string& column) {
  const BetterEnd better = better_by_name(column);
  const auto* known = std::ranges::find(kKnownNames, column, &KnownName::column);
  if (known != std::end(kKnownNames))
    return {known->title, known->label, known->unit, known->factor, better};
  const char* unit = column.ends_with("_ms")                                 ? "ms"
                     : column.ends_with("_s") && !column.ends_with("_per_s") ? "s"
                                                                             : "";
  return {column, column, unit, 1, better};
}

}  // namespace concertina
