#include "core/ops.h"

#include <utility>

#include "core/error.h"

namespace concertina {
namespace {

double product_flops(const LinearShape& shape) {
  return 2.0 * static_cast<double>(shape.rows) * static_cast<double>(shape.in) *
         static_cast<double>(shape.out);
}

struct Flops {
  double operator()(const LinearForward& op) const { return product_flops(op.map.shape()); }
  double operator()(const LinearInput& op) const { return product_flops(op.map.shape()); }
  double operator()(const LinearWeight& op) const { return product_flops(op.map.shape()); }
  double operator()(const AttentionForward& op) const {
    return 2 * attention_product_flops(op.attention.shape());
  }
  /// Four products; recomputing the probabilities is not counted.
  double operator()(const AttentionBackward& op) const {
    return 4 * attention_product_flops(op.attention.shape());
  }
  template <class Other>
  double operator()(const Other&) const {
    return 0;
  }
};

}  // namespace

double attention_product_flops(const AttentionShape& s) {
  const auto tokens = static_cast<double>(s.tokens);
  const auto keys = static_cast<double>(s.capacity > 0 ? s.capacity : s.tokens);
  const double pairs = tokens * (s.causal ? (keys + 1) / 2 : keys);
  return 2 * pairs * static_cast<double>(s.samples * s.width());
}

void Linear::check(View view, std::int64_t columns, const char* name) const {
  CONCERTINA_CHECK(view.count == static_cast<std::size_t>(shape_.rows * columns),
                   "linear {}: got {} elements, expected {} x {}", name, view.count, shape_.rows,
                   columns);
}

Attention::Attention(const AttentionShape& shape) : shape_(shape) {
  CONCERTINA_CHECK(shape.kv() > 0 && shape.heads % shape.kv() == 0, "{} query heads, {} key heads",
                   shape.heads, shape.kv());
}

void Attention::backward(const AttentionBackward& /*op*/) {
  CONCERTINA_CHECK(false, "attention with a cache has no backward pass");
}

void Attention::require(View lengths, const DropoutMask& mask, View starts, View cache) const {
  const std::int64_t rows = shape_.has_starts() ? shape_.samples * shape_.tokens : 0;
  CONCERTINA_CHECK(std::cmp_equal(starts.count, rows) && (!shape_.has_starts() || shape_.causal),
                   "{} starts for {} packed rows", starts.count, rows);
  CONCERTINA_CHECK(std::cmp_equal(cache.count, shape_.cache_elements()),
                   "a cache of {} elements instead of {}", cache.count, shape_.cache_elements());
  const std::size_t expected = shape_.padded ? static_cast<std::size_t>(shape_.samples) : 0;
  CONCERTINA_CHECK(lengths.count == expected && (expected == 0 || lengths.dtype == DType::i32),
                   "{} lengths for {} samples{}", lengths.count, shape_.samples,
                   shape_.padded ? "" : " without padding");
  CONCERTINA_CHECK(
      mask.share == 0 || (shape_.drops && mask.sample_elements == shape_.mask_elements()),
      "a mask of {} elements, but attention {}", mask.sample_elements,
      shape_.drops ? fmt::format("has {}", shape_.mask_elements()) : "drops nothing");
}

double flops_of(const Op& op) {
  return std::visit(Flops{}, op);
}

}  // namespace concertina
