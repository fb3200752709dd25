// Attention and its gradient as cuDNN's graphs, for what dnn_takes().
#pragma once

#include "core/backend.h"
#include "core/cuda/dnn/graph.h"

namespace concertina::cuda {

/// What is stored: the operands of core/backend.h, and `delta`, the row sums of dy * y.
enum DnnOperand : DnnGraph::Tensor { kQ = 1, kK, kV, kY, kLse, kDy, kDelta, kDq, kDk, kDv, kFree };

/// The graph computes kY and kLse from kQ, kK, kV.
DnnGraph attention_graph(const AttentionShape& shape);
/// The graph computes kDq, kDk, kDv from kQ, kK, kV, kY, kLse, kDy; kDelta is scratch.
DnnGraph attention_gradient_graph(const AttentionShape& shape);

}  // namespace concertina::cuda
