#include "experiments/predict/plan_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "core/arena.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/index.h"
#include "core/profile_backend.h"
#include "core/text/number_text.h"
#include "experiments/predict/predict_memory.h"
#include "experiments/run/devices.h"
#include "experiments/run/planning.h"
#include "models/model.h"
#include "models/recompute.h"
#include "parallel/predict/plan_costs.h"
#include "parallel/predict/unit_work.h"
#include "parallel/simulate/exchange_routes.h"
#include "parallel/simulate/simulate.h"

namespace concertina {
namespace {

// The rate of a model's matrix products on this machine, on which `plan` bases its estimates.
// Invariant: measuring it takes a fraction of a second and little memory for any model size.
struct ProductRate {
  double flops_per_s = 0;
  LinearShape shape;  // the measured shape
};

constexpr std::int64_t kMostRows = 1024, kMostColumns = 2048;
constexpr double kRateSeconds = 0.25;  // spent measuring, after one warm-up run

double flops(const LinearShape& shape) {
  return 2.0 * static_cast<double>(shape.rows) * static_cast<double>(shape.in) *
         static_cast<double>(shape.out);
}

/// The largest map is found by recording the operators that the units create.
LinearShape largest_map(const Model& model, const RunConfig& config) {
  const std::unique_ptr<Backend> backend = make_sizing_backend(config, 1);
  Profile profile;
  const std::unique_ptr<Backend> recorder = make_profile_backend(*backend, profile);
  for (int unit = 0; unit < std::ssize(model.spec().units); ++unit)
    model.make_unit(unit, *recorder);
  LinearShape largest;
  for (const auto& [shape, times] : profile.products)
    if (flops(shape) > flops(largest)) largest = shape;
  return largest;
}

/// Measures the model's largest linear map (by multiplications), clipped to sizes above which the
/// rate stays the same, forward and backward on the config's device. Throws Error{bad_input} if
/// this machine lacks the device.
ProductRate measure_product_rate(const Model& model, const RunConfig& config, int threads) {
  LinearShape shape = largest_map(model, config);
  shape.rows = std::min(shape.rows, kMostRows);
  shape.in = std::min(shape.in, kMostColumns);
  shape.out = std::min(shape.out, kMostColumns);
  const std::unique_ptr<Backend> backend = make_backend(config, threads);
  const std::shared_ptr<Linear> linear = backend->linear(shape);
  const auto x = static_cast<std::size_t>(shape.rows * shape.in);
  const auto y = static_cast<std::size_t>(shape.rows * shape.out);
  const auto w = static_cast<std::size_t>(shape.in * shape.out);
  Arena arena(2 * (x + y) * size_of(shape.compute) + 2 * w * sizeof(float) +
                  linear->packed_bytes() + backend->workspace_bytes() + 8 * kAlignment,
              backend->memory());
  const auto view = [&](std::size_t count, DType type) {
    return arena.take(count, type, "product");
  };
  const View in = view(x, shape.compute), dx = view(x, shape.compute), out = view(y, shape.compute),
             dy = view(y, shape.compute), weight = view(w, DType::f32),
             dweight = view(w, DType::f32);
  void* packed = arena.take(linear->packed_bytes(), "packed");
  backend->set_workspace(arena.take(backend->workspace_bytes(), "workspace"));
  backend->run(PackWeights{.map = *linear, .weight = weight, .packed = packed});
  const auto once = [&] {
    return kernel_seconds(backend->clock(), [&] {
      backend->run(LinearForward{.map = *linear, .x = in, .packed = packed, .y = out});
      backend->run(LinearInput{.map = *linear, .dy = dy, .packed = packed, .dx = dx});
      backend->run(
          LinearWeight{.map = *linear, .x = in, .dy = dy, .dweight = dweight, .accumulate = false});
    });
  };
  once();
  double least = once();
  for (const double end = now() + kRateSeconds; now() < end;) least = std::min(least, once());
  return {3 * flops(shape) / least, shape};
}

using Json = nlohmann::ordered_json;

/// The number of parameters in the buckets that `counts` selects.
template <class Counts>
std::size_t parameters_of(const std::vector<Bucket>& buckets, const Counts& counts) {
  std::size_t count = 0;
  for (const Bucket& bucket : buckets)
    for (const BucketTensor& tensor : bucket.tensors) count += counts(bucket) ? tensor.count : 0;
  return count;
}

/// A stage with these units; the caller sets `stage` and `rank`.
Json stage_json(const Job& job, const Assignment& assignment, const StagePlacement& stage) {
  const std::vector<UnitSpec>& units = job.model.units;
  const auto holds = [&](int unit) { return stage.first_unit <= unit && unit < stage.last_unit; };
  double own = 0, all = 0;
  Json names = Json::array();
  for (int unit = 0; unit < std::ssize(units); ++unit) {
    const double flops = total_flops(assignment.costs[at(unit)]);
    all += flops;
    if (!holds(unit)) continue;
    own += flops;
    names.push_back(units[at(unit)].name);
  }
  return {{"stage", 0},
          {"rank", 0},
          {"units", {stage.first_unit, stage.last_unit}},
          {"unit_names", names},
          {"parameters",  // a tensor shared by several units of the stage counts once
           parameters_of(assignment.buckets,
                         [&](const Bucket& one) { return std::ranges::any_of(one.uses, holds); })},
          {"flops_share", own / all}};
}

Json pipelines_json(const Job& job, const Assignment& assignment) {
  Json pipelines = Json::array();
  std::map<std::pair<int, int>, Json> known;  // by units
  for (const Pipeline& pipeline : assignment.layout.pipelines) {
    Json stages = Json::array();
    for (const StagePlacement& stage : pipeline.stages) {
      const auto [one, fresh] = known.try_emplace({stage.first_unit, stage.last_unit});
      if (fresh) one->second = stage_json(job, assignment, stage);
      one->second["stage"] = stages.size();
      one->second["rank"] = stage.rank;
      stages.push_back(one->second);
    }
    pipelines.push_back({{"microbatches", {pipeline.first_microbatch, pipeline.last_microbatch}},
                         {"stages", stages}});
  }
  return pipelines;
}

/// Groups ranks with equal bytes; "packed weights" is reported as "packed_weights_bytes".
Json memory_json(const std::vector<RankMemory>& ranks) {
  Json groups = Json::array();
  std::map<std::string, std::size_t> group_of;  // by the bytes of each purpose
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    std::string parts;
    for (const RankMemory::Purpose& part : ranks[rank].parts)
      parts += fmt::format("{} ", part.bytes);
    const auto [group, fresh] = group_of.try_emplace(std::move(parts), groups.size());
    if (!fresh) {
      groups[group->second]["ranks"].push_back(rank);
      continue;
    }
    Json bytes;
    for (RankMemory::Purpose part : ranks[rank].parts) {
      std::ranges::replace(part.name, ' ', '_');
      bytes[part.name + "_bytes"] = part.bytes;
    }
    bytes["total_bytes"] = ranks[rank].total();
    groups.push_back({{"ranks", {rank}}, {"bytes", bytes}});
  }
  return groups;
}

/// The bytes sent by the rank that sends the most gradients, the bytes that a ring would need, and
/// the time that the step would save if exchanges took no time.
Json exchange_json(const Assignment& assignment, Costs costs, double step) {
  std::vector<double> sent(static_cast<std::size_t>(assignment.world)), least(sent);
  ExchangeLoad load;
  const BucketCosts* before = nullptr;
  for (const BucketCosts& bucket : costs.buckets) {
    if (before == nullptr || before->ranks != bucket.ranks || before->pieces != bucket.pieces)
      load = gradient_load(costs, bucket);
    before = &bucket;
    const auto holders = static_cast<double>(bucket.ranks.size());
    for (std::size_t h = 0; h < bucket.ranks.size(); ++h) {
      const auto rank = static_cast<std::size_t>(bucket.ranks[h]);
      sent[rank] += bucket.bytes / holders * load.sent[h];
      least[rank] += bucket.bytes * (holders - 1) / holders;
    }
  }
  costs.buckets.clear();
  return {
      {"sent_bytes", *std::max_element(sent.begin(), sent.end())},
      {"ring_bytes", *std::max_element(least.begin(), least.end())},
      {"exposed_ms", (step - simulate(assignment.plan, assignment.layout, costs).makespan) * 1e3}};
}

void add_times(const Assignment& assignment, const RunConfig& config, const Costs& costs,
               Json& report) {
  const Timeline timeline = simulate(assignment.plan, assignment.layout, costs);
  const auto tokens = static_cast<double>(tokens_of_step(config));
  report["step_ms"] = timeline.makespan * 1e3;
  report["tokens_per_s"] = tokens / timeline.makespan;
  Json busy = Json::array();
  for (const double seconds : timeline.busy) busy.push_back(seconds * 1e3);
  report["busy_ms"] = busy;
  if (!costs.buckets.empty())
    report["exchange"] = exchange_json(assignment, costs, timeline.makespan);
  report["bubble"] = {{"mean", timeline.mean_bubble}, {"ranks", timeline.bubble}};
  report["peak_activations"] = {{"microbatch_stages", timeline.peak_activations},
                                {"bytes", timeline.peak_activation_bytes}};
}

std::string recompute_text(const std::vector<std::string>& words) {
  return words.empty() ? "none" : fmt::format("{}", fmt::join(words, " + "));
}

/// The choices for parallel.recompute, including the one in `report`, each with the memory of the
/// largest rank and the step time. `largest`: ranks from predict_memory() for `assignment`.
Json recompute_json(const RunConfig& config, PlanOptions options, int threads, const Json& report,
                    Assignment assignment, const std::vector<int>& largest) {
  if (report.contains("rate_gflops_per_s")) options.gflops = report["rate_gflops_per_s"];
  std::vector<std::vector<std::string>> choices{{}};
  for (const std::string& word : recompute_words(model_of(config)->spec()))
    choices.push_back({word});
  const std::vector<std::string>& own = config.parallel.recompute;
  if (std::find(choices.begin(), choices.end(), own) == choices.end()) choices.push_back(own);
  Json list = Json::array();
  const Layout layout = assignment.layout;
  for (const std::vector<std::string>& words : choices) {
    std::size_t bytes = report["peak_bytes"];
    double ms = report["step_ms"];
    if (words != own) {
      RunConfig other = config;
      other.parallel.recompute = words;
      const Job job = job_of(other);
      assignment = assign_like(job, request_of(other, options.world), std::move(assignment));
      const PlanSource source = plan_source(job, assignment, other, options, threads);
      assignment.exchange.hosts = hosts_of(source.machine, options.world);
      const Costs costs = plan_costs(job, assignment, source.units, source.machine);
      ms = simulate(assignment.plan, assignment.layout, costs).makespan * 1e3;
      bytes = assignment.layout == layout
                  ? largest_total(largest, other, job, assignment, threads)
                  : largest_total(predict_memory(other, job, assignment, threads));
    }
    list.push_back({{"recompute", recompute_text(words)},
                    {"chosen", words == own},
                    {"largest_rank_bytes", bytes},
                    {"step_ms", ms}});
  }
  return list;
}

}  // namespace

