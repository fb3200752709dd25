// cuBLASLt's functions as plain loops over column-major matrices, as its documentation defines
// them, instead of core/cuda/cublaslt.cc. Like the library, it rejects some epilogues: a GELU
// operand whose leading dimension is not a multiple of 8, and a bias of a single row. For fp8, it
// requires what the documentation of "cublasLtMatmul" says for compute capability 8.9 and 9.0, and
// does not support GELU's derivative (the library may).
#include "core/cuda/cublaslt.h"

#include <cmath>
#include <cstring>
#include <map>
#include <vector>

#include "block.h"
#include "core/tensor.h"
#include "device_clock.h"
#include "streams.h"

// We may define the library's opaque types, since nothing else accesses their contents.
namespace {

using concertina::Bf16;

struct Desc {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  std::map<int, std::vector<std::byte>> attributes;
  template <class T>
  T get(int attribute, T otherwise) const {
    const auto found = attributes.find(attribute);
    if (found == attributes.end()) return otherwise;
    if (found->second.size() != sizeof(T)) std::abort();  // a value of the wrong size
    T value;
    std::memcpy(&value, found->second.data(), sizeof(T));
    return value;
  }
};

struct Layout {
  cudaDataType_t type;
  std::uint64_t rows, columns;
  std::int64_t leading;
};

template <class T, class Handle>
T& of(Handle handle) {
  return *const_cast<T*>(reinterpret_cast<const T*>(handle));
}

/// Decodes a sign, `exponent_bits` bits and the mantissa; E5M2 has infinities, E4M3 only one NaN.
double decode_fp8(std::uint8_t bits, int exponent_bits) {
  const int mantissa_bits = 7 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
  const int mantissa = bits & ((1 << mantissa_bits) - 1), top = (1 << exponent_bits) - 1;
  const int exponent = bits >> mantissa_bits & top;
  double value = exponent == 0
                     ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                     : std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
  if (exponent_bits == 5 && exponent == top) value = mantissa == 0 ? HUGE_VAL : std::nan("");
  if (exponent_bits == 4 && exponent == top && mantissa == 7) value = std::nan("");
  return bits >> 7 != 0 ? -value : value;
}

bool is_fp8(cudaDataType_t type) {
  return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2;
}

/// A column-major matrix in memory.
struct Matrix {
  Layout layout;
  void* data;

