#include "core/ops.h"

namespace concertina {
namespace {

double product_flops(const LinearShape& shape) {
  return 2.0 * static_cast<double>(shape.rows) * static_cast<double>(shape.in) *
         static_cast<double>(shape.out);
}

/// Two products forward, over the pairs (query, key) that the mask leaves.
double forward_flops(const AttentionShape& s) {
  const double pairs = static_cast<double>(s.tokens) * static_cast<double>(s.tokens + 1) / 2;
  return 4 * pairs * static_cast<double>(s.samples * s.heads * s.head_dim);
}

struct Flops {
  double operator()(const LinearForward& op) const { return product_flops(op.map.shape()); }
  double operator()(const LinearInput& op) const { return product_flops(op.map.shape()); }
  double operator()(const LinearWeight& op) const { return product_flops(op.map.shape()); }
  double operator()(const AttentionForward& op) const {
    return forward_flops(op.attention.shape());
  }
  /// Four products; the recomputation of the probabilities is not counted.
  double operator()(const AttentionBackward& op) const {
    return 2 * forward_flops(op.attention.shape());
  }
  template <class Other>
  double operator()(const Other&) const {
    return 0;
  }
};

}  // namespace

double flops_of(const Op& op) {
  return std::visit(Flops{}, op);
}

}  // namespace concertina
