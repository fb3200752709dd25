// `concertina checkpoint export --onnx`: a run's model for onnxruntime and its like.
#pragma once

#include "experiments/commands/checkpoint_exchange.h"

namespace concertina {

/// Writes `out`, FILE.onnx, or model.onnx in the directory of that name. On one process.
int run_onnx_export(const ExportOptions& options);

}  // namespace concertina
