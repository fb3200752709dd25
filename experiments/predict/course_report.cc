#include "experiments/predict/course_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include <functional>

#include "core/error.h"
#include "core/number_text.h"
#include "experiments/config/config_toml.h"
#include "experiments/run/planning.h"
#include "experiments/run/trainer.h"
#include "parallel/policies/freeze_ladder.h"
#include "parallel/repartition/course.h"

namespace concertina {
namespace {

using Json = nlohmann::ordered_json;

/// A part of what freezing gives, on top of those before it.
struct LadderPart {
  const char* rung;
  std::vector<const char*> keys;  // that make it, on top of the config
  Rung FreezeLadder::*ceiling = nullptr;
};

std::vector<LadderPart> ladder_parts() {
  return {
      {"static", {"freeze.policy=none", "elastic.policy=none", "cache.memory=0", "cache.disk=0"}},
      {"freeze", {"elastic.policy=none", "cache.memory=0", "cache.disk=0"}, &FreezeLadder::freeze},
      {"repack",
       {"elastic.policy=predicted", "elastic.every=4", "elastic.depth=false",
        "elastic.replicas=false", "elastic.schedule=false", "cache.memory=0", "cache.disk=0"},
       &FreezeLadder::repack},
      {"replicas",
       {"elastic.policy=predicted", "elastic.every=4", "elastic.schedule=false", "cache.memory=0",
        "cache.disk=0"},
       &FreezeLadder::replicas},
      {"cache",
       {"elastic.policy=predicted", "elastic.every=4", "elastic.schedule=false",
        "cache.memory=1GiB"},
       &FreezeLadder::cache}};
}

std::int64_t samples_of(const RunConfig& config) {
  if (data_files(config).empty())
    throw_input("cannot tell how many samples an epoch has", files_key(config),
                fmt::format("--samples N, or {}=FILE", files_key(config)));
  return static_cast<std::int64_t>(
      open_sources(config, tokenizer_of(config), std::identity())->samples(Split::train));
}

/// The layers frozen during each epoch.
std::vector<int> course_of(const RunConfig& config, const Job& job, int epochs,
                           std::int64_t steps) {
  if (config.freeze.every > 0)
    throw_input("decisions within an epoch are not foreseen", config.where("freeze.every"),
                "freeze.every = 0: at the ends of epochs");
  std::vector<int> layers;
  for (const double frozen : foreseen_course(freeze_rules(config, job.model), epochs, steps))
    layers.push_back(static_cast<int>(frozen));
  return layers;
}

/// All that the rungs of one ladder share.
struct LadderRun {
  const RunConfig& config;
  Job job;
  Request asked;
  ForecastInput forecast;
  std::vector<int> layers;
  std::vector<std::int64_t> steps;
  const std::function<void(const std::string&)>& progress;

