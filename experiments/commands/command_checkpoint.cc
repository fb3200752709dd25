#include "experiments/commands/command_checkpoint.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "experiments/commands/checkpoint_exchange.h"
#include "experiments/hugging_face/stored_run.h"
#include "io/checkpoint_reader.h"

namespace concertina {
namespace {

using Json = nlohmann::ordered_json;

Json tensors_json(const Manifest& manifest) {
  Json tensors = Json::array();
  for (const auto& [name, pieces] : index_pieces(manifest.shards)) {
    const auto [shard, piece] = pieces.front();
    const StoredPiece& first = manifest.shards[shard].pieces[piece];
    Json parts = Json::array();
    for (const StoredPart& part : first.parts) parts.push_back(part.name);
    tensors.push_back(
        {{"name", name}, {"shape", first.shape}, {"parts", parts}, {"pieces", pieces.size()}});
  }
  return tensors;
}

Json inspect(const std::string& commit) {
  const Manifest manifest = open_manifest(commit);
  std::uint64_t bytes = 0;
  Json shards = Json::array();
  for (const ShardRecord& shard : manifest.shards) {
    bytes += shard.bytes;
    shards.push_back(
        {{"file", shard.file}, {"bytes", shard.bytes}, {"pieces", shard.pieces.size()}});
  }
  return {{"path", commit},   {"step", manifest.step},
          {"bytes", bytes},   {"metadata", manifest.metadata},
          {"shards", shards}, {"tensors", tensors_json(manifest)}};
}

void print_inspection(const Json& report) {
  fmt::print("{}\nstep {}, {} bytes in {} shard{}\n", report["path"].get<std::string>(),
             report["step"].get<std::int64_t>(), report["bytes"].get<std::uint64_t>(),
             report["shards"].size(), report["shards"].size() == 1 ? "" : "s");
  if (!report["metadata"].empty()) fmt::print("metadata {}\n", report["metadata"].dump());
  for (const Json& shard : report["shards"])
    fmt::print("  {:<28} {:>14} bytes {:>6} pieces\n", shard["file"].get<std::string>(),
               shard["bytes"].get<std::uint64_t>(), shard["pieces"].get<std::uint64_t>());
  for (const Json& tensor : report["tensors"])
    fmt::print("  {:<28} [{}]  {}\n", tensor["name"].get<std::string>(),
               fmt::join(tensor["shape"].get<std::vector<std::int64_t>>(), ", "),
               fmt::join(tensor["parts"].get<std::vector<std::string>>(), " "));
}

}  // namespace

int run_checkpoint_inspect(const CheckpointOptions& options) {
  const Json report = inspect(stored_commit(options.path));
  if (options.json)
    fmt::print("{}\n", report.dump());
  else
    print_inspection(report);
  return 0;
}

int run_checkpoint_verify(const CheckpointOptions& options) {
  const std::string commit = stored_commit(options.path);
  const std::vector<std::string> problems = verify(commit);
  if (options.json) {
    const Json report{{"path", commit}, {"ok", problems.empty()}, {"problems", problems}};
    fmt::print("{}\n", report.dump());
  } else if (problems.empty()) {
    fmt::print("ok: every byte of {} is as it was written\n", commit);
  } else {
    fmt::print("{}\n", fmt::join(problems, "\n"));
  }
  if (problems.empty()) return 0;
  throw_failure(fmt::format("the checkpoint is damaged in {} place{}", problems.size(),
                            problems.size() == 1 ? "" : "s"),
                commit, recovery_advice(commit));
}

namespace {

using CheckpointBody = std::function<int(MpiEnvironment&)>;

/// The options and `chosen` live in the runner, which outlives the parsing.
void add_reading(CLI::App& app, CheckpointBody& chosen,
                 const std::shared_ptr<CheckpointOptions>& options, const char* name,
                 const char* help, int (*body)(const CheckpointOptions&)) {
  CLI::App* added = app.add_subcommand(name, help);
  added->add_option("path", options->path, "run, checkpoint, or directory of checkpoints")
      ->type_name("PATH")
      ->required();
  added->add_flag("--json", options->json, "print one JSON object, nothing else");
  added->callback([&chosen, options, body] {
    chosen = [options, body](MpiEnvironment&) { return launcher_rank() == 0 ? body(*options) : 0; };
  });
}

void add_import(CLI::App& app, CheckpointBody& chosen) {
  auto options = std::make_shared<ImportOptions>();
  CLI::App* added =
      app.add_subcommand("import", "make a run of a model that transformers has stored");
  added->add_option("folder", options->folder, "has config.json and model.safetensors")
      ->type_name("DIRECTORY")
      ->required();
  added->add_option("--out", options->out, "the run to make")->type_name("DIRECTORY")->required();
  added->add_option("--set", options->sets, "set a config key; may be repeated")
      ->type_name("TABLE.KEY=VALUE");
  added->callback([&chosen, options] {
    chosen = [options](MpiEnvironment& mpi) { return run_checkpoint_import(*options, mpi); };
  });
}

void add_export(CLI::App& app, CheckpointBody& chosen) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* added = app.add_subcommand("export",
                                       "write a model as transformers reads it: config.json and "
                                       "model.safetensors; or as ONNX");
  added->add_option("path", options->path, "checkpoint, directory of checkpoints, or run")
      ->type_name("DIRECTORY")
      ->required();
  added->add_option("--out", options->out, "the folder to write to; of ONNX also FILE.onnx")
      ->type_name("PATH")
      ->required();
  added->add_option("--dtype", options->type, "of the weights, which are kept in float32")
      ->check(CLI::IsMember({"float32", "bfloat16"}))
      ->capture_default_str();
  CLI::Option* shards =
      added
          ->add_option("--shard-size", options->shard_size,
                       "most bytes of a file, such as 2GB: larger models come in several, with an "
                       "index; 0: one file")
          ->type_name("SIZE")
          ->capture_default_str();
  CLI::Option* onnx =
      added->add_flag("--onnx", options->onnx, "as an ONNX model (opset 17)")->excludes(shards);
  added
      ->add_option("--inline-limit", options->inline_limit,
                   "of ONNX: larger weights get a file of their own, FILE_data")
      ->type_name("SIZE")
      ->capture_default_str()
      ->needs(onnx);
  added->add_flag("--force", options->force, "replace a model that is there already");
  added->add_flag("--json", options->json, "print one JSON object, nothing else");
  added->callback([&chosen, options] {
    chosen = [options](MpiEnvironment&) {
      return launcher_rank() == 0 ? run_checkpoint_export(*options) : 0;
    };
  });
}

}  // namespace

Runner add_checkpoint(CLI::App& app) {
  auto options = std::make_shared<CheckpointOptions>();
  auto chosen = std::make_shared<CheckpointBody>();
  app.require_subcommand(1);
  add_reading(app, *chosen, options, "inspect", "step, shards and tensors, from the manifest",
              run_checkpoint_inspect);
  add_reading(app, *chosen, options, "verify",
              "read every byte and compare it with what was written", run_checkpoint_verify);
  add_import(app, *chosen);
  add_export(app, *chosen);
  return [chosen](MpiEnvironment& mpi) { return (*chosen)(mpi); };
}

}  // namespace concertina
