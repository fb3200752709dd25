// `concertina verify`: same bits at every layout, for a user's own model and schedule.
#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/number_text.h"
#include "experiments/bench/random_samples.h"
#include "experiments/commands/command.h"
#include "experiments/launch/launch.h"
#include "experiments/run/verify.h"

namespace concertina {
namespace {

struct VerifyOptions : ConfigOptions {
  std::string layouts = "all";
  std::int64_t steps = 4;
};

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

int run_verify(const VerifyOptions& options, MpiEnvironment& mpi) {
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
                           cases.front().name, cases.size() - 1, counted(options.steps, "step"),
                           launch.dataset != nullptr ? "the data" : "random samples",
                           launch.world.size()));
  const std::vector<VerifyResult> results =
      verify(trainer, cases, options.steps, *source, [&](const VerifyResult& result) {
        if (prints) print_once(text_of(result));
      });
  const bool same = std::all_of(results.begin(), results.end(),
                                [](const VerifyResult& result) { return result.same(); });
  if (launch.leads() && options.json) {
    nlohmann::ordered_json json{{"reference", cases.front().name},
                                {"steps", options.steps},
                                {"same", same},
                                {"layouts", nlohmann::ordered_json::array()}};
    for (const VerifyResult& result : results) json["layouts"].push_back(json_of(result));
    print_once(json_line(json));
  } else if (prints) {
    print_once(same ? "every bit of weights, optimizer state, loss and gradient norm is the same\n"
                    : "NOT the same bits at every layout\n");
  }
  return same ? 0 : static_cast<int>(Exit::failure);
}

void add_verify_options(CLI::App& app, VerifyOptions& options) {
  app.add_option("--layouts", options.layouts,
                 "all (every layout and schedule that fits the world, with spare ranks too), or "
                 "some by name: pp2xdp1,2+1")
      ->capture_default_str();
  app.add_option("--steps", options.steps, "steps that each layout trains")
      ->check(whole_number(1, 1000000))
      ->capture_default_str();
  add_json_option(app, options);
}

}  // namespace

Command command_verify() {
  return make_command<VerifyOptions>("same bits at every layout and schedule, in one process",
                                     add_verify_options, run_verify);
}

}  // namespace concertina
