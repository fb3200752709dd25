// `concertina checkpoint export`: exports a model in Hugging Face transformers format or as ONNX.
#include <fmt/format.h>

#include <filesystem>

#include "core/error.h"
#include "core/text/number_text.h"
#include "core/text/text_table.h"
#include "experiments/commands/checkpoint/checkpoint_options.h"
#include "experiments/commands/checkpoint/graph_json.h"
#include "experiments/commands/python_command.h"
#include "experiments/config/byte_size.h"
#include "experiments/hugging_face/exported_files.h"
#include "experiments/hugging_face/kept_files.h"
#include "experiments/hugging_face/merged_weights.h"
#include "experiments/hugging_face/peft.h"
#include "experiments/hugging_face/pruning.h"
#include "experiments/hugging_face/published_config_text.h"
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
  std::string shard_size = "0";          // of transformers files; 0: one file
  bool onnx = false;                     // instead of transformers files
  bool peft = false;                     // the adapters alone
  std::string inline_limit = "256 MiB";  // of ONNX
  bool force = false;                    // replace the contents of `out`
  CheckpointChoice choice{};
  double prune = 0;           // share of the hidden layers' weights that become zero
  bool prune_global = false;  // the smallest of all matrices, instead of each matrix
  bool sparse_report = false;
};

/// Advice if the output exists.
constexpr const char* kForceExport = "another --out, or --force to replace it";

/// Returns the model's path: FILE.onnx, or model.onnx in the directory `out`, which is created.
std::string model_file(const std::string& out) {
  const bool file = fs::path(out).extension() == ".onnx" && !is_folder(out);
  if (!file && exists_at(out) && !is_folder(out))
    throw_input("not a directory, and the name does not end in .onnx", out,
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
    throw_input(fmt::format("expected a size below 2 GiB, got '{}'", text), "--inline-limit",
                "a number with a unit, such as \"256 MiB\" or 0");
  return static_cast<std::uint64_t>(size->bytes);
}

/// Throws unless the checkpoint contains the graph's tensors with the same shapes.
void require_shapes(CheckpointReader& checkpoint, const Graph& graph) {
  for (const GraphTensor& tensor : graph.tensors)
    if (!tensor.parameter.empty() && checkpoint.shape(tensor.parameter) != tensor.shape)
      throw_input(fmt::format("tensor {} has shape [{}] but the run's model expects [{}]",
                              tensor.parameter, fmt::join(checkpoint.shape(tensor.parameter), ", "),
                              fmt::join(tensor.shape, ", ")),
                  checkpoint.directory(), "the config.toml of the run that saved it");
}

StoredRun stored_run_of(const ExportOptions& options) {
  StoredRun run = require_stored_run(options.path);
  if (options.choice.chosen == Chosen::newest) run.choice.chosen = Chosen::newest;
  run.choice.average = options.choice.average;
  return run;
}

/// Facts that identify an export, excluding time and path, so that equal exports have equal bytes.
std::map<std::string, std::string> facts_of(const RunConfig& config, const Manifest& manifest) {
  nlohmann::json identity = manifest.metadata;
  identity.erase(kProgress);
  return {{"concertina.family", config.model.family},
          {"concertina.task", std::string(task_name(config))},
          {"concertina.step", std::to_string(manifest.step)},
          {"concertina.config.sha256", sha256_hex(identity.dump())}};
}

/// Writes FILE.onnx, or model.onnx in the directory `out`.
int run_onnx_export(const ExportOptions& options) {
  if (options.type != "float32")
    throw_input("ONNX models are exported with float32 weights", "--dtype " + options.type,
                "remove --dtype or --onnx");
  const StoredRun run = stored_run_of(options);
  const RunConfig& config = run.config;
  CheckpointReader checkpoint = open_stored(run);
  const Graph graph =
      model_of(without_adapters(config))->describe(!untied_table(checkpoint, config).empty());
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
                      {"average", run.choice.average},
                      {"graph", graph_json(graph)},
                      {"facts", facts_of(config, manifest)},
                      {"inline_limit", most_inline},
                      {"step", manifest.step},
                      {"step_text", step_text(manifest.step, manifest.metadata)}});
}

std::uint64_t shard_bytes(const std::string& text) {
  const auto size = parse_byte_size(text);
  if (!size)
    throw_input(fmt::format("expected a size, got '{}'", text), "--shard-size",
                "a number with a unit, such as \"2 GB\", or 0 for one file");
  return static_cast<std::uint64_t>(size->bytes);
}

/// What distinguishes the exported weights from those that the run evaluated; empty if nothing
/// does.
std::string changes_of(const ExportOptions& options) {
  std::string text = options.choice.average ? "moving average over the training steps" : "";
  if (options.prune > 0)
    text += fmt::format("{}{:.0f}% of those of hidden layers are pruned", text.empty() ? "" : ", ",
                        100 * options.prune);
  return text;
}

StoredType stored_type(const ExportOptions& options) {
  return options.type == "bfloat16" ? StoredType::bf16 : StoredType::f32;
}

