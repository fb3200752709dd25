// What subcommands of `checkpoint` share.
#pragma once

#include <string>

#include "experiments/commands/command.h"

namespace concertina {

struct CheckpointOptions : CommandOptions {
  std::string path;  // of stored_commit()
};
inline void add_checkpoint_options(CLI::App& app, CheckpointOptions& options) {
  app.add_option("path", options.path, "run, checkpoint, or directory of checkpoints")
      ->type_name("PATH")
      ->required();
  add_json_option(app, options);
}

struct ExportOptions : CheckpointOptions {
  std::string out, type = "float32";
  std::string shard_size = "0";          // of transformers' files; 0: one file
  bool onnx = false;                     // in place of transformers' files
  std::string inline_limit = "256 MiB";  // of ONNX
  bool force = false;                    // what is in `out` is replaced
};
/// What tells a user how to export to where something is already.
inline constexpr const char* kForceExport = "another --out, or --force to replace what is there";
/// `checkpoint export --onnx`: writes `out`, FILE.onnx, or model.onnx in the directory of that
/// name. On one process.
int run_onnx_export(const ExportOptions& options);

}  // namespace concertina