  std::size_t at(std::uint64_t row, std::uint64_t column) const {
    return row + column * static_cast<std::uint64_t>(layout.leading);
  }
  double get(std::uint64_t row, std::uint64_t column) const {
    const std::size_t i = at(row, column);
    if (is_fp8(layout.type))
      return decode_fp8(static_cast<std::uint8_t*>(data)[i], layout.type == CUDA_R_8F_E4M3 ? 4 : 5);
    return static_cast<double>(layout.type == CUDA_R_16BF ? to_float(static_cast<Bf16*>(data)[i])
                                                          : static_cast<float*>(data)[i]);
  }
  void set(std::uint64_t row, std::uint64_t column, double value) const {
    const std::size_t i = at(row, column);
    if (layout.type == CUDA_R_16BF)
      static_cast<Bf16*>(data)[i] = concertina::rounded<Bf16>(static_cast<float>(value));
    else
      static_cast<float*>(data)[i] = static_cast<float>(value);
  }
};

double gelu(double u) {
  return 0.5 * u * (1 + std::tanh(std::sqrt(2 / M_PI) * (u + 0.044715 * u * u * u)));
}
double gelu_slope(double u) {
  const double h = 1e-5;
  return (gelu(u + h) - gelu(u - h)) / (2 * h);
}

int epilogue_of(const Desc& desc) {
  return desc.get<cublasLtEpilogue_t>(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT);
}
bool transposed(const Desc& desc, int attribute) {
  return desc.get<cublasOperation_t>(attribute, CUBLAS_OP_N) == CUBLAS_OP_T;
}

cublasStatus_t create(cublasLtHandle_t* handle) {
  static int dummy;
  *handle = reinterpret_cast<cublasLtHandle_t>(&dummy);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t destroy(cublasLtHandle_t) {
  return CUBLAS_STATUS_SUCCESS;
}
std::size_t version() {
  return 130000;
}
const char* status_string(cublasStatus_t) {
  return "emulated error";
}

cublasStatus_t desc_create(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute,
                           cudaDataType_t) {
  *desc = reinterpret_cast<cublasLtMatmulDesc_t>(new Desc{compute, {}});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t desc_destroy(cublasLtMatmulDesc_t desc) {
  delete &of<Desc>(desc);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t desc_set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute,
                        const void* value, std::size_t bytes) {
  const auto* from = static_cast<const std::byte*>(value);
  of<Desc>(desc).attributes[attribute].assign(from, from + bytes);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t layout_create(cublasLtMatrixLayout_t* layout, cudaDataType type, std::uint64_t rows,
                             std::uint64_t columns, std::int64_t leading) {
  *layout = reinterpret_cast<cublasLtMatrixLayout_t>(new Layout{type, rows, columns, leading});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t layout_destroy(cublasLtMatrixLayout_t layout) {
  delete &of<Layout>(layout);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t preference_create(cublasLtMatmulPreference_t* preference) {
  *preference = reinterpret_cast<cublasLtMatmulPreference_t>(new Desc);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t preference_destroy(cublasLtMatmulPreference_t preference) {
  delete &of<Desc>(preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t preference_set(cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t,
                              const void*, std::size_t) {
  return CUBLAS_STATUS_SUCCESS;
}

bool dimensions_fit(const Desc& desc, const Layout& a, const Layout& b, const Layout& d) {
  const bool ta = transposed(desc, CUBLASLT_MATMUL_DESC_TRANSA);
  const bool tb = transposed(desc, CUBLASLT_MATMUL_DESC_TRANSB);
  return (ta ? a.columns : a.rows) == d.rows && (tb ? b.rows : b.columns) == d.columns &&
         (ta ? a.rows : a.columns) == (tb ? b.columns : b.rows) && is_fp8(a.type) == is_fp8(b.type);
}

bool fp8_fits(const Desc& desc, const Layout& a, const Layout& b, const Layout& c,
              const Layout& d) {
  for (const Layout* one : {&a, &b, &c, &d})
    if (one->rows % 16 != 0 || one->columns % 16 != 0 || one->leading % 16 != 0) return false;
  return transposed(desc, CUBLASLT_MATMUL_DESC_TRANSA) &&
         !transposed(desc, CUBLASLT_MATMUL_DESC_TRANSB) && desc.compute == CUBLAS_COMPUTE_32F &&
         (a.type == CUDA_R_8F_E4M3 || b.type == CUDA_R_8F_E4M3) && c.type == d.type &&
         epilogue_of(desc) != CUBLASLT_EPILOGUE_DGELU;
}

/// Returns the scale of a matrix, read where the call reads it: on the device.
double scale_of(const Desc& desc, int attribute) {
  const auto* scale = desc.get<const float*>(attribute, nullptr);
  return scale == nullptr ? 1 : static_cast<double>(*scale);
}

cublasStatus_t heuristic(cublasLtHandle_t, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                         cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                         cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t, int,
                         cublasLtMatmulHeuristicResult_t results[], int* count) {
  const Layout& out = of<Layout>(d);
  if (!dimensions_fit(of<Desc>(desc), of<Layout>(a), of<Layout>(b), out))
    return CUBLAS_STATUS_INVALID_VALUE;
  const int epilogue = epilogue_of(of<Desc>(desc));
  const auto auxiliary = of<Desc>(desc).get<std::int64_t>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, 0);
  *count = 0;
  if (is_fp8(of<Layout>(a).type) &&
      !fp8_fits(of<Desc>(desc), of<Layout>(a), of<Layout>(b), of<Layout>(c), out))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if ((epilogue & 128) != 0 && auxiliary % 8 != 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (epilogue == CUBLASLT_EPILOGUE_BIAS && out.columns == 1) return CUBLAS_STATUS_NOT_SUPPORTED;
  *count = 1;
  results[0].state = CUBLAS_STATUS_SUCCESS;
  return CUBLAS_STATUS_SUCCESS;
}

/// Applies the epilogue to the sum of one element.
double behind(const Desc& desc, double sum, std::uint64_t row, std::uint64_t column,
              const Layout& out) {
  const int epilogue = epilogue_of(desc);
  if ((epilogue & CUBLASLT_EPILOGUE_BIAS) != 0) {
    const auto type = desc.get<cudaDataType_t>(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, out.type);
    const Layout layout{type, out.rows, 1, static_cast<std::int64_t>(out.rows)};
    sum += Matrix{layout, desc.get<void*>(CUBLASLT_MATMUL_DESC_BIAS_POINTER, nullptr)}.get(row, 0);
  }
  if ((epilogue & 128) == 0) return sum;
  const Layout layout{
      desc.get<cudaDataType_t>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, out.type), out.rows,
      out.columns, desc.get<std::int64_t>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, 0)};
  const Matrix aux{layout, desc.get<void*>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, nullptr)};
  if (epilogue == CUBLASLT_EPILOGUE_DGELU) return sum * gelu_slope(aux.get(row, column));
  aux.set(row, column, sum);
  return gelu(sum);
}

/// A product with all its arguments, as they were at the call.
struct Call {
  Desc desc;
  Matrix left, right, add, out;
  double alpha, beta;

  void run() const {
    const concertina::emulation::DeviceAtWork at_work;
    const bool ta = transposed(desc, CUBLASLT_MATMUL_DESC_TRANSA);
    const bool tb = transposed(desc, CUBLASLT_MATMUL_DESC_TRANSB);
    const std::uint64_t depth = ta ? left.layout.rows : left.layout.columns;
    const double scale = alpha * scale_of(desc, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER) *
                         scale_of(desc, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER);
    for (std::uint64_t column = 0; column < out.layout.columns; ++column)
      for (std::uint64_t row = 0; row < out.layout.rows; ++row) {
        double sum = 0;
        for (std::uint64_t k = 0; k < depth; ++k)
          sum += (ta ? left.get(k, row) : left.get(row, k)) *
                 (tb ? right.get(column, k) : right.get(k, column));
        sum *= scale;
        if (beta != 0) sum += beta * add.get(row, column);
        out.set(row, column, behind(desc, sum, row, column, out.layout));
      }
    concertina::emulation::kernel_issued();
  }
};

double value_of(const void* factor) {
  return static_cast<double>(*static_cast<const float*>(factor));
}

cublasStatus_t matmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void* alpha, const void* a,
                      cublasLtMatrixLayout_t a_layout, const void* b,
                      cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                      cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
                      const cublasLtMatmulAlgo_t*, void*, std::size_t, cudaStream_t stream) {
  const Call call{of<Desc>(desc),
                  {of<Layout>(a_layout), const_cast<void*>(a)},
                  {of<Layout>(b_layout), const_cast<void*>(b)},
                  {of<Layout>(c_layout), const_cast<void*>(c)},
                  {of<Layout>(d_layout), d},
                  value_of(alpha),
                  value_of(beta)};
  const cudaError_t error = concertina::emulation::submit(stream, [call] { call.run(); });
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // namespace

namespace concertina::cuda {

std::string products_status() {
  return "emulated";
}

const CublasLt& cublaslt() {
  static const CublasLt functions{
      .create = create,
      .destroy = destroy,
      .version = version,
      .status_string = status_string,
      .desc_create = desc_create,
      .desc_destroy = desc_destroy,
      .desc_set = desc_set,
      .layout_create = layout_create,
      .layout_destroy = layout_destroy,
      .preference_create = preference_create,
      .preference_destroy = preference_destroy,
      .preference_set = preference_set,
      .heuristic = heuristic,
      .matmul = matmul,
  };
  return functions;
}

}  // namespace concertina::cuda
