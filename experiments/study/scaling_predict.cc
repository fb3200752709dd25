#include <algorithm>
#include <filesystem>
#include <optional>

#include "core/error.h"
#include "experiments/predict/measured_costs.h"
#include "experiments/run/planning.h"
#include "experiments/study/scaling.h"
#include "io/log_lines.h"
#include "io/run_files.h"
#include "parallel/predict/plan_costs.h"
#include "parallel/simulate/idle_causes.h"
#include "parallel/simulate/shared_cores.h"
#include "parallel/simulate/simulate.h"

namespace concertina {
namespace {

using Json = nlohmann::ordered_json;

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

/// The median step time of a finished run; nullopt if the run is unfinished.
std::optional<double> median_step_ms(const std::string& run) {
  const auto json = read_log_json<nlohmann::json>(run_file(run, kResultFile));
  if (!json.is_object() || !json.contains("median_step_ms")) return std::nullopt;
  return json["median_step_ms"].get<double>();
}

/// The measurement on whose steps predictions are based.
struct Source {
  int ranks = 1;
  CostSource costs;
  std::string text;
};

/// The run with the median step time; nullopt if no run has costs.
std::optional<Source> source_of(const ScalingPoint& point, const std::vector<std::string>& runs) {
  std::vector<std::pair<double, std::string>> order;
  for (const std::string& run : runs)
    if (const auto step = median_step_ms(run);
        step && std::filesystem::exists(run_file(run, kCostsFile)))
      order.emplace_back(*step, run);
  if (order.empty()) return std::nullopt;
  std::ranges::sort(order);
  const std::string& run = order[(order.size() - 1) / 2].second;
  return Source{point.ranks, read_costs(run), run};
}

/// The links between ranks on one host and on two: from `links` if given, otherwise measured.
MachineModel links_of(const std::vector<Source>& sources, const ScalingOptions& options) {
  if (!options.links.empty()) return read_costs(options.links).machine;
  MachineModel links;
  for (const Source& source : sources) {
    if (links.local == LinkCosts{}) links.local = source.costs.machine.local;
    if (links.remote == LinkCosts{}) links.remote = source.costs.machine.remote;
    if (links.post_s == 0) links.post_s = source.costs.machine.post_s;
    if (links.combine_s_per_byte == 0)
      links.combine_s_per_byte = source.costs.machine.combine_s_per_byte;
  }
  return links;
}

/// The machine of a measurement, with `links` where it has none.
MachineModel machine_of(const Source& source, const MachineModel& links, int ranks_per_host) {
  MachineModel machine = source.costs.machine;
  machine.local = links.local;
  machine.remote = has_links(links) && links.remote == LinkCosts{} ? links.local : links.remote;
  machine.pairs = links.pairs;
  if (machine.post_s == 0) machine.post_s = links.post_s;
  if (machine.combine_s_per_byte == 0) machine.combine_s_per_byte = links.combine_s_per_byte;
  machine.ranks_per_host = ranks_per_host;
  return machine;
}

/// The step time in seconds, split by activity: removes one activity after another, and attributes
/// to each the time saved.
Json predicted_parts(const Assignment& assignment, Costs costs, const std::vector<int>& hosts,
                     int cores) {
  const Timeline whole = simulate(assignment.plan, assignment.layout, costs);
  const double compute = mean(whole.compute);
  const double factor = shared_core_factor(assignment.plan, assignment.layout, costs, hosts, cores);
  double now = whole.makespan;
  const auto shorter = [&] {
    const double before = now;
    now = std::min(now, simulate(assignment.plan, assignment.layout, costs).makespan);
    return before - now;
  };
  costs.buckets.clear();
  const double reduction = shorter();
  costs.local = costs.remote = LinkCosts{};
  costs.pairs.clear();
  costs.boundary_bytes = costs.post = costs.combine = 0;
  const double transfer = shorter();
  costs.ranks.assign(costs.ranks.size(), RankCosts{});
  const double update = shorter();
  costs = equal_stages(assignment.layout, std::move(costs));
  const double imbalance = shorter();
  return {{"compute", compute},
          {"bubble", std::max(0.0, now - compute)},
          {"imbalance", imbalance},
          {"transfer", transfer},
          {"reduction", reduction},
          {"update", update},
          {"cores", whole.makespan * (factor - 1)}};
}

}  // namespace

void require_layouts(const RunConfig& config, const ScalingOptions& options) {
  for (const ScalingPoint& point : scaling_points(config, options)) {
    const RunConfig one = config_at(config, point);
    validate(one);
    assignment_of(one, job_of(one), point.ranks);
  }
}

Json scaling_predictions(const RunConfig& config, const ScalingOptions& options,
                         const std::vector<std::vector<std::string>>& runs) {
  const std::vector<ScalingPoint> points = scaling_points(config, options);
  std::vector<Source> sources;  // one per number of ranks, ascending
  for (std::size_t i = 0; i < points.size(); ++i)
    if (sources.empty() || sources.back().ranks < points[i].ranks)
      if (std::optional<Source> source = source_of(points[i], runs[i]))
        sources.push_back(std::move(*source));
  if (sources.empty())
    throw_failure("no measurement succeeded, so nothing can be predicted", options.name,
                  "concertina study table shows why its trials failed");
  const MachineModel links = links_of(sources, options);
  Json predictions = Json::array();
  for (const ScalingPoint& point : points) {
    const RunConfig at_point = config_at(config, point);
    const Job job = job_of(at_point);
    const Assignment assignment = assignment_of(at_point, job, point.ranks);
    // The largest measurement with fewer ranks, or else the smallest measurement.
    const Source* source = &sources.front();
    for (const Source& one : sources)
      if (one.ranks < point.ranks) source = &one;
    const MachineModel machine = machine_of(*source, links, options.ranks_per_host);
    const Costs costs = plan_costs(job, assignment,
                                   unit_seconds(source->costs, job, assignment, at_point), machine);
    const bool shares = point.ranks <= options.measured || options.ranks_per_host > 0;
    predictions.push_back(
        {{"ranks", point.ranks},
         {"layout", short_form(assignment.layout)},
         {"batch", point.global},
         {"microbatches", point.microbatches},
         {"flops", model_flops(job.model, job.microbatches)},
         {"predicted_from", source->text},
         {"predicted_parts", predicted_parts(assignment, costs, hosts_of(machine, point.ranks),
                                             shares ? options.cores : 0)}});
  }
  return predictions;
}

}  // namespace concertina
