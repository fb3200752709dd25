#include "experiments/predict/plan_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/error.h"
#include "core/text/number_text.h"
#include "experiments/config/config_toml.h"
#include "experiments/predict/report_parts.h"
#include "experiments/run/planning.h"
#include "experiments/run/trainer.h"
#include "parallel/policies/foreseen_course.h"
#include "parallel/repartition/course.h"

namespace concertina {
namespace {

using Json = nlohmann::ordered_json;

/// A rung: one part of the gain from freezing, in addition to the previous rungs.
struct LadderPart {
  std::string name;
  std::vector<const char*> keys;  // set on top of the config
};

std::vector<LadderPart> ladder_parts() {
  return {
      {"static", {"freeze.policy=none", "elastic.policy=none", "cache.memory=0", "cache.disk=0"}},
      {"freeze", {"elastic.policy=none", "cache.memory=0", "cache.disk=0"}},
      {"repack",
       {"elastic.policy=predicted", "elastic.every=4", "elastic.depth=false",
        "elastic.replicas=false", "elastic.schedule=false", "cache.memory=0", "cache.disk=0"}},
      {"replicas",
       {"elastic.policy=predicted", "elastic.every=4", "elastic.schedule=false", "cache.memory=0",
        "cache.disk=0"}},
      {"cache",
       {"elastic.policy=predicted", "elastic.every=4", "elastic.schedule=false",
        "cache.memory=1GiB"}}};
}

std::int64_t samples_of(const RunConfig& config) {
  if (data_files(config).empty())
    throw_input("unknown number of samples per epoch", files_key(config),
                fmt::format("--samples N, or {}=FILE", files_key(config)));
  return static_cast<std::int64_t>(
      open_sources(config, tokenizer_of(config), std::identity())->samples(Split::train));
}

/// The number of layers frozen during each epoch.
std::vector<int> course_of(const RunConfig& config, const Job& job, int epochs,
                           std::int64_t steps) {
  if (config.freeze.every > 0)
    throw_input("decisions within an epoch cannot be predicted", config.where("freeze.every"),
                "freeze.every = 0, which decides at the end of each epoch");
  std::vector<int> layers;
  for (const double frozen : foreseen_course(freeze_rules(config, job.model), epochs, steps))
    layers.push_back(static_cast<int>(frozen));
  return layers;
}

/// The data shared by all rungs of a ladder.
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

/// The input of `predict_course` for the [elastic] section of `config`.
CourseInput input_of(const LadderRun& run, const RunConfig& config) {
  return {
      .job = run.job,
      .asked = run.asked,
      .policy = lookup(layout_policies(), config.elastic.policy, "layout policy", "elastic.policy"),
      .options = layout_options(config),
      .every = config.elastic.every,
      .forecast = run.forecast};
}

/// The epochs predicted for [freeze], [elastic] and [cache] of `config`. Progress names `what`.
std::vector<CourseEpoch> epochs_of(const LadderRun& run, const RunConfig& config,
                                   const std::string& what) {
  CourseInput input = input_of(run, config);
  input.progress = [&](std::size_t epoch) {
    run.tell(fmt::format("{}: epoch {} of {}", what, epoch + 1, run.layers.size()));
  };
  if (config.cache.memory.bytes == 0 && config.cache.disk.bytes == 0) input.forecast.cache = {};
  const std::vector<int> none(run.layers.size());
  return predict_course(input, config.freeze.policy == "none" ? none : run.layers, run.steps);
}

RunConfig with_keys(RunConfig config, const std::vector<const char*>& keys) {
  for (const char* key : keys) set_config(key, config);
  return config;
}

/// The time of the unfrozen run in the layout predicted to be fastest.
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

/// Returns `machine` as if waits, transfers and reads took no time.
MachineModel without_waits(MachineModel machine) {
  machine.local = machine.remote = {};
  machine.pairs.clear();
  machine.moves = {};
  machine.post_s = machine.combine_s_per_byte = machine.cache_read_s_per_byte = 0;
  return machine;
}

/// A lower bound on the time of `rung`, predicted as `epochs`: for `freeze`, its layout without
/// waits; for the other rungs, the remaining work divided into equal shares.
double least_of(const LadderRun& run, const LadderPart& rung,
                const std::vector<CourseEpoch>& epochs) {
  if (rung.name != "freeze")
    return least_seconds(input_of(run, run.config), epochs, rung.name == "repack");
  LadderRun free = run;
  free.forecast.machine = without_waits(run.forecast.machine);
  return seconds_of(epochs_of(free, with_keys(run.config, rung.keys), "freeze, without waits"));
}

/// The number of epochs without freezing that take as much work as `epochs`.
double unfrozen_epochs(const LadderRun& run, const std::vector<CourseEpoch>& epochs) {
  std::vector<CourseEpoch> unfrozen = epochs;
  for (CourseEpoch& epoch : unfrozen) epoch.layers = 0;
  const CourseInput input = input_of(run, run.config);
  return static_cast<double>(epochs.size()) * least_seconds(input, epochs) /
         least_seconds(input, unfrozen);
}

Json ladder_json(const LadderRun& run) {
  const double best = best_static_seconds(run);
  double slowest = 0;
  Json ladder = Json::array();
  for (const LadderPart& part : ladder_parts()) {
    const std::vector<CourseEpoch> epochs =
        epochs_of(run, with_keys(run.config, part.keys), part.name);
    const double seconds = seconds_of(epochs);
    if (slowest == 0) slowest = seconds;
    LadderRun known = run;
    if (part.name != "cache") known.forecast.cache = {};
    const double least = part.name == "static" ? 0 : least_of(known, part, epochs);
    const auto ceiling = [&](double of) { return least > 0 ? Json(of / least) : Json(); };
    ladder.push_back({{"rung", part.name},
                      {"keys", part.keys},
                      {"seconds", seconds},
                      {"unfrozen_epochs", unfrozen_epochs(known, epochs)},
                      {"over_static", slowest / seconds},
                      {"over_best", best / seconds},
                      {"ceiling_over_static", ceiling(slowest)},
                      {"ceiling_over_best", ceiling(best)}});
  }
  return ladder;
}

Json course_json(const LadderRun& run) {
  const std::vector<CourseEpoch> epochs = epochs_of(run, run.config, "the config");
  const MachineModel& machine = run.forecast.machine;
  const bool known = machine.moves != MoveRates{} || has_links(machine);
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
  Json report = {{"policy", config.freeze.policy},
                 {"epochs", options.epochs},
                 {"samples", samples},
                 {"steps", config.run.steps},
                 {"world", plan.world},
                 {"layout", short_form(assignment.layout)},
                 {"schedule", config.parallel.schedule},
                 {"fixed_share", fixed_share(job, assignment, run.forecast)}};
  report.update(source.facts);
  report["course"] = course_json(run);
  report["ladder"] = ladder_json(run);
  return report;
}

std::string course_text(const Json& report) {
  const Json &course = report["course"], &ladder = report["ladder"];
  const bool known = !course[0]["change_s"].is_null();
  std::string text = fmt::format(
      "{} on {}, {} {}: {} epochs of {} samples, {}\n\n{:>5}{:>8}{:>11}{:>11}{:>12}{:>7}  {}\n",
      report["policy"], counted(report["world"], "rank"), report["layout"], report["schedule"],
      report["epochs"], report["samples"], counted(report["steps"], "step"), "epoch", "frozen",
      "ms/step", "change ms", "epoch s", "batch", "layout");
  for (const Json& epoch : course) {
    const double change = known ? epoch["change_s"].get<double>() * 1e3 : 0;
    text += fmt::format("{:>5}{:>8}{:>11.4g}{:>11}{:>12.4g}{:>7}  {}\n", epoch["epoch"],
                        epoch["frozen_layers"], epoch["step_s"].get<double>() * 1e3,
                        known ? fmt::format("{:.3g}", change) : "?", epoch["seconds"],
                        epoch["batch"], epoch["layout"]);
  }
  text += fmt::format("\n{:<10}{:>12}{:>17}{:>13}{:>10}{:>12}{:>10}\n", "rung", "seconds",
                      "unfrozen epochs", "over static", "ceiling", "over best", "ceiling");
  for (const Json& rung : ladder)
    text += fmt::format("{:<10}{:>12.4g}{:>17.2f}{:>13.2f}{:>10.2f}{:>12.2f}{:>10.2f}\n",
                        rung["rung"], rung["seconds"], rung["unfrozen_epochs"], rung["over_static"],
                        rung["ceiling_over_static"], rung["over_best"], rung["ceiling_over_best"]);
  return text +
         fmt::format(
             "\nAll {} epochs take as much work as {:.1f} epochs without freezing, or {:.1f} "
             "with a cache: a run of\nthat many epochs without freezing costs the same.\n"
             "{:.1f}% of the time of an unfrozen step is outside the layers; static is the layout "
             "and schedule above,\nbest is the fastest unfrozen one. A rung includes all previous "
             "ones; --json "
             "lists its keys.\nA ceiling is what a rung would gain if waits, moves and reads "
             "took no time: for freeze in its layout, for repack with\ngpipe and equal stages, "
             "otherwise with the "
             "work shared equally by all ranks.\n{}",
             report["epochs"], ladder[1]["unfrozen_epochs"], ladder.back()["unfrozen_epochs"],
             100 * report["fixed_share"].get<double>(),
             known ? ""
                   : "The duration of a change is unknown: use --costs or --links with a "
                     "run.\n");
}

}  // namespace concertina
