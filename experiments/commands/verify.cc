// `concertina verify`: checks that all layouts of a user's model and schedule give the same bits.
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

constexpr std::int64_t kSteps = 4;  // per layout

/// The cases whose layouts are listed in `wanted` ("pp2xdp1,2+1"), always including the config's.
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
    throw_input(fmt::format("no layout '{}' for this number of ranks", wanted), "--layouts",
                fmt::format("all, or some of: {}", fmt::join(names, ",")));
  return chosen;
}

std::string text_of(const VerifyResult& result) {
  if (result.same()) return fmt::format("{:<44} same bits\n", result.name);
  std::string text = fmt::format("{:<44} DIFFERS", result.name);
  if (!result.moved) text += ": the layout change altered bits";
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

/// The verdict on `results`, which compare other layouts with `reference`.
std::string verdict_of(const std::vector<VerifyResult>& results, const std::string& reference) {
  const auto same = std::ranges::count_if(results, &VerifyResult::same);
  if (same == std::ssize(results))
    return "all weights, optimizer states, losses and gradient norms are bit-identical\n";
  const auto alike = static_cast<std::ptrdiff_t>(differ_alike(results));
  if (alike > same + 1)
    return fmt::format(
        "DIFFERENT bits: {} of {} layouts differ from {} in the same way, so {} is probably "
        "wrong\n",
        alike, results.size(), reference, reference);
  return fmt::format("DIFFERENT bits: either the layouts that differ or {} are wrong\n", reference);
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
      fmt::format("{} to frozen layers, {} to the layout, {} read from the cache",
                  counted(verdict.freezes, "change"), counted(verdict.layouts, "change"),
                  counted(static_cast<std::int64_t>(verdict.cached), "sample"));
  if (verdict.same())
    return fmt::format(
        "{}\nevery loss, gradient norm and gradient, and all final weights and optimizer state, "
        "are bit-identical in both runs\n",
        did);
  return fmt::format(
      "{}\nDIFFERENT bits: after step {}, at {}, in {}; one of the two runs is wrong\n", did,
      verdict.first_step, verdict.layout, fmt::join(verdict.differ, ", "));
}

/// Compares the run with all its policies to the run without the cache and the layout policy.
int verify_policies(const VerifyOptions& options, MpiEnvironment& mpi) {
  RunConfig config = options.config;
  // The default, the run directory, is not created here.
  if (config.cache.dir.empty()) config.cache.dir = std::filesystem::temp_directory_path().string();
  Launch launch(config, mpi, "train");
  if (launch.dataset == nullptr) throw_input("no data to train on", "data.text", "files of text");
  launch.begin();
  const std::int64_t steps = options.steps.value_or(launch.config.run.steps);
  const bool prints = launch.leads() && !options.json;
  if (prints)
    print_once(fmt::format(
        "comparing the run with freeze.policy = \"{}\", elastic.policy = \"{}\"{} with the "
        "run without the cache and the layout policy, {} each, on {}\n",
        config.freeze.policy, config.elastic.policy, uses_cache(config) ? " and cache" : "",
        counted(steps, "step"), counted(launch.world.size(), "rank")));
  const RunVerdict verdict = verify_run(launch, steps);
  if (launch.leads()) print_once(options.json ? json_line(json_of(verdict)) : text_of(verdict));
  if (launch.leads() && !verdict.exercised())
    log::warn(
        "nothing was verified: no layer was frozen, no layout changed and no cache entry was read; "
        "try more --steps, or a policy that acts within them");
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
    print_once(fmt::format("comparing {} with {} layouts, {} each, on {} of {} ranks\n",
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
  add_default_option(app, "--layouts", options.layouts,
                     "layouts to check: all (every layout and schedule for this number of ranks, "
                     "including spare ranks), or a list such as pp2xdp1,2+1");
  app.add_option("--steps", options.steps,
                 "training steps per layout (default: 4; with --run: run.steps)")
      ->check(whole_number(1, 1000000));
  app.add_flag(
         "--run", options.run,
         "compare the run with its freeze policy, cache and layout policy to the run without the "
         "cache and the layout policy")
      ->excludes("--layouts");
  add_json_option(app, options);
}

}  // namespace

Command command_verify() {
  return make_command<VerifyOptions>(
      "check that all layouts and schedules give bit-identical results", add_verify_options,
      run_verify);
}

}  // namespace concertina
