#include "core/cuda/dnn/graph.h"

#include <cmath>
#include <limits>

namespace concertina::cuda {

DnnGraph::Tensor DnnGraph::stored(Tensor number, cudnnDataType_t type, const Four& dims,
                                  const Four& strides) {
  operands_.push_back({Operand::Kind::stored, number, type, dims, strides});
  return number;
}

DnnGraph::Tensor DnnGraph::passed(cudnnDataType_t type, const Four& dims, const Four& strides) {
  operands_.push_back({Operand::Kind::passed, next_, type, dims, strides});
  return next_++;
}

DnnGraph::Tensor DnnGraph::value(float value) {
  constexpr Four kOne{1, 1, 1, 1};
  operands_.push_back({Operand::Kind::value, next_, CUDNN_DATA_FLOAT, kOne, kOne, value});
  return next_++;
}

void DnnGraph::pointwise(cudnnPointwiseMode_t mode, Tensor x, Tensor b, Tensor y, Tensor t,
                         cudnnDataType_t compute) {
  operations_.push_back({Operation::Kind::pointwise, x, b, y, t, mode, compute});
}

void DnnGraph::index(std::int64_t axis, Tensor x, Tensor y) {
  operations_.push_back({.kind = Operation::Kind::index, .x = x, .b = kNone, .y = y, .axis = axis});
}

void DnnGraph::reduce(cudnnReduceTensorOp_t how, Tensor x, Tensor y) {
  operations_.push_back(
      {.kind = Operation::Kind::reduction, .x = x, .b = kNone, .y = y, .how = how});
}

void DnnGraph::reshape(Tensor x, Tensor y) {
  operations_.push_back({.kind = Operation::Kind::reshape, .x = x, .b = kNone, .y = y});
}

void DnnGraph::matmul(Tensor x, Tensor b, Tensor y) {
  operations_.push_back({.kind = Operation::Kind::matmul, .x = x, .b = b, .y = y});
}

// cuDNN recognizes these graphs by their form, runs each as a flash-attention kernel, and may
// reject an equivalent graph of another form. The forms come from cuDNN's guide ("Fused
// flash attention", forward and backward), for equal numbers of keys and queries.
//
// Dimensions: N samples, H heads, T tokens, D columns of a head.
namespace {

class Builder {
 public:
  explicit Builder(const AttentionShape& s)
      : s_(s), scores_{s.samples, s.heads, s.tokens, s.tokens}, graph_(kFree) {}

  DnnGraph forward() &&;
  DnnGraph backward() &&;

 private:
  using Tensor = DnnGraph::Tensor;
  using Four = DnnGraph::Four;

  /// Returns a head's columns of a matrix with `columns` columns: [N,H,T,D], or its transpose.
  Tensor matrix(Tensor number, std::int64_t columns) {
    return graph_.stored(number, CUDNN_DATA_BFLOAT16, rows(s_.head_dim),
                         {s_.tokens * columns, s_.head_dim, columns, 1});
  }
  Tensor transposed(Tensor number, std::int64_t columns) {
    return graph_.stored(number, CUDNN_DATA_BFLOAT16,
                         {s_.samples, s_.heads, s_.head_dim, s_.tokens},
                         {s_.tokens * columns, s_.head_dim, 1, columns});
  }
  Tensor row_sums(Tensor number) {
    return graph_.stored(number, CUDNN_DATA_FLOAT, rows(1), packed(rows(1)));
  }
  Four rows(std::int64_t columns) const { return {s_.samples, s_.heads, s_.tokens, columns}; }
  static Four packed(const Four& d) { return {d[1] * d[2] * d[3], d[2] * d[3], d[3], 1}; }
  Tensor passed(const Four& dims, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return graph_.passed(type, dims, packed(dims));
  }
  Tensor scores(cudnnDataType_t type = CUDNN_DATA_FLOAT) { return passed(scores_, type); }

  Tensor pointwise(cudnnPointwiseMode_t mode, Tensor x, Tensor b, Tensor y) {
    graph_.pointwise(mode, x, b, y);
    return y;
  }
  /// Under a causal mask, replaces scores above the diagonal with minus infinity.
  Tensor masked(Tensor x);
  /// Returns x[N,H,T,T], rounded, with its last two dimensions exchanged.
  Tensor flipped(Tensor x) {
    const Tensor y = graph_.passed(
        CUDNN_DATA_BFLOAT16, scores_,
        {scores_[1] * scores_[2] * scores_[3], scores_[2] * scores_[3], 1, scores_[2]});
    graph_.reshape(x, y);
    return y;
  }
  float scale() const { return 1 / std::sqrt(static_cast<float>(s_.head_dim)); }
  std::int64_t width() const { return s_.heads * s_.head_dim; }

