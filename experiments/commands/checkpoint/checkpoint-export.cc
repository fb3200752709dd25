// `concertina checkpoint export`: a model as Hugging Face's transformers stores it, or as ONNX.
#include <fmt/format.h>

#include <filesystem>

#include "core/error.h"
#include "experiments/commands/checkpoint/checkpoint_options.h"
#include "experiments/commands/checkpoint/graph_json.h"
#include "experiments/commands/python_command.h"
#include "experiments/config/byte_size.h"
#include "experiments/hugging_face/exported_files.h"
#include "experiments/hugging_face/kept_files.h"
#include "experiments/hugging_face/published_weights.h"
#include "experiments/hugging_face/stored_run.h"
#include "experiments/run/best_commit.h"
#include "experiments/run/planning.h"
#include "experiments/run/run_identity.h"
#include "io/checkpoint/checkpoint_reader.h"
#include "io/file.h"
#include "io/sha256.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

struct ExportOptions : CheckpointOptions {
  std::string out, type = "float32";
  std::string shard_size = "0";          // of transformers' files; 0: one file
  bool onnx = false;                     // in place of transformers' files
  std::string inline_limit = "256 MiB";  // of ONNX
  bool force = false;                    // what is in `out` is replaced
  bool newest = false;                   // of a run, in place of its best
};

/// Tells a user how to export to where something is already.
constexpr const char* kForceExport = "another --out, or --force to replace what is there";

/// The path of the model: FILE.onnx itself, else model.onnx in the directory, which is made.
std::string model_file(const std::string& out) {
  std::error_code error;
  const bool file = fs::path(out).extension() == ".onnx" && !fs::is_directory(out, error);
  if (!file && fs::exists(out, error) && !fs::is_directory(out, error))
    throw_input("this is no directory, and not named as an ONNX model", out,
                "--out DIRECTORY or --out FILE.onnx");
  if (!file) make_directories(out);
  const std::string path = file ? out : (fs::path(out) / "model.onnx").string();
  require_output(path, "--out");
  return path;
}

std::uint64_t inline_limit(const std::string& text) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  const auto size = parse_byte_size(text);
  if (!size || size->bytes >= kMost)
    throw_input(fmt::format("'{}' is no size below 2 GiB", text), "--inline-limit",
                "a number and its unit, such as \"256 MiB\" or 0");
  return static_cast<std::uint64_t>(size->bytes);
}

std::string task_name(const RunConfig& config) {
  if (config.model.task != "auto") return config.model.task;
  return std::string(
      lookup(models(), config.model.family, "model family", "model.family").usual_task);
}

/// The checkpoint has the tensors of the graph, in their shapes.
void require_shapes(CheckpointReader& checkpoint, const Graph& graph) {
  for (const GraphTensor& tensor : graph.tensors)
    if (!tensor.parameter.empty() && checkpoint.shape(tensor.parameter) != tensor.shape)
      throw_input(fmt::format("tensor {} has shape [{}], the run's model has [{}]",
                              tensor.parameter, fmt::join(checkpoint.shape(tensor.parameter), ", "),
                              fmt::join(tensor.shape, ", ")),
                  checkpoint.directory(), "the config.toml of the run that saved it");
}

StoredRun stored_run_of(const ExportOptions& options) {
  StoredRun run = require_stored_run(options.path);
  if (options.newest) run.chosen = Chosen::newest;
  return run;
}

/// The facts that tell one export from another; no time and no path, so the same export is the same
/// bytes.
std::map<std::string, std::string> facts_of(const RunConfig& config, const Manifest& manifest) {
  nlohmann::json identity = manifest.metadata;
  identity.erase(kProgress);
  return {{"concertina.family", config.model.family},
          {"concertina.task", task_name(config)},
          {"concertina.step", std::to_string(manifest.step)},
          {"concertina.config.sha256", sha256_hex(identity.dump())}};
}

/// Writes `out`, FILE.onnx, or model.onnx in the directory of that name.
int run_onnx_export(const ExportOptions& options) {
  if (options.type != "float32")
    throw_input("weights of an ONNX model are float32", "--dtype " + options.type,
                "no --dtype, or no --onnx");
  const StoredRun run = stored_run_of(options);
  const RunConfig& config = run.config;
  CheckpointReader checkpoint = open_stored(run);
  const Graph graph = model_of(config)->describe(!untied_table(checkpoint, config).empty());
  require_shapes(checkpoint, graph);
  const std::uint64_t most_inline = inline_limit(options.inline_limit);
  const std::string file = model_file(options.out);
  if (!options.force) require_nothing_at(file, kForceExport);
  const Manifest& manifest = checkpoint.manifest();
  std::map<std::string, std::string> words;
  if (options.json) words["json"] = "true";
  return call_python("onnx-export", words,
                     {{"file", file},
                      {"checkpoint", checkpoint.directory()},
                      {"graph", graph_json(graph)},
                      {"facts", facts_of(config, manifest)},
                      {"inline_limit", most_inline},
                      {"step", manifest.step},
                      {"step_text", step_text(manifest.step, manifest.metadata)}});
}

std::uint64_t shard_bytes(const std::string& text) {
  const auto size = parse_byte_size(text);
  if (!size)
    throw_input(fmt::format("'{}' is no size", text), "--shard-size",
                "a number and its unit, such as \"2 GB\", or 0 for one file");
  return static_cast<std::uint64_t>(size->bytes);
}

/// Runs on one process.
int run_checkpoint_export(const ExportOptions& options) {
  options.excludes("--shard-size", "--onnx", options.onnx);
  options.needs("--inline-limit", "--onnx", options.onnx);
  if (options.onnx) return run_onnx_export(options);
  const std::uint64_t most = shard_bytes(options.shard_size);
  if (!options.force)
    for (const char* file : {"config.json", kSafetensors, kSafetensorsIndex})
      require_nothing_at((fs::path(options.out) / file).string(), kForceExport);
  StoredRun run = stored_run_of(options);
  run.config = with_kept_tokenizer(run.config);
  CheckpointReader reader = open_stored(run);
  FileTexts others = exported_files(run.config);
  others["README.md"] = model_card(run, reader.manifest().step);
  for (const auto& [name, text] : others)
    if (!options.force) require_nothing_at((fs::path(options.out) / name).string(), kForceExport);
  write_published(
      options.out, run.config, options.type == "bfloat16" ? StoredType::bf16 : StoredType::f32,
      [&](const std::string& ours, std::span<float> out) { reader.read(ours, "weight", 0, out); },
      most, untied_table(reader, run.config));
  for (const auto& [name, text] : others)
    atomic_replace((fs::path(options.out) / name).string(), text);
  if (options.json)
    print_once(json_line({{"step", reader.manifest().step}, {"path", options.out}}));
  else
    print_once(fmt::format("{}: the model after {}\n", options.out,
                           step_text(reader.manifest().step, reader.manifest().metadata)));
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
  add_newest_option(app, options.newest);
  app.add_flag("--force", options.force, "replace a model that is there already");
  add_json_option(app, options);
}

}  // namespace

Command command_checkpoint_export() {
  return make_command<ExportOptions>(
      "write a model as transformers reads it, with its tokenizer; or as ONNX", add_export_options,
      run_checkpoint_export);
}

}  // namespace concertina
