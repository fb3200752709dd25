#include "experiments/commands/checkpoint_exchange.h"

#include <fmt/format.h>

#include <filesystem>

#include "experiments/commands/checkpoint_onnx.h"
#include "experiments/config/byte_size.h"
#include "experiments/config/config_toml.h"
#include "experiments/hugging_face/model_from.h"
#include "experiments/hugging_face/published_weights.h"
#include "experiments/hugging_face/start_from.h"
#include "experiments/launch/launch.h"
#include "experiments/machine/gather.h"
#include "experiments/run/run_checkpoint.h"
#include "io/checkpoint_commit.h"
#include "io/checkpoint_reader.h"
#include "io/run_directory.h"

namespace concertina {
namespace fs = std::filesystem;

int run_checkpoint_import(const ImportOptions& options, MpiEnvironment& mpi) {
  CommonOptions asked = options;
  const fs::path out = fs::absolute(options.out).lexically_normal();
  asked.defaults.push_back("model.from=" + fs::absolute(options.folder).string());
  asked.defaults.push_back("run.dir=" + out.parent_path().string());
  asked.defaults.push_back("run.name=" + out.filename().string());
  const RunConfig config = load(asked);
  Launch launch(config, mpi, "checkpoint import");
  const bool leads = launch.leads();
  launch.trainer.initialize();
  start_from(launch.trainer, launch.config);
  launch.begin();
  std::optional<RunDirectory> owned;
  together(launch.world, [&] {
    if (!leads) return;
    const bool there = RunDirectory::exists(config.run.dir, config.run.name);
    owned.emplace(config.run.dir, config.run.name);
    // Without either it is an import that was killed or had no room: it is made anew.
    if (there && (fs::exists(owned->metrics()) || newest_commit(owned->checkpoints())))
      throw_input("this run is there already", options.out, "another --out");
    owned->write_config(write_config(with_absolute_paths(launch.config)));
    keep_model_from(launch.config);
  });
  save_checkpoint(launch.trainer, checkpoint_directory(launch.config), 0, launch.identity(false));
  if (leads) print_once(fmt::format("{}: the model of {}\n", out.string(), options.folder));
  return 0;
}

namespace {

std::uint64_t shard_bytes(const std::string& text) {
  const auto size = parse_byte_size(text);
  if (!size)
    throw_input(fmt::format("'{}' is no size", text), "--shard-size",
                "a number and its unit, such as \"2 GB\", or 0 for one file");
  return static_cast<std::uint64_t>(size->bytes);
}

}  // namespace

int run_checkpoint_export(const ExportOptions& options) {
  if (options.onnx) return run_onnx_export(options);
  const std::uint64_t most = shard_bytes(options.shard_size);
  if (!options.force)
    for (const char* file : {"config.json", kSafetensors, kSafetensorsIndex})
      require_nothing_at((fs::path(options.out) / file).string(), kForceExport);
  const StoredRun run = require_stored_run(options.path);
  CheckpointReader reader = open_stored(run);
  write_published(
      options.out, run.config, options.type == "bfloat16" ? StoredType::bf16 : StoredType::f32,
      [&](const std::string& ours, std::span<float> out) { reader.read(ours, "weight", 0, out); },
      most);
  if (options.json)
    print_once(json_line({{"step", reader.manifest().step}, {"path", options.out}}) + "\n");
  else
    print_once(fmt::format("{}: the model after step {}\n", options.out, reader.manifest().step));
  return 0;
}

}  // namespace concertina
