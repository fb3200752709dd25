// `concertina checkpoint import`: creates a run from a Hugging Face model.
#include <fmt/format.h>

#include <filesystem>

#include "experiments/commands/checkpoint/new_run.h"
#include "experiments/commands/command.h"
#include "experiments/config/config_toml.h"
#include "experiments/hugging_face/model_from.h"

namespace concertina {
namespace {

struct ImportOptions : CommandOptions {
  std::string folder, out;
  std::vector<std::string> sets;
};

/// Throws if --set sets a key that is determined by other options.
void require_own_keys(const std::vector<std::string>& sets) {
  RunConfig given;
  for (const std::string& assignment : sets) set_config(assignment, given);
  for (const char* const key : {"model.from", "run.dir", "run.name"})
    if (given.origins.contains(key))
      throw_input(fmt::format("{} is determined by the folder and --out", key), "--set",
                  fmt::format("remove --set {}", key));
}

/// Creates the run `out` with the weights of `folder` as a checkpoint at step 0. Collective.
int run_checkpoint_import(const ImportOptions& options, MpiEnvironment& mpi) {
  namespace fs = std::filesystem;
  require_own_keys(options.sets);
  ConfigOptions asked;
  asked.sets = options.sets;
  const fs::path out = fs::absolute(options.out).lexically_normal();
  asked.defaults.push_back("model.from=" + fs::absolute(options.folder).string());
  asked.defaults.push_back("run.dir=" + out.parent_path().string());
  asked.defaults.push_back("run.name=" + out.filename().string());
  const RunConfig config = load(asked);
  Launch launch(config, mpi, "checkpoint import");
  launch.trainer.initialize();
  start_from(launch.trainer, launch.config);
  launch.begin();
  save_new_run(launch, options.out);
  if (launch.leads()) print_once(fmt::format("{}: model of {}\n", out.string(), options.folder));
  return 0;
}

void add_import_options(CLI::App& app, ImportOptions& options) {
  app.add_option("folder", options.folder, "folder with config.json and model.safetensors")
      ->type_name("DIRECTORY")
      ->required();
  app.add_option("--out", options.out, "run directory to create")
      ->type_name("DIRECTORY")
      ->required();
  app.add_option("--set", options.sets, "set a config key; may be repeated")
      ->type_name("TABLE.KEY=VALUE");
}

}  // namespace

Command command_checkpoint_import() {
  return make_command<ImportOptions>("create a run from a model saved by transformers",
                                     add_import_options, run_checkpoint_import);
}

}  // namespace concertina
