// `concertina checkpoint inspect`: prints the contents of a checkpoint from its manifest.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/text/number_text.h"
#include "experiments/commands/checkpoint/checkpoint_options.h"
#include "experiments/hugging_face/stored_run.h"
#include "experiments/predict/report_parts.h"
#include "io/checkpoint/checkpoint_reader.h"

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
  fmt::print("{}\nstep {}, {} bytes in {}\n", report["path"], report["step"], report["bytes"],
             counted(std::ssize(report["shards"]), "shard"));
  for (const Json& shard : report["shards"])
    fmt::print("  {:<28} {:>14} bytes {:>6} pieces\n", shard["file"], shard["bytes"],
               shard["pieces"]);
  for (const Json& tensor : report["tensors"])
    fmt::print("  {:<28} [{}]  {}\n", tensor["name"],
               fmt::join(tensor["shape"].get<std::vector<std::int64_t>>(), ", "),
               fmt::join(tensor["parts"].get<std::vector<std::string>>(), " "));
  for (const auto& [key, value] : report["metadata"].items()) fmt::print("  {} = {}\n", key, value);
}

int run_checkpoint_inspect(const CheckpointOptions& options) {
  const Json report = inspect(stored_commit(options.path));
  if (options.json)
    fmt::print("{}\n", report.dump());
  else
    print_inspection(report);
  return 0;
}

}  // namespace

Command command_checkpoint_inspect() {
  return make_command<CheckpointOptions>("show step, shards and tensors from the manifest",
                                         add_checkpoint_options, run_checkpoint_inspect);
}

}  // namespace concertina
