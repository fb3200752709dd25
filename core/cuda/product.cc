#include "core/cuda/product.h"

#include <array>

#include "core/cuda/base/library.h"
#include "core/error.h"

namespace concertina::cuda {
namespace {

// The pointer alignment that cuBLASLt may assume: its widest access. Buffers have kAlignment.
constexpr std::uint32_t kPointerAlignment = 16;

cudaDataType_t data_type(DType type) {
  return type == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}
cudaDataType_t data_type(Format format) {
  switch (format) {
    case Format::e4m3:
      return CUDA_R_8F_E4M3;
    case Format::e5m2:
      return CUDA_R_8F_E5M2;
    case Format::bf16:
      return CUDA_R_16BF;
    case Format::f32:
    case Format::tf32:
      break;
  }
  return CUDA_R_32F;
}

cublasLtMatmulDesc_t make_desc(const ProductShape& s) {
  cublasLtMatmulDesc_t desc = nullptr;
  const auto compute = s.a == Format::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  check(cublaslt().desc_create(&desc, compute, CUDA_R_32F), "cublasLtMatmulDescCreate");
  return desc;
}

/// Returns the column-major view of a row-major [rows, columns].
cublasLtMatrixLayout_t make_layout(cudaDataType_t type, std::int64_t rows, std::int64_t columns) {
  cublasLtMatrixLayout_t layout = nullptr;
  check(cublaslt().layout_create(&layout, type, static_cast<std::uint64_t>(columns),
                                 static_cast<std::uint64_t>(rows), columns),
        "cublasLtMatrixLayoutCreate");
  return layout;
}

template <class T>
void set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  check(cublaslt().desc_set(desc, attribute, &value, sizeof(value)),
        "cublasLtMatmulDescSetAttribute");
}

template <class T>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
         const T& value) {
  check(cublaslt().preference_set(preference, attribute, &value, sizeof(value)),
        "cublasLtMatmulPreferenceSetAttribute");
}

cublasLtEpilogue_t epilogue_of(ProductEpilogue epilogue) {
  switch (epilogue) {
    case ProductEpilogue::nothing:
      return CUBLASLT_EPILOGUE_DEFAULT;
    case ProductEpilogue::bias:
      return CUBLASLT_EPILOGUE_BIAS;
    case ProductEpilogue::gelu:
      return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    case ProductEpilogue::gelu_backward:
      return CUBLASLT_EPILOGUE_DGELU;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

void describe_transposes(cublasLtMatmulDesc_t desc, const ProductShape& s) {
  const auto operation = [](bool transposed) { return transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  set(desc, CUBLASLT_MATMUL_DESC_TRANSA, operation(s.b_transposed));
  set(desc, CUBLASLT_MATMUL_DESC_TRANSB, operation(s.a_transposed));
}

/// The heuristic derives alignments from pointers.
template <class T>
T* aligned_address() {
  return reinterpret_cast<T*>(std::uintptr_t{kPointerAlignment});
}

void describe_epilogue(cublasLtMatmulDesc_t desc, const ProductShape& s, ProductEpilogue epilogue) {
  set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(epilogue));
  void* const aligned = aligned_address<void>();
  if (epilogue == ProductEpilogue::bias || epilogue == ProductEpilogue::gelu) {
    set(desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, data_type(s.out));
    set(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, aligned);
  }
  if (epilogue == ProductEpilogue::gelu || epilogue == ProductEpilogue::gelu_backward) {
    set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, s.n);
    set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, data_type(s.out));
    set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aligned);
  }
}

/// Our B is the library's first operand. Sums are fp32: fp8's fast accumulation, which keeps them
/// in fewer bits for longer, is off by default.
void describe_scales(cublasLtMatmulDesc_t desc, const float* a, const float* b) {
  set(desc, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, static_cast<const void*>(b));
  set(desc, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, static_cast<const void*>(a));
}

cublasLtMatmulPreference_t make_preference() {
  cublasLtMatmulPreference_t preference = nullptr;
  check(cublaslt().preference_create(&preference), "cublasLtMatmulPreferenceCreate");
  return preference;
}

void prefer(cublasLtMatmulPreference_t preference) {
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{kProductScratch});
  // Permit splitting a sum over k only if its fp32 parts are added separately, in a fixed order.
  set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  for (const auto side :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    set(preference, side, kPointerAlignment);
}

}  // namespace

