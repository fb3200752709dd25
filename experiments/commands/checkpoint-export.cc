// `concertina checkpoint export`: a model as Hugging Face's transformers stores it, or as ONNX.
#include <fmt/format.h>

#include <filesystem>

#include "experiments/commands/checkpoint_options.h"
#include "experiments/config/byte_size.h"
#include "experiments/hugging_face/published_weights.h"
#include "experiments/hugging_face/stored_run.h"
#include "io/checkpoint_reader.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

std::uint64_t shard_bytes(const std::string& text) {
  const auto size = parse_byte_size(text);
  if (!size)
    throw_input(fmt::format("'{}' is no size", text), "--shard-size",
                "a number and its unit, such as \"2 GB\", or 0 for one file");
  return static_cast<std::uint64_t>(size->bytes);
}

/// On one process.
int run_checkpoint_export(const ExportOptions& options) {
  options.excludes("--shard-size", "--onnx", options.onnx);
  options.needs("--inline-limit", "--onnx", options.onnx);
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
    print_once(json_line({{"step", reader.manifest().step}, {"path", options.out}}));
  else
    print_once(fmt::format("{}: the model after step {}\n", options.out, reader.manifest().step));
  return 0;
}

void add_export_options(CLI::App& app, ExportOptions& options) {
  app.add_option("path", options.path, "checkpoint, directory of checkpoints, or run")
      ->type_name("DIRECTORY")
      ->required();
  app.add_option("--out", options.out, "the folder to write to; of ONNX also FILE.onnx")
      ->type_name("PATH")
      ->required();
  app.add_option("--dtype", options.type, "of the weights, which are kept in float32")
      ->check(CLI::IsMember({"float32", "bfloat16"}))
      ->capture_default_str();
  app.add_option("--shard-size", options.shard_size,
                 "without --onnx: most bytes of a file, such as 2GB: larger models come in "
                 "several, with an "
                 "index; 0: one file")
      ->type_name("SIZE")
      ->capture_default_str();
  app.add_flag("--onnx", options.onnx, "as an ONNX model (opset 17)");
  app.add_option("--inline-limit", options.inline_limit,
                 "with --onnx: larger weights get a file of their own, FILE_data")
      ->type_name("SIZE")
      ->capture_default_str();
  app.add_flag("--force", options.force, "replace a model that is there already");
  add_json_option(app, options);
}

}  // namespace

Command command_checkpoint_export() {
  return make_command<ExportOptions>(
      "write a model as transformers reads it: config.json and model.safetensors; or as ONNX",
      add_export_options, run_checkpoint_export);
}

}  // namespace concertina
