#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "core/error.h"
#include "core/step_history.h"
#include "experiments/predict/measured_costs.h"
#include "experiments/record/launch_figures.h"
#include "experiments/run/planning.h"
#include "experiments/study/scaling.h"
#include "experiments/study/trial_record.h"
#include "io/log_lines.h"
#include "io/run_files.h"
#include "parallel/predict/plan_costs.h"
#include "parallel/simulate/idle_causes.h"
#include "parallel/simulate/shared_cores.h"
#include "parallel/simulate/simulate.h"

namespace concertina {
namespace {

using RunJson = nlohmann::json;

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

std::optional<RunJson> result_of(const std::string& run) {
  RunJson json = read_log_json<RunJson>(run_file(run, kResultFile));
  if (!json.is_object() || !json.contains("median_step_ms")) return std::nullopt;
  return json;
}

/// The parts of a run's recorded steps, as shares of its median step.
StepParts recorded_parts(const RunJson& result, double seconds) {
  StepParts parts{.compute = seconds};
  if (!result.contains("recorded")) return parts;
  const RunJson& recorded = result["recorded"];
  const RunJson& causes = recorded["bubble_causes"];
  const auto share = [&](const char* cause) { return causes.value(cause, 0.0) * seconds; };
  parts.bubble = share("schedule");
  parts.variation = share("variation");
  parts.imbalance = share("imbalance");
  parts.transfer = share("transfer");
  parts.reduction = share("reduction");
  parts.update = share("optimizer") + share("other");
  parts.compute = seconds * (1 - recorded.value("bubble", 0.0));
  return parts;
}

std::optional<Measured> measured_of(const std::vector<std::string>& runs) {
  Measured measured;
  std::vector<StepParts> parts;
  for (const std::string& run : runs)
    if (const auto result = result_of(run)) {
      measured.steps.push_back((*result)["median_step_ms"].get<double>() * 1e-3);
      parts.push_back(recorded_parts(*result, measured.steps.back()));
      TrialRecord record;
      record.directory = run;
      harvest(record);
      measured.load = std::max(measured.load, record.figures["load"]);
    }
  if (measured.steps.empty()) return std::nullopt;
  measured.median = median(measured.steps);
  // The parts are those of the round whose step is nearest to the median.
  std::size_t typical = 0;
  for (std::size_t i = 0; i < measured.steps.size(); ++i)
    if (std::abs(measured.steps[i] - measured.median) <
        std::abs(measured.steps[typical] - measured.median))
      typical = i;
  measured.parts = parts[typical];
  return measured;
}

/// The measurement whose steps predictions stand on.
struct Source {
  int ranks = 1;
  CostSource costs;
  std::string text;
};

/// The run of the round in the middle; nothing where no round has costs.
std::optional<Source> source_of(const ScalingPoint& point, const std::vector<std::string>& runs) {
  std::vector<std::pair<double, std::string>> order;
  for (const std::string& run : runs)
    if (const auto result = result_of(run);
        result && std::filesystem::exists(run_file(run, kCostsFile)))
      order.emplace_back((*result)["median_step_ms"].get<double>(), run);
  if (order.empty()) return std::nullopt;
  std::ranges::sort(order);
  const std::string& run = order[(order.size() - 1) / 2].second;
  return Source{point.ranks, read_costs(run), run};
}

/// The links between ranks on one host and on two, as measurements have them; as `links` says where
/// it is given.
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

/// One thing after the other is taken away, and what the step gets shorter by is its part.
StepParts predicted_parts(const Assignment& assignment, Costs costs, const std::vector<int>& hosts,
                          int cores) {
  const auto makespan = [&] {
    return simulate(assignment.plan, assignment.layout, costs).makespan;
  };
  StepParts parts;
  const Timeline whole = simulate(assignment.plan, assignment.layout, costs);
  parts.compute = mean(whole.compute);
  double now = whole.makespan;
  const auto without = [&](double& part) {
    const double less = makespan();
    part = std::max(0.0, now - less);
    now = std::min(now, less);
  };
  const double factor = shared_core_factor(assignment.plan, assignment.layout, costs, hosts, cores);
  costs.buckets.clear();
  without(parts.reduction);
  costs.local = costs.remote = LinkCosts{};
  costs.pairs.clear();
  costs.boundary_bytes = costs.post = costs.combine = 0;
  without(parts.transfer);
  costs.ranks.assign(costs.ranks.size(), RankCosts{});
  without(parts.update);
  costs = equal_stages(assignment.layout, std::move(costs));
  without(parts.imbalance);
  parts.bubble = std::max(0.0, now - parts.compute);
  parts.cores = whole.makespan * (factor - 1);
  return parts;
}

}  // namespace

void require_layouts(const RunConfig& config, const ScalingOptions& options) {
  for (const ScalingPoint& point : scaling_points(config, options)) {
    const RunConfig one = config_at(config, point);
    validate(one);
    assignment_of(one, job_of(one), point.ranks);
  }
}

std::vector<ScalingResult> scaling_results(const RunConfig& config, const ScalingOptions& options,
                                           const std::vector<std::vector<std::string>>& runs) {
  const std::vector<ScalingPoint> points = scaling_points(config, options);
  std::vector<Source> sources;  // one for each number of ranks, ascending
  std::vector<ScalingResult> results;
  for (std::size_t i = 0; i < points.size(); ++i) {
    results.push_back({.point = points[i],
                       .layout = {},
                       .measured = measured_of(runs[i]),
                       .predicted = {},
                       .predicted_from = {}});
    if (sources.empty() || sources.back().ranks < points[i].ranks)
      if (std::optional<Source> source = source_of(points[i], runs[i]))
        sources.push_back(std::move(*source));
  }
  if (sources.empty())
    throw_failure("no measurement succeeded, so there is nothing to predict from", options.name,
                  "concertina study table shows why its trials failed");
  const MachineModel links = links_of(sources, options);
  for (ScalingResult& result : results) {
    const RunConfig at_point = config_at(config, result.point);
    const Job job = job_of(at_point);
    const Assignment assignment = assignment_of(at_point, job, result.point.ranks);
    // The largest measurement with fewer ranks; the smallest one for itself.
    const Source* source = &sources.front();
    for (const Source& one : sources)
      if (one.ranks < result.point.ranks) source = &one;
    MachineModel machine = source->costs.machine;
    machine.local = links.local;
    machine.remote = has_links(links) && links.remote == LinkCosts{} ? links.local : links.remote;
    machine.pairs = links.pairs;
    if (machine.post_s == 0) machine.post_s = links.post_s;
    if (machine.combine_s_per_byte == 0) machine.combine_s_per_byte = links.combine_s_per_byte;
    machine.ranks_per_host = options.ranks_per_host;
    const Costs costs = plan_costs(job, assignment,
                                   unit_seconds(source->costs, job, assignment, at_point), machine);
    const bool shares = result.point.ranks <= options.measured || options.ranks_per_host > 0;
    result.predicted = predicted_parts(assignment, costs, hosts_of(machine, result.point.ranks),
                                       shares ? options.cores : 0);
    result.predicted_from = source->text;
    result.layout = short_form(assignment.layout);
    result.flops = model_flops(job.model, job.microbatches);
  }
  return results;
}

std::vector<StepFit> step_fits(const std::vector<ScalingResult>& results) {
  std::vector<StepFit> fits;
  for (const bool measured : {true, false})
    for (std::size_t i = 0, next = 0; i < results.size(); i = next) {
      std::vector<std::pair<double, double>> points;
      for (next = i; next < results.size() && results[next].point.ranks == results[i].point.ranks;
           ++next)
        if (!measured || results[next].measured)
          points.emplace_back(
              results[next].point.microbatches,
              measured ? results[next].measured->median : results[next].predicted.total());
      if (points.size() < 3) continue;  // a line goes through any two
      double m = 0, t = 0, mm = 0, mt = 0;
      const auto n = static_cast<double>(points.size());
      for (const auto& [x, y] : points) m += x / n, t += y / n;
      for (const auto& [x, y] : points) mm += (x - m) * (x - m), mt += (x - m) * (y - t);
      StepFit fit{.ranks = results[i].point.ranks, .b = mm > 0 ? mt / mm : 0, .measured = measured};
      fit.a = t - fit.b * m;
      for (const auto& [x, y] : points)
        fit.error = std::max(fit.error, std::abs(fit.a + fit.b * x - y) / y);
      fits.push_back(fit);
    }
  return fits;
}

}  // namespace concertina