PlanSource plan_source(const Job& job, const Assignment& assignment, const RunConfig& config,
                       const PlanOptions& options, int threads) {
  CostSource costs;
  if (!options.costs.empty()) costs = read_costs(options.costs);
  PlanSource source{{}, costs.machine, {options.costs, costs.measured.has_value()}, Json::object()};
  if (!options.links.empty()) {
    const CostSource from = read_costs(options.links);
    source.machine = with_links(source.machine, from.machine);
    source.links = {options.links, from.measured.has_value()};
  }
  if (costs.measured) {
    source.facts["costs_from"] = options.costs;
    source.units = unit_seconds(costs, job, assignment, config);
    return source;
  }
  MachineModel& machine = source.machine;
  double gflops = options.gflops;
  std::string from = "--rate";
  if (gflops == 0 && machine.flops_per_s > 0) {
    gflops = machine.flops_per_s * 1e-9;
    from = options.costs;
  } else if (gflops == 0) {
    const ProductRate rate = measure_product_rate(*model_of(config), config, threads);
    gflops = rate.flops_per_s * 1e-9;
    from = fmt::format("measured on this machine: {} x {} by {} x {}, {}", rate.shape.rows,
                       rate.shape.in, rate.shape.in, rate.shape.out, counted(threads, "thread"));
  }
  machine.flops_per_s = gflops * 1e9;
  Json left_out = Json::array();
  if (machine.device.memory_bytes_per_s == 0) left_out.push_back("other kernels");
  if (update_seconds(machine) == 0) left_out.push_back("the update");
  source.facts = {{"rate_gflops_per_s", gflops}, {"rate_from", from}, {"left_out", left_out}};
  source.units = seconds_on(machine, job.model, assignment.costs);
  return source;
}

