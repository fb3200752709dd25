// Computations shared by several units, as graphs of operators for export.
#pragma once

#include <span>
#include <string>

#include "core/model/graph.h"
#include "core/operators.h"
#include "core/rotary.h"
#include "models/units/norm.h"

namespace concertina {

/// Returns f(x) of the same shape, where f is the activation `kind`.
std::string describe_activation(GraphBuilder& graph, Epilogue::Kind kind, const std::string& x);

/// Attention without its projections: y[samples,T,C] = softmax(mask(q k^T / sqrt(D))) v for
/// qkv[samples,T,(H+2K)D]. `norms` is empty, or contains the norms of the q and k heads, which
/// precede the rotation by `rotary` (if any). Returns the name of y.
std::string describe_attention_products(GraphBuilder& graph, const AttentionShape& shape,
                                        const RotarySpec& rotary, std::span<const NormSpec> norms,
                                        const std::string& qkv);

}  // namespace concertina
