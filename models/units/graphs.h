// Computations of several units as graphs of operators, for other programs.
#pragma once

#include <string>

#include "core/graph.h"
#include "core/operators.h"

namespace concertina {

/// gelu(x) of the same shape, of one of the two kinds that are GELUs.
std::string describe_gelu(GraphBuilder& graph, Epilogue::Kind kind, const std::string& x);

/// Attention without its maps: y[samples,T,C] = softmax(mask(q k^T / sqrt(D))) v of
/// qkv[samples,T,(H+2K)D], with q and k rotated by their position unless `rotary_theta`, the base
/// of the wavelengths, is 0. Returns y's name.
std::string describe_attention_products(GraphBuilder& graph, const AttentionShape& shape,
                                        double rotary_theta, const std::string& qkv);

}  // namespace concertina
