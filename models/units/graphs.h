// Computations of several units as graphs of operators, for other programs.
#pragma once

#include <span>
#include <string>

#include "core/model/graph.h"
#include "core/operators.h"
#include "core/rotary.h"
#include "models/units/norm.h"

namespace concertina {

/// f(x) of the same shape, f the activation `kind`.
std::string describe_activation(GraphBuilder& graph, Epilogue::Kind kind, const std::string& x);

/// Attention without its maps: y[samples,T,C] = softmax(mask(q k^T / sqrt(D))) v of
/// qkv[samples,T,(H+2K)D], with each head of q and k first through the norm of `norms`, none or
/// that of q and that of k, and then rotated by its position where `rotary` turns. Returns y's
/// name.
std::string describe_attention_products(GraphBuilder& graph, const AttentionShape& shape,
                                        const RotarySpec& rotary, std::span<const NormSpec> norms,
                                        const std::string& qkv);

}  // namespace concertina