void print_exported(const ExportOptions& options, const Manifest& manifest,
                    const PrunedWeights* pruned = nullptr) {
  nlohmann::json line{{"step", manifest.step}, {"path", options.out}};
  std::string text =
      fmt::format("{}: model after {}", options.out, step_text(manifest.step, manifest.metadata));
  if (pruned != nullptr && (options.prune > 0 || options.sparse_report)) {
    ZeroCount all;
    std::vector<std::vector<std::string>> rows{{"tensor", "zeros", "of"}};
    for (const auto& [tensor, zeros, elements] : pruned->counts()) {
      all.zeros += zeros, all.elements += elements;
      rows.push_back({tensor, grouped(zeros), grouped(elements)});
      if (options.sparse_report)
        line["tensors"].push_back({{"tensor", tensor}, {"zeros", zeros}, {"of", elements}});
    }
    line.update({{"zeros", all.zeros}, {"of", all.elements}});
    text += fmt::format(", {} of {} weights of hidden layers are zero", grouped(all.zeros),
                        grouped(all.elements));
    if (options.sparse_report) text += "\n" + text_table(rows, 1);
  }
  if (!text.ends_with('\n')) text += '\n';
  print_once(options.json ? json_line(line) : text);
}

int run_peft_export(const ExportOptions& options) {
  const StoredRun run = stored_run_of(options);
  if (run.config.lora.rank == 0)
    throw_input("the run trained no adapters", run.directory, "a run with lora.rank, or no --peft");
  if (!options.force)
    for (const char* file : {"adapter_config.json", "config.json"})
      require_nothing_at((fs::path(options.out) / file).string(), kForceExport);
  CheckpointReader reader = open_stored(run);
  write_peft(
      options.out, run.config, stored_type(options),
      [&](const std::string& ours, std::span<float> out) { reader.read(ours, "weight", 0, out); });
  print_exported(options, reader.manifest());
  return 0;
}

/// Runs on one process.
int run_checkpoint_export(const ExportOptions& options) {
  options.excludes("--shard-size", "--onnx", options.onnx);
  options.needs("--inline-limit", "--onnx", options.onnx);
  options.excludes("--peft", "--onnx", options.onnx);
  options.excludes("--shard-size", "--peft", options.peft);
  options.excludes("--prune", "--peft", options.peft);
  options.excludes("--prune", "--onnx", options.onnx);
  options.excludes("--sparse-report", "--peft", options.peft);
  options.excludes("--sparse-report", "--onnx", options.onnx);
  options.needs("--prune-global", "--prune", options.given("--prune"));
  if (options.onnx) return run_onnx_export(options);
  if (options.peft) return run_peft_export(options);
  const std::uint64_t most = shard_bytes(options.shard_size);
  if (!options.force)
    for (const char* file : {"config.json", "adapter_config.json", kSafetensors, kSafetensorsIndex})
      require_nothing_at((fs::path(options.out) / file).string(), kForceExport);
  StoredRun run = stored_run_of(options);
  run.config = with_kept_tokenizer(run.config);
  CheckpointReader reader = open_stored(run);
  FileTexts others = exported_files(run.config);
  others["README.md"] = model_card(run, reader.manifest().step, changes_of(options));
  for (const auto& [name, text] : others)
    if (!options.force) require_nothing_at((fs::path(options.out) / name).string(), kForceExport);
  PrunedWeights weights(reader, run.config, options.prune, options.prune_global);
  write_published(
      options.out, run.config, stored_type(options),
      [&](const std::string& ours, std::span<float> out) { weights.read(ours, out); }, most,
      untied_table(reader, run.config));
  for (const auto& [name, text] : others)
    atomic_replace((fs::path(options.out) / name).string(), text);
  print_exported(options, reader.manifest(), &weights);
  return 0;
}

void add_export_options(CLI::App& app, ExportOptions& options) {
  add_checkpoint_options(app, options);
  app.add_option("--out", options.out, "folder to write to, or FILE.onnx for ONNX")
      ->type_name("PATH")
      ->required();
  add_default_option(app, "--dtype", options.type,
                     "type of the exported weights (checkpoints store float32)")
      ->check(CLI::IsMember({"float32", "bfloat16"}));
  add_default_option(app, "--shard-size", options.shard_size,
                     "maximum file size, such as 2GB; larger models are split and get an index; "
                     "0: one file; not for --onnx")
      ->type_name("SIZE");
  add_default_option(app, "--prune", options.prune,
                     "share of the weights of hidden layers, those with the smallest magnitudes, "
                     "that become zero; in each matrix")
      ->check(number(0, 0.99));
  app.add_flag("--prune-global", options.prune_global,
               "prune the smallest weights of all hidden layers together");
  app.add_flag("--sparse-report", options.sparse_report,
               "print the number of zeros in each matrix of the hidden layers");
  app.add_flag("--peft", options.peft, "export only the adapters ([lora]), for PEFT");
  app.add_flag("--onnx", options.onnx, "export an ONNX model (opset 17)");
  add_default_option(
      app, "--inline-limit", options.inline_limit,
      "maximum size of weights inside an ONNX file; larger weights are written to FILE_data")
      ->type_name("SIZE");
  add_choice_options(app, options.choice);
  app.add_flag("--force", options.force, "replace an existing model");
}

}  // namespace

Command command_checkpoint_export() {
  return make_command<ExportOptions>(
      "export a model and its tokenizer for transformers, or as ONNX", add_export_options,
      run_checkpoint_export);
}

}  // namespace concertina
