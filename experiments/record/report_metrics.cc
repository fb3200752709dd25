#include "experiments/record/report_metrics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/step_history.h"
#include "core/tensor.h"
#include "parallel/plan/plan_index.h"
#include "parallel/plan/plan_memory.h"

namespace concertina {
namespace {

/// The step with the median duration, so that the picture shows neither the best nor the worst.
std::size_t typical_step(const RunTrace& trace) {
  std::vector<std::size_t> order(trace.steps.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>((order.size() - 1) / 2);
  std::ranges::nth_element(order, middle, {},
                           [&](std::size_t step) { return span_of(trace.steps[step]).seconds(); });
  return *middle;
}

void widen(MemoryUse& peak, const MemoryUse& use) {
  peak.activations = std::max(peak.activations, use.activations);
  peak.saved_bytes = std::max(peak.saved_bytes, use.saved_bytes);
  peak.boundary_bytes = std::max(peak.boundary_bytes, use.boundary_bytes);
}

/// From the plan only. Boundary pools are summed, to bound their simultaneous use from above.
MemoryUse predicted_peak(const RunTrace& trace, std::size_t rank, const Timeline& timeline,
                         const RowMemory& memory) {
  MemoryUse peak;
  for (const MemorySample& sample : saved_over_time(trace, rank, timeline.rows[rank]))
    widen(peak, sample.use);
  const int buffers = memory.boundaries();
  peak.boundary_bytes = static_cast<std::size_t>(buffers) * align_up(trace.boundary_bytes);
  return peak;
}

template <class Value>
double mean(const std::vector<RankMetrics>& ranks, Value value) {
  double sum = 0;
  for (const RankMetrics& rank : ranks) sum += value(rank);
  return sum / static_cast<double>(ranks.size());
}

nlohmann::ordered_json to_json(const MemoryUse& use) {
  return {{"activations", use.activations},
          {"saved_bytes", use.saved_bytes},
          {"boundary_bytes", use.boundary_bytes}};
}

}  // namespace

StepTotals total(const std::vector<MetricsPoint>& metrics) {
  StepTotals totals;
  std::vector<double> times;
  double shares = 0, shared = 0;  // of bubbles, by steps
  double tokens = 0, rated_seconds = 0, idle = 0, idle_seconds = 0, rated = 0, paces = 0;
  for (const MetricsPoint& point : metrics) {
    const double time = point.step_ms * 1e-3, seconds = point.batches * time;
    const bool has_rate = std::isfinite(point.tokens_per_s) && point.tokens_per_s > 0;
    if (has_rate) rated += point.batches, paces += point.batches / point.tokens_per_s;
    if (std::isfinite(point.bubble))
      shares += point.bubble * point.batches, shared += point.batches;
    if (!std::isfinite(time) || time <= 0) continue;
    times.push_back(time);
    totals.steps += static_cast<std::int64_t>(point.batches);
    totals.seconds += seconds;
    if (has_rate) tokens += point.tokens_per_s * seconds, rated_seconds += seconds;
    if (std::isfinite(point.bubble)) idle += point.bubble * seconds, idle_seconds += seconds;
  }
  if (!times.empty()) totals.median_seconds = median(std::move(times));
  if (rated > 0) totals.tokens_per_s = rated_seconds > 0 ? tokens / rated_seconds : rated / paces;
  if (shared > 0) totals.bubble = idle_seconds > 0 ? idle / idle_seconds : shares / shared;
  return totals;
}

nlohmann::ordered_json to_json(const StepTotals& totals) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (totals.steps > 0) json.update({{"steps", totals.steps}, {"steps_s", totals.seconds}});
  for (const auto& [name, metric] : {std::pair("tokens_per_s", totals.tokens_per_s),
                                     std::pair("median_step_ms", totals.median_seconds * 1e3),
                                     std::pair("bubble", totals.bubble)})
    if (std::isfinite(metric)) json[name] = metric;
  return json;
}

double ReportMetrics::bubble() const {
  return mean(ranks, [](const RankMetrics& rank) { return rank.bubble; });
}

double ReportMetrics::predicted_bubble() const {
  return mean(ranks, [](const RankMetrics& rank) { return rank.predicted_bubble; });
}

IdleCauses ReportMetrics::causes() const {
  IdleCauses causes;
  for (std::size_t c = 0; c < kCauses; ++c)
    causes.by_cause[c] =
        mean(ranks, [c](const RankMetrics& rank) { return rank.causes.by_cause[c]; });
  return causes;
}

ReportMetrics compute_metrics(const RunTrace& trace, const KnownCosts& known) {
  ReportMetrics metrics;
  metrics.costs = costs_of(trace, known.costs);
  metrics.costs_missing = known.missing;
  metrics.predicted = simulate(trace.plan, trace.layout, metrics.costs);
  metrics.predicted_seconds = metrics.predicted.makespan;
  metrics.typical = typical_step(trace);
  metrics.seconds = span_of(trace.steps[metrics.typical]).seconds();
  metrics.ranks.resize(trace.plan.rows.size());
  const ExpectedIdle expected = expected_idle(trace.plan, trace.layout, metrics.costs);
  const auto steps = static_cast<double>(trace.steps.size());
  for (const std::vector<StepRecord>& step : trace.steps) {
    const double seconds = span_of(step).seconds();
    const std::vector<IdleCauses> causes = idle_causes(trace.plan, trace.layout, step, expected);
    for (std::size_t rank = 0; rank < step.size(); ++rank) {
      RankMetrics& one = metrics.ranks[rank];
      one.bubble += (1 - busy_seconds(trace.plan.rows[rank], step[rank]) / seconds) / steps;
      for (std::size_t c = 0; c < kCauses; ++c)
        one.causes.by_cause[c] += causes[rank].by_cause[c] / seconds / steps;
      for (const MemorySample& sample : step[rank].memory) widen(one.peak, sample.use);
    }
  }
  const std::vector<RowMemory> memory = plan_memory(trace.plan, trace.layout);
  for (std::size_t rank = 0; rank < metrics.ranks.size(); ++rank) {
    metrics.ranks[rank].predicted_bubble = metrics.predicted.bubble[rank];
    metrics.ranks[rank].predicted_peak =
        predicted_peak(trace, rank, metrics.predicted, memory[rank]);
  }
  return metrics;
}

std::vector<MemorySample> saved_over_time(const RunTrace& trace, std::size_t rank,
                                          const std::vector<Interval>& times) {
  std::vector<MemorySample> samples;
  MemoryUse use;
  const auto sample = [&](double time) { samples.push_back({time, use}); };
  const std::vector<Action>& row = trace.plan.rows[rank];
  const std::vector<StageInfo> infos = stage_infos(trace.layout);
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (!is_compute(row[i].kind)) continue;
    const auto stage = static_cast<std::size_t>(row[i].stage);
    const bool saves = row[i].kind == Kind::F && infos[stage].trains;
    if (saves) ++use.activations, use.saved_bytes += trace.saved_bytes[stage];
    if (row[i].kind == Kind::I) use.saved_bytes += trace.grad_bytes[stage];
    sample(times[i].start);
    if (row[i].kind == Kind::W) use.saved_bytes -= trace.grad_bytes[stage];
    if (makes_weight_gradient(row[i].kind))
      --use.activations, use.saved_bytes -= trace.saved_bytes[stage];
    sample(times[i].end);
  }
  // The two actions of an overlapped pair start and end together.
  std::ranges::stable_sort(samples, {}, &MemorySample::time);
  return samples;
}

