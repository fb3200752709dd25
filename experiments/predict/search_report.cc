#include "experiments/predict/search_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/index.h"
#include "core/text/number_text.h"
#include "experiments/config/byte_size.h"
#include "experiments/predict/machine_file.h"
#include "experiments/predict/predict_memory.h"
#include "experiments/run/devices.h"
#include "experiments/run/planning.h"
#include "parallel/predict/layout_search.h"
#include "parallel/predict/plan_costs.h"
#include "parallel/predict/unit_work.h"
#include "parallel/runtime/state.h"
#include "parallel/simulate/simulate.h"

namespace concertina {
namespace {

using Json = nlohmann::ordered_json;

// Limits below which planning memory to the byte takes at most a second: total actions of all
// ranks, and total units of all ranks.
constexpr double kCheapActions = 4e6;
constexpr std::int64_t kCheapUnits = 20'000;

double memory_of(const LayoutSearchOptions& options, const MachineModel& machine) {
  if (!options.device_memory) {
    if (machine.device.memory > 0) return machine.device.memory;
    throw_input(fmt::format("{} has no `memory`", options.machine), "plan search",
                "--device-memory 40GiB, or memory = \"40 GiB\" in the machine file");
  }
  const std::string& text = *options.device_memory;
  const auto size = parse_byte_size(text);
  const bool digits = !text.empty() && text.find_first_not_of("0123456789.") == std::string::npos;
  if (!size || size->bytes == 0)
    throw_input(size     ? "no layout fits a device without memory"
                : digits ? fmt::format("the memory '{}' has no unit", text)
                         : fmt::format("'{}' is not a memory size", text),
                "--device-memory", "a number and a unit, such as 40GiB or 40000000000B");
  return static_cast<double>(size->bytes);
}

/// The model for microbatches of one sample; recomputation is chosen per candidate.
ModelSpec model_of_samples(RunConfig config) {
  config.batch.microbatches = config.batch.global;
  config.parallel.recompute = {};
  return model_of(config)->spec();
}

/// Returns the bytes per weight that this program keeps in addition to the weight itself, as copies
/// packed for its kernels, in a layer of the model on the config's device.
double packed_bytes_per_weight(const RunConfig& config) {
  const std::unique_ptr<Model> model = model_of(config);
  const auto backend = make_sizing_backend(config, std::max(1, config.run.threads));
  const int unit = model->spec().layer_ends.front() - 1;
  double weights = 0;
  for (const ParameterSpec& parameter : model->spec().units[at(unit)].parameters)
    weights += static_cast<double>(parameter.count());
  return static_cast<double>(model->make_unit(unit, *backend)->memory().packed_bytes) / weights;
}

/// Bytes per parameter in this program, with the config's optimizer and on its device.
ParameterBytes own_bytes(const RunConfig& config) {
  const std::size_t kinds = state_kinds(job_of(config), *optimizer_of(config)).size();
  return {.weight = sizeof(float) + packed_bytes_per_weight(config),
          .optimizer = static_cast<double>(sizeof(float) * kinds)};
}

/// The search space; by default, a search for this program has only layouts that it can run.
SearchSpace space_of(const LayoutSearchOptions& options, const MachineModel& machine,
                     const Software& software) {
  SearchSpace space{.world = options.world,
                    .ranks_per_host = machine.ranks_per_host,
                    .tp = options.tp.empty() && software.sums_by_tree ? std::vector{1} : options.tp,
                    .pp = options.pp,
                    .samples = options.microbatch,
                    .chunks = options.chunks,
                    .schedules = options.schedules};
  for (const std::string& word : options.recompute) space.recompute.push_back(find_recompute(word));
  return space;
}

/// `config` with the keys of a candidate that this program can run; writes them to `keys`.
RunConfig config_of(RunConfig config, const PlanCandidate& candidate, std::string& keys) {
  config.parallel.layout = {};
  config.parallel.pp = candidate.pp;
  config.parallel.dp = candidate.dp;
  config.parallel.chunks = candidate.chunks;
  config.parallel.schedule = candidate.schedule;
  config.batch.microbatches = config.batch.global / candidate.samples;
  keys = fmt::format(
      "parallel.pp={} parallel.dp={} parallel.chunks={} parallel.schedule={} "
      "batch.microbatches={}",
      candidate.pp, candidate.dp, candidate.chunks, candidate.schedule, config.batch.microbatches);
  const std::vector<std::string> words[] = {{}, {"attention"}, {"full"}};
  const auto& chosen = words[static_cast<int>(candidate.recompute)];
  if (config.parallel.recompute != chosen)
    keys += fmt::format(" parallel.recompute={}", chosen.empty() ? "[]" : chosen.front());
  config.parallel.recompute = chosen;
  config.numerics.leaves = 0;
  if (reduction_leaves(config) % candidate.dp != 0) {
    config.numerics.leaves = candidate.dp;
    keys += fmt::format(" numerics.leaves={}", candidate.dp);
  }
  return config;
}

bool runs_here(const PlanProblem& problem, const PlanCandidate& candidate) {
  return candidate.tp == 1 && problem.software.name == "concertina";
}

/// A candidate's run, fully planned; nullopt if it cannot run here or planning it would be slow.
struct PlannedRun {
  RunConfig config;
  Job job;
  Assignment assignment;
};
std::optional<PlannedRun> planned_run(const RunConfig& given, const PlanProblem& problem,
                                      const PlanCandidate& candidate) {
  const double actions =
      simulated_actions(candidate, candidate.microbatches(problem.batch)) * candidate.dp;
  const auto units = std::ssize(problem.model.units) * candidate.world();
  if (!runs_here(problem, candidate) || actions > kCheapActions || units > kCheapUnits)
    return std::nullopt;
  std::string keys;
  const RunConfig config = config_of(given, candidate, keys);
  const Job job = job_of(config);
  return PlannedRun{config, job, assignment_of(config, job, candidate.world())};
}

/// Returns the bytes that a run reserves on its fullest rank, if computing them is fast.
std::optional<double> exact_bytes(const RunConfig& given, const PlanProblem& problem,
                                  const PlanCandidate& candidate) {
  const auto run = planned_run(given, problem, candidate);
  if (!run) return std::nullopt;
  return static_cast<double>(largest_total(predict_memory(run->config, run->job, run->assignment,
                                                          std::max(1, run->config.run.threads))));
}

/// Returns the step time of `plan show`, which simulates all replicas and every message.
Json plan_show_seconds(const RunConfig& given, const PlanProblem& problem,
                       const PlanCandidate& candidate) {
  auto run = planned_run(given, problem, candidate);
  if (!run) return {};
  run->assignment.exchange.hosts = hosts_of(problem.machine, candidate.world());
  const std::vector<UnitSeconds> units =
      seconds_on(problem.machine, run->job.model, run->assignment.costs);
  return simulate(run->assignment.plan, run->assignment.layout,
                  plan_costs(run->job, run->assignment, units, problem.machine))
      .makespan;
}

/// Returns ", stages of 5, 6 x 10, 5 layers"; empty if all are equal or some have half layers.
std::string layers_text(const std::vector<int>& layers) {
  if (layers.empty() || std::ranges::count(layers, layers.front()) == std::ssize(layers)) return "";
  std::string text = ", stages of ";
  for (auto first = layers.begin(); first != layers.end();) {
    const auto last = std::find_if(first, layers.end(), [&](int one) { return one != *first; });
    text += fmt::format("{}{}", first == layers.begin() ? "" : ", ", *first);
    if (last - first > 1) text += fmt::format(" x {}", last - first);
    first = last;
  }
  return text + " layers";
}

Json candidate_json(const RunConfig& config, const PlanProblem& problem, const FoundLayout& found) {
  const PlanCandidate& candidate = found.candidate;
  const double peak = problem.machine.device.peak_flops_per_s * candidate.world();
  const double seconds = found.step.seconds;
  const auto share = [&](double flops) {
    return peak > 0 ? Json(flops / (seconds * peak)) : Json();
  };
  const double model = model_flops(problem.model, problem.batch);
  const double hardware = model + found.recompute_flops;
  std::string keys;
  config_of(config, candidate, keys);
  return {{"tp", candidate.tp},
          {"pp", candidate.pp},
          {"dp", candidate.dp},
          {"chunks", candidate.chunks},
          {"schedule", candidate.schedule},
          {"microbatch_samples", candidate.samples},
          {"microbatches", candidate.microbatches(problem.batch)},
          {"layers", found.layers},
          {"recompute", name_of(candidate.recompute)},
          {"runs_here", runs_here(problem, candidate)},
          {"keys", runs_here(problem, candidate) ? Json(keys) : Json()},
          {"text", to_text(candidate) + layers_text(found.layers)},
          {"simulated", found.simulated},
          {"step_s", seconds},
          {"tokens_per_s",
           static_cast<double>(problem.batch * problem.model.tokens_per_sample) / seconds},
          {"tflops_per_gpu", hardware / seconds / candidate.world() * 1e-12},
          {"mfu", share(model)},
          {"hfu", share(hardware)},
          {"memory",
           {{"exact", found.exact},
            {"total_bytes", found.memory.total()},
            {"weights_bytes", found.memory.weights},
            {"optimizer_bytes", found.memory.optimizer},
            {"activations_bytes", found.memory.activations},
            {"reserved_bytes", found.memory.reserved},
            {"margin_bytes", problem.memory - found.memory.total()}}}};
}

void add_parts(const StepPrediction& step, Json& json) {
  json["parts"] = {{"compute", step.compute},   {"recompute", step.again},
                   {"group", step.group},       {"bubble", step.bubble},
                   {"transfer", step.transfer}, {"reduction", step.reduction},
                   {"update", step.update}};
}

/// Adds the largest part of the step other than computation; `twice`: the time of the fastest
/// layout that needs at most twice the memory.
void add_help(const StepPrediction& step, double twice, Json& json) {
  std::pair<double, const char*> most{step.bubble, "bubble"};
  for (const auto& part : {std::pair{step.transfer, "transfer"},
                           {step.reduction, "reduction"},
                           {step.again, "recompute"},
                           {step.group, "group"},
                           {step.seconds - twice, "memory"}})
    if (part.first > most.first) most = part;
  json["help_most"] = {{"part", most.second}, {"seconds", most.first}};
}

[[noreturn]] void nothing_fits(const PlanProblem& problem, const SearchOutcome& outcome) {
  const FoundLayout& nearest = outcome.too_large.front();
  const auto gib = [](double bytes) { return gib_text(static_cast<std::size_t>(bytes)); };
  throw_input(
      fmt::format("none of {} layouts fits into {} per device; the nearest, {}, needs {}: {} more",
                  grouped(static_cast<std::int64_t>(outcome.candidates)),
                  to_text(ByteSize{static_cast<std::int64_t>(problem.memory)}),
                  to_text(nearest.candidate), gib(nearest.memory.total()),
                  gib(nearest.memory.total() - problem.memory)),
      "plan search",
      fmt::format("a larger --world; at least --device-memory {:.2f}GiB; a smaller "
                  "model; or larger --tp (1,2,4,8; only 1 runs in Concertina) and --recompute",
                  std::ceil(100 * nearest.memory.total() / (1 << 30)) / 100));
}

Json layouts_json(const RunConfig& config, const PlanProblem& problem,
                  const SearchOutcome& outcome) {
  Json layouts = Json::array(), too_large = Json::array();
  std::vector<FoundLayout> best = outcome.best;
  std::ranges::stable_partition(
      best, [&](const FoundLayout& found) { return runs_here(problem, found.candidate); });
  for (const FoundLayout& found : best) {
    Json json = candidate_json(config, problem, found);
    json["plan_show_s"] = plan_show_seconds(config, problem, found.candidate);
    add_parts(found.step, json);
    add_help(found.step, outcome.twice_seconds, json);
    json["within_tie"] = found.step.seconds <= (1 + kTie) * outcome.best.front().step.seconds;
    layouts.push_back(json);
  }
  for (const FoundLayout& found : outcome.too_large)
    too_large.push_back(candidate_json(config, problem, found));
  return {{"layouts", layouts}, {"too_large", too_large}};
}

}  // namespace

PlanProblem search_problem(const RunConfig& config, const LayoutSearchOptions& options) {
  if (options.machine.empty())
    throw_input("a search needs a machine", "plan search",
                fmt::format("--machine FILE.toml, or {}", one_of({}, machine_presets())));
  PlanProblem problem{model_of_samples(config), config.batch.global,
                      find_software(options.software), read_machine(options.machine), 0};
  if (config.freeze.units > 0 || config.parallel.spare > 0)
    throw_input("a search requires that all units train on all ranks", "plan search",
                "freeze.units=0 parallel.spare=0");
  if (options.gflops > 0) problem.machine.flops_per_s = options.gflops * 1e9;
  if (!(problem.machine.flops_per_s > 0))
    throw_input(fmt::format("{} has no rate for matrix products", options.machine), "plan search",
                "flops_per_s = ... in the machine file, or --rate GFLOPS");
  problem.memory = memory_of(options, problem.machine);
  if (problem.software.sums_by_tree)
    problem.software.in_16 = problem.software.in_32 = own_bytes(config);
  if (config.run.peak_tflops > 0)
    problem.machine.device.peak_flops_per_s = config.run.peak_tflops * 1e12;
  return problem;
}

Json search_report(const RunConfig& config, const LayoutSearchOptions& options) {
  const PlanProblem problem = search_problem(config, options);
  const auto exact = [&](const PlanCandidate& candidate) {
    return exact_bytes(config, problem, candidate);
  };
  const SearchOutcome outcome = search_layouts(
      problem, plan_candidates(problem, space_of(options, problem.machine, problem.software)),
      {options.top, options.budget, exact, options.progress});
  if (outcome.best.empty() && outcome.left_out == 0) nothing_fits(problem, outcome);
  if (outcome.best.empty())
    throw_input(fmt::format("the budget of {:g} actions is too small for any layout that fits",
                            options.budget),
                "--budget", "a larger one");
  Json report = {{"compared", problem.machine.compared},
                 {"tie", kTie},
                 {"world", options.world},
                 {"machine", options.machine},
                 {"software", {{"name", problem.software.name}, {"about", problem.software.about}}},
                 {"flops_per_s", problem.machine.flops_per_s},
                 {"peak_flops_per_s", problem.machine.device.peak_flops_per_s},
                 {"device_memory_bytes", problem.memory},
                 {"parameters", parameter_count(make_buckets(problem.model))},
                 {"model_flops", model_flops(problem.model, problem.batch)},
                 {"candidates", outcome.candidates},
                 {"fitting", outcome.fitting},
                 {"simulated", outcome.simulated},
                 {"proven_worse", outcome.worse},
                 {"left_out",
                  {{"count", outcome.left_out},
                   {"least_step_s", outcome.left_out > 0 ? Json(outcome.least_left_out) : Json()}}},
                 {"actions", outcome.actions},
                 {"budget", options.budget}};
  report.update(layouts_json(config, problem, outcome));
  return report;
}

}  // namespace concertina
