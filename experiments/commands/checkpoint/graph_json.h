// Converts an operator graph to JSON, from which the Python package writes ONNX.
#pragma once

#include <nlohmann/json.hpp>

#include "core/model/graph.h"

namespace concertina {

/// Keys: inputs, outputs (name, type, shape), tensors (name, type, shape, and parameter or values)
/// and nodes (name, op, inputs, outputs, attributes).
nlohmann::ordered_json graph_json(const Graph& graph);

}  // namespace concertina