nlohmann::ordered_json to_json(const IdleCauses& causes) {
  nlohmann::ordered_json json;
  for (std::size_t c = 0; c < kCauses; ++c)
    json[std::string(name_of(static_cast<Cause>(c)))] = causes.by_cause[c];
  return json;
}

nlohmann::ordered_json to_json(const RunTrace& trace, const ReportMetrics& metrics) {
  nlohmann::ordered_json ranks = nlohmann::ordered_json::array();
  for (const RankMetrics& rank : metrics.ranks)
    ranks.push_back({{"bubble", rank.bubble},
                     {"predicted_bubble", rank.predicted_bubble},
                     {"causes", to_json(rank.causes)},
                     {"peak", to_json(rank.peak)},
                     {"predicted_peak", to_json(rank.predicted_peak)}});
  nlohmann::ordered_json recorded = nlohmann::ordered_json::array();
  for (const auto& step : trace.steps) recorded.push_back(step[0].step);
  nlohmann::ordered_json json = {{"run", trace.run},
                                 {"schedule", trace.schedule},
                                 {"layout", short_form(trace.layout)},
                                 {"steps", trace.steps.size()},
                                 {"recorded_steps", recorded},
                                 {"typical_step", trace.steps[metrics.typical][0].step},
                                 {"step_ms", metrics.seconds * 1e3},
                                 {"predicted_step_ms", metrics.predicted_seconds * 1e3},
                                 {"prediction_error", metrics.error()},
                                 {"bubble", metrics.bubble()},
                                 {"predicted_bubble", metrics.predicted_bubble()},
                                 {"ranks", ranks},
                                 {"clock_error_us", trace.clock_error * 1e6}};
  if (!metrics.costs_missing.empty()) json["costs_missing"] = metrics.costs_missing;
  return json;
}

}  // namespace concertina
