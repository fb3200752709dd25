#include "experiments/record/launch_metrics.h"

#include "core/step_history.h"

namespace concertina {
namespace {

/// TFLOP/s of dense matrix products from NVIDIA's data sheets, which list twice these values for
/// sparse products; fp32 without tensor cores.
struct DataSheet {
  std::string_view name;  // part of the driver's name for the device
  double fp32, tf32, bf16, fp8;
};

// The first match counts, so longer names precede their prefixes.
constexpr DataSheet kDataSheets[] = {
    {"H200 NVL", 60, 417.5, 835.5, 1670.5}, {"H200", 67, 494.5, 989.5, 1979},
    {"H100 PCIe", 51, 378, 756.5, 1513},    {"H100 NVL", 60, 417.5, 835.5, 1670.5},
    {"H100", 67, 494.5, 989.5, 1979},       {"A100", 19.5, 156, 312, 0},
};

double data_sheet_rate(const DataSheet& sheet, std::string_view compute) {
  if (compute == "fp32") return sheet.fp32;
  if (compute == "tf32") return sheet.tf32;
  if (compute == "bf16") return sheet.bf16;
  return compute == "fp8" ? sheet.fp8 : 0;
}

}  // namespace

double peak_flops_per_s(const RunConfig& config, std::string_view device) {
  if (config.run.peak_tflops > 0) return config.run.peak_tflops * 1e12;
  if (config.run.device != "cuda") return 0;
  for (const DataSheet& sheet : kDataSheets)
    if (device.find(sheet.name) != std::string_view::npos)
      return data_sheet_rate(sheet, config.numerics.compute) * 1e12;
  return 0;
}

void LaunchMetrics::add(int count, double seconds, double bubble) {
  seconds_.insert(seconds_.end(), static_cast<std::size_t>(count), seconds);
  sum_ += count * seconds;
  idle_ += count * bubble * seconds;
}

double LaunchMetrics::median_seconds() const {
  return median(seconds_);
}

nlohmann::ordered_json to_json(const LaunchMetrics& metrics, const LaunchSummary& summary) {
  nlohmann::ordered_json json = {{"steps", summary.step}, {"launch_steps", metrics.steps()}};
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
  const nlohmann::ordered_json measure = measure_json(summary.validation);
  for (const auto& [key, value] : measure.items()) json["validation_" + key] = value;
  if (metrics.steps() > 0)
    json.update({{"tokens_per_s", metrics.tokens_per_s()},
                 {"median_step_ms", metrics.median_seconds() * 1e3},
                 {"bubble", metrics.bubble()},
                 {"steps_s", metrics.seconds()},
                 {"peak_bytes", summary.peak_bytes}});
  if (summary.cache) json["cache"] = to_json(*summary.cache);
  json.update({{"eval_s", summary.eval_seconds},
               {"checkpoint_s", summary.checkpoint_seconds},
               {"launch_s", summary.launch_seconds}});
  return json;
}

}  // namespace concertina