  void tell(const std::string& what) const {
    if (progress) progress(what);
  }
};

ForecastInput forecast_of(const PlanSource& source, const RunConfig& config, const Job& job) {
  const double entry =
      static_cast<double>(job.model.boundary_bytes) / static_cast<double>(job.model.samples);
  return {.units = source.units,
          .machine = source.machine,
          .cache = {.share = 1, .read_s_per_sample = entry * source.machine.cache_read_s_per_byte},
          .kinds = state_kinds(job, *optimizer_of(config)).size(),
          .move_memory = static_cast<std::size_t>(config.parallel.move_memory.bytes)};
}

/// As `config` has [freeze], [elastic] and [cache]; `what`: for a person who waits.
std::vector<CourseEpoch> epochs_of(const LadderRun& run, const RunConfig& config,
                                   const std::string& what) {
  const ElasticSection& elastic = config.elastic;
  const bool caches = config.cache.memory.bytes > 0 || config.cache.disk.bytes > 0;
  CourseInput input{
      .job = run.job,
      .asked = run.asked,
      .policy = lookup(layout_policies(), elastic.policy, "layout policy", "elastic.policy"),
      .options = layout_options(config),
      .every = elastic.every,
      .forecast = run.forecast,
      .progress = [&](std::size_t epoch) {
        run.tell(fmt::format("{}: epoch {} of {}", what, epoch + 1, run.layers.size()));
      }};
  if (!caches) input.forecast.cache = {};
  const std::vector<int> none(run.layers.size());
  return foresee(input, config.freeze.policy == "none" ? none : run.layers, run.steps);
}

RunConfig with_keys(RunConfig config, const std::vector<const char*>& keys) {
  for (const char* key : keys) set_config(key, config);
  return config;
}

/// The unfrozen run on the layout that is predicted to be the fastest.
double best_static_seconds(const LadderRun& run) {
  run.tell("the best static layout");
  const Assignment now = assign(run.job, run.asked);
  const LayoutForecast forecast(run.job, now, run.forecast);
  const std::int64_t steps = std::accumulate(run.steps.begin(), run.steps.end(), std::int64_t{0});
  const LayoutDecision decision =
      lookup(layout_policies(), "predicted", "layout policy", "elastic.policy")
          .decide({.job = run.job,
                   .asked = run.asked,
                   .now = now,
                   .steps_left = steps,
                   .options = {.least_gain = 0},
                   .forecast = forecast,
                   .start = start_of(run.asked, now)});
  const double step = decision.next ? decision.next->step_seconds : decision.step_seconds;
  return step * static_cast<double>(steps);
}

/// The times of a layer, as the run's costs have them: the mean over layers.
LadderShape mean_layer(const LadderRun& run) {
  const ModelSpec& model = run.job.model;
  LadderShape layer{.forward = 0, .input = 0, .weight = 0, .frozen = 0};
  int first = 1;  // the embedding is unit 0
  for (const int end : model.layer_ends) {
    for (int unit = first; unit < end; ++unit) {
      const UnitSeconds& seconds = run.forecast.units[static_cast<std::size_t>(unit)];
      layer.forward += seconds.forward;
      layer.input += seconds.input;
      layer.weight += seconds.weight;
      layer.frozen += seconds.frozen > 0 ? seconds.frozen : seconds.forward;
      if (unit == first) layer.first_input += seconds.input;
    }
    first = end;
  }
  const auto layers = static_cast<double>(model.layer_ends.size());
  for (double* time :
       {&layer.forward, &layer.input, &layer.weight, &layer.frozen, &layer.first_input})
    *time /= layers;
  return layer;
}

/// The ceilings of this course. `fixed`: share of an unfrozen step outside of the layers.
FreezeLadder ceilings_of(const LadderRun& run, double fixed) {
  const std::vector<double> course(run.layers.begin(), run.layers.end());
  const Layout layout = assign(run.job, run.asked).layout;
  const Pipeline& pipeline = layout.pipelines.front();
  LadderShape shape = mean_layer(run);
  shape.layers = static_cast<int>(run.job.model.layer_ends.size());
  shape.stages = static_cast<int>(pipeline.stages.size());
  shape.microbatches = pipeline.microbatches();
  shape.fixed = fixed;
  return freeze_ladder(course, shape);
}

Json ladder_json(const LadderRun& run, double fixed) {
  const FreezeLadder ceilings = ceilings_of(run, fixed);
  const bool gpipe = run.asked.schedule == "gpipe";
  const double best = best_static_seconds(run);
  double slowest = 0;
  Json ladder = Json::array();
  for (const LadderPart& part : ladder_parts()) {
    const double seconds = seconds_of(epochs_of(run, with_keys(run.config, part.keys), part.rung));
    if (slowest == 0) slowest = seconds;
    const Rung ceiling = part.ceiling == nullptr ? Rung{} : ceilings.*part.ceiling;
    ladder.push_back(
        {{"rung", part.rung},
         {"keys", part.keys},
         {"seconds", seconds},
         {"over_static", slowest / seconds},
         {"over_best", best / seconds},
         {"ceiling_over_static", gpipe ? Json(ceiling.over_gpipe) : Json()},
         {"ceiling_over_best", part.ceiling == nullptr ? Json() : Json(ceiling.over_best)}});
  }
  return ladder;
}

Json course_json(const LadderRun& run) {
  const std::vector<CourseEpoch> epochs = epochs_of(run, run.config, "the config");
  const MachineModel& machine = run.forecast.machine;
  const bool known = machine.moves != MoveRates{} || machine.local != LinkCosts{} ||
                     machine.remote != LinkCosts{} || !machine.pairs.empty();
  Json course = Json::array();
  for (std::size_t e = 0; e < epochs.size(); ++e)
    course.push_back({{"epoch", e},
                      {"frozen_layers", epochs[e].layers},
                      {"layout", epochs[e].layout},
                      {"batch", epochs[e].batches * run.config.batch.global},
                      {"steps", epochs[e].steps},
                      {"change_s", known ? Json(epochs[e].change_s) : Json()},
                      {"late_s", epochs[e].late_s},
                      {"step_s", epochs[e].step_s},
                      {"seconds", epochs[e].seconds()}});
  return course;
}

}  // namespace

Json course_report(RunConfig config, const PlanOptions& plan, const CourseOptions& options) {
  config.freeze.policy = options.policy;
  validate(config);
  const std::int64_t samples = options.samples > 0 ? options.samples : samples_of(config);
  const std::vector<std::int64_t> steps =
      steps_of_epochs(samples, config.batch.global, options.epochs);
  config.run.steps = std::accumulate(steps.begin(), steps.end(), std::int64_t{0});
  const Job job = job_of(config);
  const Assignment assignment = assignment_of(config, job, plan.world, "--world {}");
  const PlanSource source =
      plan_source(job, assignment, config, plan, std::max(1, config.run.threads));
  const LadderRun run{.config = config,
                      .job = job,
                      .asked = request_of(config, plan.world),
                      .forecast = forecast_of(source, config, job),
                      .layers = course_of(config, job, options.epochs, steps.front()),
                      .steps = steps,
                      .progress = options.progress};
  const double fixed = fixed_share(job, assignment, run.forecast);
  Json report = {{"policy", options.policy},
                 {"epochs", options.epochs},
                 {"samples", samples},
                 {"steps", config.run.steps},
                 {"world", plan.world},
                 {"layout", short_form(assignment.layout)},
                 {"schedule", config.parallel.schedule},
                 {"fixed_share", fixed}};
  report.update(source.facts);
  report["course"] = course_json(run);
  report["ladder"] = ladder_json(run, fixed);
  return report;
}

std::string course_text(const Json& report) {
  std::string text = fmt::format(
      "{} on {}, {} {}: {} of {} samples, {}\n\n{:>5}{:>8}{:>11}{:>11}{:>12}{:>7}  {}\n",
      report["policy"].get<std::string>(), counted(report["world"].get<int>(), "rank"),
      report["layout"].get<std::string>(), report["schedule"].get<std::string>(),
      fmt::format("{} epochs", report["epochs"].get<int>()), report["samples"].get<std::int64_t>(),
      counted(report["steps"].get<std::int64_t>(), "step"), "epoch", "frozen", "ms/step",
      "change ms", "epoch s", "batch", "layout");
  for (const Json& epoch : report["course"])
    text += fmt::format("{:>5}{:>8}{:>11.4g}{:>11}{:>12.4g}{:>7}  {}\n", epoch["epoch"].get<int>(),
                        epoch["frozen_layers"].get<int>(), epoch["step_s"].get<double>() * 1e3,
                        epoch["change_s"].is_null()
                            ? "?"
                            : fmt::format("{:.3g}", epoch["change_s"].get<double>() * 1e3),
                        epoch["seconds"].get<double>(), epoch["batch"].get<int>(),
                        epoch["layout"].get<std::string>());
  text += fmt::format("\n{:<10}{:>12}{:>13}{:>10}{:>12}{:>10}\n", "rung", "seconds", "over static",
                      "ceiling", "over best", "ceiling");
  const auto cell = [](const Json& value) {
    return value.is_null() ? std::string("-") : fmt::format("{:.2f}", value.get<double>());
  };
  for (const Json& rung : report["ladder"])
    text += fmt::format("{:<10}{:>12.4g}{:>13}{:>10}{:>12}{:>10}\n",
                        rung["rung"].get<std::string>(), rung["seconds"].get<double>(),
                        cell(rung["over_static"]), cell(rung["ceiling_over_static"]),
                        cell(rung["over_best"]), cell(rung["ceiling_over_best"]));
  return text +
         fmt::format(
             "\n{:.1f}% of an unfrozen step is outside of the layers; static is the "
             "layout and schedule above,\nbest the fastest unfrozen one. A rung has "
             "all before it; --json names its keys.\nA ceiling is in closed form, from the mean "
             "times of a layer here: nothing waits, moves or reads.\n{}",
             100 * report["fixed_share"].get<double>(),
             report["course"][0]["change_s"].is_null()
                 ? "What a change takes is not known: give --costs or --links of a run.\n"
                 : "");
}

}  // namespace concertina