Json plan_report(const RunConfig& config, const PlanOptions& options,
                 const std::optional<MemoryBytes>& machine) {
  const int threads = std::max(1, config.run.threads);
  const Job job = job_of(config);
  Assignment assignment = assignment_of(config, job, options.world, "--world {}");
  const PlanSource source = plan_source(job, assignment, config, options, threads);
  assignment.exchange.hosts = hosts_of(source.machine, options.world);
  std::vector<int> largest;
  const std::vector<RankMemory> memory = predict_memory(config, job, assignment, threads, &largest);
  const std::size_t all =
      std::accumulate(memory.begin(), memory.end(), std::size_t{0},
                      [](std::size_t sum, const RankMemory& rank) { return sum + rank.total(); });
  Json report = {{"layout", short_form(assignment.layout)},
                 {"layout_toml", to_toml(assignment.layout)},
                 {"world", assignment.world},
                 {"threads", threads},
                 {"schedule", config.parallel.schedule},
                 {"microbatches", job.microbatches},
                 {"leaves", job.leaves},
                 {"parameters", parameter_count(assignment.buckets)},
                 {"frozen_units", assignment.layout.frozen_units},
                 {"trained_parameters",
                  parameters_of(assignment.buckets, [](const Bucket& one) { return !one.frozen; })},
                 {"pipelines", pipelines_json(job, assignment)},
                 {"memory", memory_json(memory)},
                 {"peak_bytes", largest_total(memory)},
                 {"all_ranks_bytes", all}};
  const SaveMemory saves = predict_save_memory(config, job, assignment);
  report["checkpoint_copy_bytes"] = saves.copy;
  report["snapshot_bytes"] = saves.snapshots;
  report["machine"] = {{"available_bytes", machine ? Json(machine->available) : Json()},
                       {"total_bytes", machine ? Json(machine->total) : Json()},
                       {"name", machine ? Json(machine->name) : Json()}};
  report.update(source.facts);
  const Costs costs = plan_costs(job, assignment, source.units, source.machine);
  report["links"] = links_json(source.links, assignment.layout, costs);
  add_times(assignment, config, costs, report);
  report["recompute"] =
      recompute_json(config, options, threads, report, std::move(assignment), largest);
  report["warnings"] =
      machine ? memory_advice(config, threads, memory, *machine) : std::vector<std::string>{};
  return report;
}

}  // namespace concertina
