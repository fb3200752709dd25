// A graph as ONNX's protobuf message, without weights, and the checks of what libonnx makes of it.
#pragma once

// clang-format off
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#include <onnx/onnx_pb.h>
#pragma GCC diagnostic pop
// clang-format on

#include <string>

#include "core/graph.h"

namespace concertina {

/// All but the values of fp32 tensors, which have name, type and shape; initializers are in the
/// order of Graph::tensors.
onnx::ModelProto onnx_model(const Graph& graph);

/// Infers all types and shapes of onnx_model(), strictly; throws a failure where an operator or an
/// output does not fit.
void infer_onnx_shapes(onnx::ModelProto model, const std::string& where);

/// Runs ONNX's checker on the model in the file `path` and on what lies beside it.
void check_onnx_file(const std::string& path);

}  // namespace concertina
