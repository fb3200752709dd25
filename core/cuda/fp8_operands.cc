// fp8: each operand of a product is quantized on use, scaled by its own largest value. Tensor cores
// need both factors contiguous along the sum, so each is stored in the orientation that its product
// sums over: weights in both, once per step; activations in one at a time.
//
// A scale is a function of one tensor: a whole weight, or the input or output gradient of one map
// for one microbatch. It never depends on the rank or on an earlier step, so every layout, schedule
// and resume gives the same bits.
#include <utility>

#include "core/cuda/kernels/kernels.h"
#include "core/cuda/linear_operands.h"
#include "core/error.h"

namespace concertina::cuda {
namespace {

using Int = std::int64_t;

class Fp8Operands final : public LinearOperands {
 public:
  Fp8Operands(const LinearShape& shape, Context& context) : shape_(shape), context_(context) {}

  ProductShape forward_shape() const override {
    return product(shape_.rows, shape_.out, shape_.in, Format::e4m3, Format::e4m3);
  }
  ProductShape input_shape() const override {
    return product(shape_.rows, shape_.in, shape_.out, Format::e5m2, Format::e4m3);
  }
  ProductShape weight_shape() const override {
    ProductShape s = shape_.transposed
                         ? product(shape_.out, shape_.in, shape_.rows, Format::e5m2, Format::e4m3)
                         : product(shape_.in, shape_.out, shape_.rows, Format::e4m3, Format::e5m2);
    s.out = DType::f32;
    return s;
  }
  // Packed: W as stored, W transposed, their scale.
  void pack(View weight, void* packed) override {
    const Weights w = weights_in(packed);
    quantize(context_.stream, weight, shape_.transposed ? shape_.in : shape_.out, Format::e4m3,
             {w.stored, w.flipped, w.scale}, maximum_scratch());
  }

  Product::Operands forward(View x, const void* packed) override {
    return operands(quantized(x, shape_.in, Format::e4m3, input_scratch(), false), packed,
                    shape_.transposed);
  }
  Product::Operands input(View dy, const void* packed) override {
    return operands(quantized(dy, shape_.out, Format::e5m2, output_scratch(), false), packed,
                    !shape_.transposed);
  }
  Product::Operands weight(View x, View dy) override {
    Quantized a = quantized(x, shape_.in, Format::e4m3, input_scratch(), true);
    Quantized b = quantized(dy, shape_.out, Format::e5m2, output_scratch(), true);
    if (shape_.transposed) std::swap(a, b);
    return {.a = a.flipped, .b = b.flipped, .a_scale = a.scale, .b_scale = b.scale};
  }

 private:
  struct Weights {
    void *stored, *flipped;
    float* scale;
  };

  Product::Operands operands(const Quantized& a, const void* packed, bool as_stored) const {
    const Weights w = weights_in(const_cast<void*>(packed));
    return {.a = a.straight,
            .b = as_stored ? w.stored : w.flipped,
            .a_scale = a.scale,
            .b_scale = w.scale};
  }
  static ProductShape product(Int m, Int n, Int k, Format a, Format b) {
    return {.m = m, .n = n, .k = k, .b_transposed = true, .a = a, .b = b, .out = DType::bf16};
  }
  std::size_t weights() const { return static_cast<std::size_t>(shape_.in * shape_.out); }
  Weights weights_in(void* packed) const {
    auto* bytes = static_cast<std::byte*>(packed);
    return {bytes, bytes + weights(), reinterpret_cast<float*>(bytes + 2 * weights())};
  }

  // The scratch after the products' scratch: x and its scale, dy and its scale, partial maxima.
  std::byte* input_scratch() const {
    return static_cast<std::byte*>(context_.workspace.scratch()) + kProductScratch;
  }
  std::byte* output_scratch() const {
    return input_scratch() + shape_.rows * shape_.in + kScaleBytes;
  }
  void* maximum_scratch() const {
    return output_scratch() + shape_.rows * shape_.out + kScaleBytes;
  }

  /// Quantizes x[R,columns] to `to`, followed by its scale; `flip` transposes it.
  Quantized quantized(View x, Int columns, Format format, std::byte* to, bool flip) {
    CONCERTINA_CHECK(reinterpret_cast<std::uintptr_t>(x.data) % kFp8Run == 0,
                     "fp8 operand at {} is not aligned", x.data);
    const Quantized q{flip ? nullptr : to, flip ? to : nullptr,
                      reinterpret_cast<float*>(to + shape_.rows * columns)};
    quantize(context_.stream, x, columns, format, q, maximum_scratch());
    return q;
  }

  LinearShape shape_;
  Context& context_;
};

}  // namespace

std::unique_ptr<LinearOperands> make_fp8_operands(const LinearShape& shape, Context& context) {
  return std::make_unique<Fp8Operands>(shape, context);
}

}  // namespace concertina::cuda
