// `concertina generate`: generates text with a run's best or newest checkpoint.
#include "experiments/evaluate/generate.h"

#include "core/log.h"
#include "experiments/commands/command.h"
#include "experiments/launch/launch.h"
#include "experiments/machine/exit.h"
#include "experiments/run/best_commit.h"
#include "experiments/run/run_checkpoint.h"

namespace concertina {
namespace {

constexpr int kTokens = 200;  // used if generate.tokens is 0, a value meant for the end of `train`

struct GenerateOptions : ConfigOptions {
  bool newest = false;  // instead of the best
};

int run_generate(const GenerateOptions& options, MpiEnvironment& mpi) {
  RunConfig config = options.config;
  config.data.text.clear();
  config.data.files.clear();  // only the prompt is needed
  if (config.generate.tokens == 0) config.generate.tokens = kTokens;
  const std::unique_ptr<Launch> launch = open_launch(config, mpi, "generate");
  nlohmann::json stored;
  const std::int64_t step =
      require_checkpoint(launch->trainer, checkpoint_directory(launch->config),
                         options.newest ? Chosen::newest : Chosen::best, &stored);
  launch->begin();
  if (launch->leads() && !options.json) log::info("model after {}", step_text(step, stored));
  const GenerateSection& wanted = launch->config.generate;
  const std::string text =
      generate(launch->trainer, *launch->tokenizer, wanted, launch->config.run.seed);
  if (options.json)
    print_once(json_line({{"step", step}, {"prompt", wanted.prompt}, {"text", text}}));
  else
    print_once(terminal_text(wanted.prompt + text) + "\n");
  return 0;
}

}  // namespace

Command command_generate() {
  return make_command<GenerateOptions>(
      "generate text with a run's best or newest checkpoint",
      [](CLI::App& app, GenerateOptions& options) {
        add_json_option(app, options);
        add_newest_option(app, options.newest);
      },
      run_generate);
}

}  // namespace concertina
