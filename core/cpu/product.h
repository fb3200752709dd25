// A single-threaded oneDNN product of fixed shape, which many threads may run at once.
// Invariant: its blocking is chosen for one thread, so its result never depends on the team.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

#include "core/cpu/team.h"

namespace concertina::cpu {

dnnl::engine& engine();

/// Whether oneDNN may use these instructions: the processor supports them, and ONEDNN_MAX_CPU_ISA
/// permits them.
bool may_use(dnnl::cpu_isa isa);
/// Whether fp32 products use packed weights directly (brgemm), rather than packing in each call.
bool has_packed_products();
/// Whether the processor and oneDNN's limit allow bf16 products, and whether they allow AMX.
bool has_bf16_products();
bool has_amx_products();

/// C[m,n] = (accumulate ? C : 0) + A[m,k] B[k,n]. A and B each have one stride of 1. C is row-major
/// fp32.
struct ProductShape {
  DType type = DType::f32;  // type of A and B: f32 or bf16
  std::int64_t m = 0, k = 0, n = 0;
  std::int64_t a_row = 0, a_column = 0;  // strides of A in elements
  std::int64_t b_row = 0, b_column = 0;  // strides of B; 0, 0: packed
  std::int64_t c_row = 0;
  bool accumulate = false;
};

/// If the processor has no bf16 products, values are widened and multiplied in fp32, and a packed B
/// is stored in fp32.
class Product {
 public:
  /// If given, `packed` is the layout of B, so that a tail can share the packing of whole tiles.
  Product(const ProductShape& shape, Context& context, const dnnl::memory::desc* packed = nullptr);
  const dnnl::memory::desc& b_desc() const { return b_desc_; }
  void run(int thread, const void* a, const void* b, float* c) const;

 private:
  struct Arguments {
    dnnl::memory a, b, c, scratch;
    dnnl::stream stream;
  };
  /// A bf16 matrix that is copied to fp32 for the product: `lines` lines of `length` elements.
  struct Widened {
    std::int64_t lines = 0, length = 0, stride = 0;
    std::size_t bytes() const { return align_up(static_cast<std::size_t>(lines * length) * 4); }
  };
  static Widened widen(std::int64_t rows, std::int64_t columns, std::int64_t& row,
                       std::int64_t& column);
  const void* widened(const Widened& matrix, const void* from, std::byte*& scratch) const;

  dnnl::matmul primitive_;
  dnnl::memory::desc b_desc_;
  mutable std::vector<Arguments> threads_;  // handles of the current call, by thread
  const Context* context_;
  Widened a_, b_;
};

/// Copies fp32 weights into the layout of B of a product.
class Packing {
 public:
  /// `from` describes the fp32 weights; `to` is the b_desc() of a product of `type`.
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