void check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw_failure(fmt::format("{} failed: {}", call, cublaslt().status_string(status)),
                "CUDA backend",
                status == CUBLAS_STATUS_NOT_INITIALIZED || status == CUBLAS_STATUS_ALLOC_FAILED
                    ? "a GPU with free memory, and a driver for this CUDA version"
                    : "CUBLASLT_LOG_LEVEL=2 makes cuBLASLt log what it does not support");
}

std::string cublaslt_version() {
  return version_text(static_cast<std::int64_t>(cublaslt().version()));
}

BlasHandle::BlasHandle() {
  check(cublaslt().create(&handle_), "cublasLtCreate");
}
BlasHandle::~BlasHandle() {
  cublaslt().destroy(handle_);
}

Product::Product(cublasLtHandle_t handle, const ProductShape& s, ProductEpilogue epilogue)
    : handle_(handle),
      shape_(s),
      epilogue_(epilogue),
      desc_(make_desc(s), cublaslt().desc_destroy),
      first_(s.b_transposed ? make_layout(data_type(s.b), s.n, s.k)
                            : make_layout(data_type(s.b), s.k, s.n),
             cublaslt().layout_destroy),
      second_(s.a_transposed ? make_layout(data_type(s.a), s.k, s.m)
                             : make_layout(data_type(s.a), s.m, s.k),
              cublaslt().layout_destroy),
      result_(make_layout(data_type(s.out), s.m, s.n), cublaslt().layout_destroy) {
  describe_transposes(desc_.get(), s);
  describe_epilogue(desc_.get(), s, epilogue);
  if (is_fp8(s.a)) describe_scales(desc_.get(), aligned_address<float>(), aligned_address<float>());
  able_ = choose();
  if (!able_ && epilogue == ProductEpilogue::nothing)
    throw_failure(fmt::format("cuBLASLt does not support a product of {} x {} x {} in {} and {}",
                              s.m, s.k, s.n, name_of(s.a), name_of(s.b)),
                  "CUDA backend", "CUBLASLT_LOG_LEVEL=2 makes cuBLASLt log the reason");
}

bool Product::choose() {
  const Handle<cublasLtMatmulPreference_t> preference(make_preference(),
                                                      cublaslt().preference_destroy);
  prefer(preference.get());
  std::array<cublasLtMatmulHeuristicResult_t, 4> results{};
  int count = 0;
  const cublasStatus_t status = cublaslt().heuristic(
      handle_, desc_.get(), first_.get(), second_.get(), result_.get(), result_.get(),
      preference.get(), static_cast<int>(results.size()), results.data(), &count);
  for (int i = 0; status == CUBLAS_STATUS_SUCCESS && i < count; ++i)
    if (results[static_cast<std::size_t>(i)].state == CUBLAS_STATUS_SUCCESS) {
      algorithm_ = results[static_cast<std::size_t>(i)].algo;
      return true;
    }
  if (epilogue_ == ProductEpilogue::nothing) check(status, "cublasLtMatmulAlgoGetHeuristic");
  return false;
}

void Product::run(const Operands& o, void* scratch, cudaStream_t stream) const {
  for (const void* pointer :
       {o.a, o.b, o.bias, o.add, static_cast<const void*>(o.c), static_cast<const void*>(o.aux)})
    CONCERTINA_CHECK(reinterpret_cast<std::uintptr_t>(pointer) % kPointerAlignment == 0,
                     "an operand of a product of {} x {} x {} at {} is not aligned", shape_.m,
                     shape_.k, shape_.n, pointer);
  if (is_fp8(shape_.a)) describe_scales(desc_.get(), o.a_scale, o.b_scale);
  if (o.bias != nullptr) set(desc_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, o.bias);
  if (o.aux != nullptr) set(desc_.get(), CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, o.aux);
  const float one = 1, beta = o.add == nullptr ? 0 : 1;
  const void* add = o.add == nullptr ? o.c : o.add;
  check(cublaslt().matmul(handle_, desc_.get(), &one, o.b, first_.get(), o.a, second_.get(), &beta,
                          add, result_.get(), o.c, result_.get(), &algorithm_, scratch,
                          kProductScratch, stream),
        "cublasLtMatmul");
}

}  // namespace concertina::cuda
