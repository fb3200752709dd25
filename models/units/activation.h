// Activations as graphs of operators.
#pragma once

#include <string>

#include "core/graph.h"
#include "core/operators.h"

namespace concertina {

/// gelu(x) of the same shape, of one of the two kinds that are GELUs.
std::string describe_gelu(GraphBuilder& graph, Epilogue::Kind kind, const std::string& x);

}  // namespace concertina
