// One single-threaded matrix product of fixed shape by oneDNN, run by many threads at once.
// Invariant: its blocking is chosen as for one thread, so its bits never depend on the team.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

#include "core/cpu/team.h"

namespace concertina::cpu {

dnnl::engine& engine();

/// Whether oneDNN may use these instructions: this processor has them, and ONEDNN_MAX_CPU_ISA does
/// not say otherwise.
bool may_use(dnnl::cpu_isa isa);
/// Whether its products in fp32 keep packed weights packed (brgemm), or pack them in each call.
bool has_packed_products();
/// Whether this processor multiplies bf16, as far as oneDNN may use it; by which instructions.
bool has_bf16_products();
bool has_amx_products();

/// C[m,n] = (accumulate ? C : 0) + A[m,k] B[k,n]. One stride of A is 1, one of B likewise; C is
/// fp32, row-major.
struct ProductShape {
  DType type = DType::f32;  // of A and B: f32 or bf16
  std::int64_t m = 0, k = 0, n = 0;
  std::int64_t a_row = 0, a_column = 0;  // strides of A in elements
  std::int64_t b_row = 0, b_column = 0;  // of B; 0, 0: the product chooses (packed)
  std::int64_t c_row = 0;
  bool accumulate = false;
};

/// Where the processor has no products of bf16, the values are widened and multiplied in fp32; a
/// packed B then holds fp32.
class Product {
 public:
  /// `packed`: use this layout of B instead of the shape's (a tail shares its tile's packing).
  Product(const ProductShape& shape, Context& context, const dnnl::memory::desc* packed = nullptr);
  const dnnl::memory::desc& b_desc() const { return b_desc_; }
  void run(int thread, const void* a, const void* b, float* c) const;

 private:
  struct Arguments {
    dnnl::memory a, b, c, scratch;
    dnnl::stream stream;
  };
  /// A matrix of bf16 that is copied to fp32 for the product: `lines` of `length`.
  struct Widened {
    std::int64_t lines = 0, length = 0, stride = 0;
    std::size_t bytes() const { return align_up(static_cast<std::size_t>(lines * length) * 4); }
  };
  static Widened widen(std::int64_t rows, std::int64_t columns, std::int64_t& row,
                       std::int64_t& column);
  const void* widened(const Widened& matrix, const void* from, std::byte*& scratch) const;

  dnnl::matmul primitive_;
  dnnl::memory::desc b_desc_;
  mutable std::vector<Arguments> threads_;  // handles of the call that a thread is in
  const Context* context_;
  Widened a_, b_;
};

/// Copies weights from fp32 into the layout of B of a product.
class Packing {
 public:
  /// `from`: of the fp32 weights; `to`: b_desc() of a product of `type`.
  Packing(const dnnl::memory::desc& from, const dnnl::memory::desc& to, DType type,
          const Context& context);
  void run(const void* from, void* to);

 private:
  dnnl::reorder primitive_;
  dnnl::memory from_, to_;
  dnnl::stream stream_;
  const Context* context_;
  std::int64_t cut_ = 0;  // elements to round to bf16 in place
};

}  // namespace concertina::cpu
