// checkpoint import and export: models as Hugging Face's transformers stores them, and as ONNX.
#pragma once

#include "experiments/commands/command.h"

namespace concertina {

struct ImportOptions : CommonOptions {
  std::string folder, out;
};
/// Makes the run `out` with the weights of `folder` as a checkpoint at step 0. Collective.
int run_checkpoint_import(const ImportOptions& options, MpiEnvironment& mpi);

struct ExportOptions {
  std::string path, out, type = "float32";
  std::string shard_size = "0";          // of transformers' files; 0: one file
  bool onnx = false;                     // in place of transformers' files
  std::string inline_limit = "256 MiB";  // of ONNX
  bool force = false;                    // what is in `out` is replaced
  bool json = false;
};
/// What tells a user how to export to where something is already.
inline constexpr const char* kForceExport = "another --out, or --force to replace what is there";
/// Runs on one process.
int run_checkpoint_export(const ExportOptions& options);

}  // namespace concertina
