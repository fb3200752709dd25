// One matrix product by cuBLASLt: its description and the algorithm, chosen when it is made.
//
// Row-major matrices as cuBLASLt (column-major) sees them: the row-major X[r,c] is the column-major
// X^T[c,r] with leading dimension c. So C = A B is asked for as C^T = B^T A^T: our B is its first
// operand, our A its second, and a vector along our columns (a bias) one along its rows, which is
// what its epilogues add.
//
// The algorithm: the first that the library's heuristic offers without atomics or sums in a
// narrower type. It is a function of shape, types, device and library version alone, so all ranks
// and runs get the same bits. Measuring and taking the fastest would not be: two close candidates
// change places from run to run, and with them the last bits of every result.
#pragma once

#include <memory>

#include "core/cuda/base/sizes.h"
#include "core/cuda/cublaslt.h"
#include "core/cuda/kernels/kernels.h"
#include "core/tensor.h"

namespace concertina::cuda {

/// C[m,n] = A[m,k] B[k,n], row-major; a transposed operand is stored [k,m] or [n,k]. fp8 wants A as
/// it is, B transposed (so both lie along k), and multiples of 16.
struct ProductShape {
  std::int64_t m = 0, n = 0, k = 0;
  bool a_transposed = false, b_transposed = false;
  Format a = Format::f32, b = Format::f32;
  DType out = DType::f32;
};

/// The operation after the product. `gelu`: u = A B + bias goes to aux, gelu(u) to C.
/// `gelu_backward`: C = A B * gelu'(aux). bias[n] and aux[m,n] have C's type.
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
  /// Where cuBLASLt has no algorithm: an error if nothing follows the product, else `able()` is
  /// false and the caller does that part itself.
  Product(cublasLtHandle_t handle, const ProductShape& shape, ProductEpilogue epilogue);

  bool able() const { return able_; }

  struct Operands {
    const void *a, *b, *bias = nullptr;
    void *c = nullptr, *aux = nullptr;
    const void* add = nullptr;  // C gets this[m,n] added (may be C); null: nothing
    const float *a_scale = nullptr, *b_scale = nullptr;  // of fp8, on the device
  };
  /// kProductScratch bytes of scratch, aligned to 256.
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
