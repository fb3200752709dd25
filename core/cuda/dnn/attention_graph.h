// Causal attention and its gradient as cuDNN's graphs.
#pragma once

#include "core/backend.h"
#include "core/cuda/dnn/graph.h"

namespace concertina::cuda {

/// What is stored: the operands of core/backend.h, and `delta`, the row sums of dy * y.
enum DnnOperand : DnnGraph::Tensor { kQ = 1, kK, kV, kY, kLse, kDy, kDelta, kDq, kDk, kDv, kFree };

/// Of kQ, kK, kV: kY and kLse.
DnnGraph attention_graph(const AttentionShape& shape);
/// Of kQ, kK, kV, kY, kLse, kDy: kDq, kDk, kDv; kDelta is scratch.
DnnGraph attention_gradient_graph(const AttentionShape& shape);

}  // namespace concertina::cuda
