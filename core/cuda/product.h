// One matrix product with cuBLASLt: its description and the algorithm, chosen on construction.
//
// cuBLASLt is column-major: it sees the row-major X[r,c] as X^T[c,r] with leading dimension c.
// Therefore C = A B is computed as C^T = B^T A^T: our B is its first operand, our A its second, and
// a vector along our columns (a bias) is along its rows, as its epilogues require.
//
// The algorithm is the first one from the library's heuristic without atomics or sums in a narrower
// type. It depends only on shape, types, device and library version, so all ranks and runs compute
// the same bits. Choosing the fastest by measurement would not guarantee this: the order of two
// similar candidates, and with it the last bits of every result, would vary between runs.
#pragma once

#include <memory>

#include "core/cuda/base/sizes.h"
#include "core/cuda/cublaslt.h"
#include "core/cuda/kernels/kernels.h"
#include "core/tensor.h"

namespace concertina::cuda {

/// C[m,n] = A[m,k] B[k,n], row-major; a transposed operand is stored [k,m] or [n,k]. fp8 needs A
/// untransposed and B transposed (both contiguous along k), and sizes that are multiples of 16.
struct ProductShape {
  std::int64_t m = 0, n = 0, k = 0;
  bool a_transposed = false, b_transposed = false;
  Format a = Format::f32, b = Format::f32;
  DType out = DType::f32;
};

/// The operation after the product. `gelu` writes u = A B + bias to aux, and gelu(u) to C.
/// `gelu_backward` writes C = A B * gelu'(aux). bias[n] and aux[m,n] have C's type.
enum class ProductEpilogue { nothing, bias, gelu, gelu_backward };

class BlasHandle {
 public:
  BlasHandle();
  ~BlasHandle();
  BlasHandle(const BlasHandle&) = delete;
  BlasHandle& operator=(const BlasHandle&) = delete;
  operator cublasLtHandle_t() const { return handle_; }

 private:
  cublasLtHandle_t handle_ = nullptr;
};

class Product {
 public:
  /// If cuBLASLt has no algorithm, throws if there is no epilogue; otherwise `able()` is false, and
  /// the caller must apply the epilogue.
  Product(cublasLtHandle_t handle, const ProductShape& shape, ProductEpilogue epilogue);

  bool able() const { return able_; }

  struct Operands {
    const void *a, *b, *bias = nullptr;
    void *c = nullptr, *aux = nullptr;
    const void* add = nullptr;  // added to C[m,n] (may alias C); null: nothing
    const float *a_scale = nullptr, *b_scale = nullptr;  // for fp8, on the device
  };
  /// `scratch` is kProductScratch bytes, aligned to 256.
  void run(const Operands& operands, void* scratch, cudaStream_t stream) const;

 private:
  template <class T>
  using Handle = std::unique_ptr<std::remove_pointer_t<T>, cublasStatus_t (*)(T)>;

  bool choose();

  cublasLtHandle_t handle_;
  ProductShape shape_;
  ProductEpilogue epilogue_;
  Handle<cublasLtMatmulDesc_t> desc_;
  Handle<cublasLtMatrixLayout_t> first_, second_, result_;
  cublasLtMatmulAlgo_t algorithm_{};
  bool able_ = false;
};

}  // namespace concertina::cuda
