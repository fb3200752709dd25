// `concertina verify`: same bits at every layout, for a user's own model and schedule.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "core/error.h"
#include "core/log.h"
#include "core/text/number_text.h"
#include "experiments/bench/random_samples.h"
#include "experiments/commands/command.h"
#include "experiments/launch/launch.h"
#include "experiments/run/verify.h"
#include "experiments/train/verify_run.h"

namespace concertina {
namespace {

struct VerifyOptions : ConfigOptions {
  std::string layouts = "all";
  std::optional<std::int64_t> steps;
  bool run = false;
};

constexpr std::int64_t kSteps = 4;  // of each layout

/// Cases whose layout is one of those asked for ("pp2xdp1,2+1"); the config's own always.
std::vector<VerifyCase> choose(std::vector<VerifyCase> cases, const std::string& wanted) {
  if (wanted == "all") return cases;
  const std::string list = "," + wanted + ",";
  std::vector<VerifyCase> chosen{cases.front()};
  std::vector<std::string> names;
  for (std::size_t c = 1; c < cases.size(); ++c) {
    const std::string name = short_form(cases[c].assignment.layout);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    if (list.find("," + name + ",") != std::string::npos) chosen.push_back(std::move(cases[c]));
  }
  if (chosen.size() == 1)
    throw_input(fmt::format("no layout of this world is '{}'", wanted), "--layouts",
                fmt::format("all, or some of: {}", fmt::join(names, ",")));
  return chosen;
}

std::string text_of(const VerifyResult& result) {
  if (result.same()) return fmt::format("{:<44} same bits\n", result.name);
  std::string text = fmt::format("{:<44} DIFFERS", result.name);
  if (!result.moved) text += ": the change to it lost bits";
  if (result.first_step > 0)
    text +=
        fmt::format(": after step {}, in {}", result.first_step, fmt::join(result.buckets, ", "));
  return text + "\n";
}

nlohmann::ordered_json json_of(const VerifyResult& result) {
  return {{"name", result.name},
          {"same", result.same()},
          {"moved", result.moved},
          {"first_step", result.first_step},
          {"differ", result.buckets}};
}

/// The closing words on `results`, of layouts held against `reference`.
std::string verdict_of(const std::vector<VerifyResult>& results, const std::string& reference) {
  const auto same = std::ranges::count_if(results, &VerifyResult::same);
  if (same == std::ssize(results))
    return "every bit of weights, optimizer state, loss and gradient norm is the same\n";
  const auto alike = static_cast<std::ptrdiff_t>(differ_alike(results));
  if (alike > same + 1)
    return fmt::format(
        "NOT the same bits at every layout: {} of {} differ from {} to the same bits, so it is "
        "{} that is likely to be wrong\n",
        alike, results.size(), reference, reference);
  return fmt::format("NOT the same bits at every layout: where one differs, it or {} is wrong\n",
                     reference);
}

nlohmann::ordered_json json_of(const RunVerdict& verdict) {
  return {{"steps", verdict.steps},           {"same", verdict.same()},
          {"freezes", verdict.freezes},       {"layout_changes", verdict.layouts},
          {"cached_samples", verdict.cached}, {"first_step", verdict.first_step},
          {"layout", verdict.layout},         {"differ", verdict.differ},
          {"exercised", verdict.exercised()}};
}

std::string text_of(const RunVerdict& verdict) {
  const std::string did =
      fmt::format("{} of layers frozen, {} of the layout, {} read from the cache",
                  counted(verdict.freezes, "change"), counted(verdict.layouts, "change"),
                  counted(static_cast<std::int64_t>(verdict.cached), "sample"));
  if (verdict.same())
    return fmt::format(
        "{}\nevery loss, gradient norm and gradient, and all weights and optimizer "
        "state at the end, are the same bits in both runs\n",
        did);
  return fmt::format(
      "{}\nNOT the same bits: after step {}, at {}, in {}. One of the two runs is wrong\n", did,
      verdict.first_step, verdict.layout, fmt::join(verdict.differ, ", "));
}

/// The run with all its policies against the run without cache and layout policy.
int verify_policies(const VerifyOptions& options, MpiEnvironment& mpi) {
  RunConfig config = options.config;
  // A run directory, which is the usual place, is not made here.
  if (config.cache.dir.empty()) config.cache.dir = std::filesystem::temp_directory_path().string();
  Launch launch(config, mpi, "train");
  if (launch.dataset == nullptr)
    throw_input("a run is trained on data, and there is none", "data.text", "files of text");
  launch.begin();
  const std::int64_t steps = options.steps.value_or(launch.config.run.steps);
  const bool prints = launch.leads() && !options.json;
  if (prints)
    print_once(fmt::format(
        "the run with freeze.policy = \"{}\", elastic.policy = \"{}\"{} against the "
        "run without cache and layout policy, {} each, on {}\n",
        config.freeze.policy, config.elastic.policy, uses_cache(config) ? " and cache" : "",
        counted(steps, "step"), counted(launch.world.size(), "rank")));
  const RunVerdict verdict = verify_run(launch, steps);
  if (launch.leads()) print_once(options.json ? json_line(json_of(verdict)) : text_of(verdict));
  if (launch.leads() && !verdict.exercised())
    log::warn(
        "nothing was verified: no layer was frozen, no layout changed and no cache read; try: more "
        "--steps, or a policy that acts within them");
  return verdict.same() ? 0 : static_cast<int>(Exit::failure);
}

int run_verify(const VerifyOptions& options, MpiEnvironment& mpi) {
  if (options.run) return verify_policies(options, mpi);
  const std::int64_t steps = options.steps.value_or(kSteps);
  Launch launch(options.config, mpi, "verify");
  Trainer& trainer = launch.trainer;
  const std::vector<VerifyCase> cases =
      choose(verify_cases(trainer.job(), trainer.assignment(), launch.config.parallel.schedule),
             options.layouts);
  trainer.initialize();
  launch.begin();
  std::unique_ptr<BatchSource> source;
  if (launch.dataset != nullptr)
    source = std::make_unique<TrainingSource>(launch.dataset, data_seed(launch.config),
                                              launch.config.batch.global);
  else
    source = std::make_unique<RandomSamples>(launch.config, trainer.job().model);
  const bool prints = launch.leads() && !options.json;
  if (prints)
    print_once(fmt::format("{} against {} layouts, {} each, on {} of {} ranks\n",
                           cases.front().name, cases.size() - 1, counted(steps, "step"),
                           launch.dataset != nullptr ? "the data" : "random samples",
                           launch.world.size()));
  const std::vector<VerifyResult> results =
      verify(trainer, cases, steps, *source, [&](const VerifyResult& result) {
        if (prints) print_once(text_of(result));
      });
  const bool same = std::all_of(results.begin(), results.end(),
                                [](const VerifyResult& result) { return result.same(); });
  if (launch.leads() && options.json) {
    nlohmann::ordered_json json{{"reference", cases.front().name},
                                {"steps", steps},
                                {"same", same},
                                {"layouts", nlohmann::ordered_json::array()}};
    for (const VerifyResult& result : results) json["layouts"].push_back(json_of(result));
    print_once(json_line(json));
  } else if (prints) {
    print_once(verdict_of(results, cases.front().name));
  }
  return same ? 0 : static_cast<int>(Exit::failure);
}

void add_verify_options(CLI::App& app, VerifyOptions& options) {
  app.add_option("--layouts", options.layouts,
                 "all (every layout and schedule that fits the world, with spare ranks too), or "
                 "some by name: pp2xdp1,2+1")
      ->capture_default_str();
  app.add_option("--steps", options.steps,
                 "steps that each layout trains, 4 if not given; with --run those of the run")
      ->check(whole_number(1, 1000000));
  app.add_flag(
         "--run", options.run,
         "the run with its freeze policy, cache and layout policy against the same run without "
         "cache and layout policy")
      ->excludes("--layouts");
  add_json_option(app, options);
}

}  // namespace

Command command_verify() {
  return make_command<VerifyOptions>("same bits at every layout and schedule, in one process",
                                     add_verify_options, run_verify);
}

}  // namespace concertina