  AttentionShape s_;
  Four scores_;  // [N,H,T,T]
  DnnGraph graph_;
};

Builder::Tensor Builder::masked(Tensor x) {
  if (!s_.causal) return x;
  const Tensor row = scores(CUDNN_DATA_INT32), column = scores(CUDNN_DATA_INT32);
  const Tensor seen = scores(CUDNN_DATA_BOOLEAN), y = scores();
  const Tensor never = graph_.value(-std::numeric_limits<float>::infinity());
  graph_.index(2, x, row);
  graph_.index(3, x, column);
  graph_.pointwise(CUDNN_POINTWISE_CMP_GE, row, column, seen, DnnGraph::kNone, CUDNN_DATA_BOOLEAN);
  graph_.pointwise(CUDNN_POINTWISE_BINARY_SELECT, x, never, y, seen);
  return y;
}

// s = mask(scale q k^T), m = max s, l = sum exp(s - m); y = exp(s - m) / l v, lse = m + log l.
DnnGraph Builder::forward() && {
  const std::int64_t C = width();
  const Tensor q = matrix(kQ, 3 * C), k = transposed(kK, 3 * C), v = matrix(kV, 3 * C);
  const Tensor y = matrix(kY, C), lse = row_sums(kLse);
  const Tensor product = scores();
  graph_.matmul(q, k, product);
  const Tensor s = masked(pointwise(CUDNN_POINTWISE_MUL, product, graph_.value(scale()), scores()));
  const Tensor m = passed(rows(1)), l = passed(rows(1));
  graph_.reduce(CUDNN_REDUCE_TENSOR_MAX, s, m);
  const Tensor below = pointwise(CUDNN_POINTWISE_SUB, s, m, scores());
  const Tensor e = pointwise(CUDNN_POINTWISE_EXP, below, DnnGraph::kNone, scores());
  graph_.reduce(CUDNN_REDUCE_TENSOR_ADD, e, l);
  const Tensor log = pointwise(CUDNN_POINTWISE_LOG, l, DnnGraph::kNone, passed(rows(1)));
  pointwise(CUDNN_POINTWISE_ADD, m, log, lse);
  const Tensor p = pointwise(CUDNN_POINTWISE_DIV, e, l, scores(CUDNN_DATA_BFLOAT16));
  graph_.matmul(p, v, y);
  return std::move(graph_);
}

// delta = row sums of dy * y; p = exp(s - lse), dv = p^T dy; ds = scale p (dy v^T - delta), dk =
// ds^T q, dq = ds k. The factor of 1 takes the place of dropout's factor.
DnnGraph Builder::backward() && {
  const std::int64_t C = width();
  const Tensor q = matrix(kQ, 3 * C), k = transposed(kK, 3 * C), v = transposed(kV, 3 * C);
  const Tensor y = matrix(kY, C), lse = row_sums(kLse), dy = matrix(kDy, C);
  const Tensor delta = row_sums(kDelta), scaled = graph_.value(scale());
  const Tensor dq = matrix(kDq, 3 * C), dk = matrix(kDk, 3 * C), dv = matrix(kDv, 3 * C);

  const Tensor products = pointwise(CUDNN_POINTWISE_MUL, dy, y, passed(rows(s_.head_dim)));
  const Tensor sums = passed(rows(1));
  graph_.reduce(CUDNN_REDUCE_TENSOR_ADD, products, sums);
  pointwise(CUDNN_POINTWISE_MUL, sums, graph_.value(1), delta);

  const Tensor product = scores();
  graph_.matmul(q, k, product);
  const Tensor s = pointwise(CUDNN_POINTWISE_MUL, product, scaled, scores());
  const Tensor log_p = masked(pointwise(CUDNN_POINTWISE_SUB, s, lse, scores()));
  const Tensor p = pointwise(CUDNN_POINTWISE_EXP, log_p, DnnGraph::kNone, scores());
  graph_.matmul(flipped(p), dy, dv);

  const Tensor dp = scores();
  graph_.matmul(dy, v, dp);
  const Tensor centered = pointwise(CUDNN_POINTWISE_SUB, dp, delta, scores());
  const Tensor of_p = pointwise(CUDNN_POINTWISE_MUL, centered, p, scores());
  const Tensor ds = pointwise(CUDNN_POINTWISE_MUL, of_p, scaled, scores());
  graph_.matmul(flipped(ds), q, dk);

  const Tensor upright = graph_.passed(CUDNN_DATA_FLOAT, rows(s_.head_dim),
                                       {s_.tokens * 3 * C, s_.head_dim, 3 * C, 1});
  graph_.reshape(k, upright);
  graph_.matmul(ds, upright, dq);
  return std::move(graph_);
}

}  // namespace

DnnGraph attention_graph(const AttentionShape& shape) {
  return Builder(shape).forward();
}

DnnGraph attention_gradient_graph(const AttentionShape& shape) {
  return Builder(shape).backward();
}

}  // namespace concertina::cuda
