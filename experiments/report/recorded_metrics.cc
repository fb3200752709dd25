#include "experiments/report/recorded_metrics.h"

#include <filesystem>

#include "core/error.h"
#include "experiments/config/config_toml.h"
#include "experiments/run/layout_json.h"
#include "experiments/run/planning.h"
#include "io/log_lines.h"
#include "io/run_files.h"

namespace concertina {
namespace {

using Json = nlohmann::ordered_json;

/// Empty if the config is from an incompatible program version.
Json model_metrics(const std::string& config_text) try {
  RunConfig config;
  read_config(config_text, kConfigFile, config);
  const ModelSpec model = job_of(config).model;
  return {{"layer_ends", model.layer_ends},
          {"parameters", parameter_count(make_buckets(model))},
          {"tokens_per_step", tokens_of_step(config)}};
} catch (const Error&) {
  return Json::object();
}

/// Per sample: milliseconds since `start`, saved bytes and, with `boundaries`, boundary bytes.
Json memory_json(const std::vector<MemorySample>& samples, double start, bool boundaries) {
  Json points = Json::array();
  for (const MemorySample& sample : samples) {
    points.push_back({1e3 * (sample.time - start), sample.use.saved_bytes});
    if (boundaries) points.back().push_back(sample.use.boundary_bytes);
  }
  return points;
}

void add_recorded(const RunTrace& trace, const ReportMetrics& metrics, Json& json) {
  json.update(to_json(trace, metrics));
  const std::vector<StepRecord>& step = trace.steps[metrics.typical];
  const double start = span_of(step).start;
  for (std::size_t rank = 0; rank < step.size(); ++rank) {
    Json& one = json["ranks"][rank];
    one["memory"] = memory_json(step[rank].memory, start, true);
    one["predicted_memory"] =
        memory_json(saved_over_time(trace, rank, metrics.predicted.rows[rank]), 0, false);
  }
  json["pipelines"] = to_json(trace.layout, StageForm::brief);
  json["timeline"] = recorded_timeline(trace, metrics);
}

void require_run(const std::string& directory) {
  const std::string config = run_file(directory, kConfigFile);
  std::error_code error;
  const auto status = std::filesystem::symlink_status(config, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    throw_input("not a regular file", config, "the file that the run wrote");
  if (!std::filesystem::exists(status))
    throw_input("not a run directory: config.toml is missing", directory,
                "a run directory, such as runs/NAME");
}

}  // namespace

nlohmann::ordered_json recorded_metrics(const std::string& directory,
                                        std::optional<std::int64_t> step) {
  require_run(directory);
  Json json = model_metrics(read_log_text(run_file(directory, kConfigFile)));
  const std::string path = trace_path(directory, step);
  if (!step && !std::filesystem::exists(path)) return json;
  const RunTrace trace = read_run_trace(path);
  const KnownCosts known = known_costs(directory, trace.layout, trace.plan);
  add_recorded(trace, compute_metrics(trace, known), json);
  return json;
}

}  // namespace concertina
