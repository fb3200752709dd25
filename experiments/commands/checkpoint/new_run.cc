#include "experiments/commands/checkpoint/new_run.h"

#include <filesystem>

#include "experiments/config/config_toml.h"
#include "experiments/hugging_face/kept_files.h"
#include "experiments/hugging_face/model_from.h"
#include "experiments/machine/gather.h"
#include "experiments/run/checkpoint_writer.h"
#include "io/checkpoint/checkpoint_commit.h"
#include "io/checkpoint/run_directory.h"
#include "io/run_files.h"

namespace concertina {

void save_new_run(Launch& launch, const std::string& out) {
  const RunConfig& config = launch.config;
  std::optional<RunDirectory> owned;
  together(launch.world, [&] {
    if (!launch.leads()) return;
    const bool there = RunDirectory::exists(config.run.dir, config.run.name);
    owned.emplace(config.run.dir, config.run.name);
    // A run with neither metrics nor commits is the rest of an interrupted command.
    if (there && (std::filesystem::exists(run_file(owned->path(), kMetricsFile)) ||
                  newest_commit(owned->checkpoints())))
      throw_input("the run already exists", out, "another --out");
    owned->write_config(write_config(with_absolute_paths(config)));
    keep_model_from(config);
    keep_for_export(
        config, launch.dataset == nullptr ? std::vector<std::string>() : launch.dataset->classes());
  });
  save_checkpoint(launch.trainer, checkpoint_directory(config), 0, launch.identity(false));
}

}  // namespace concertina
