// cuBLASLt, loaded at run time, so that the program starts without it.
#pragma once

#include <cublasLt.h>

#include <string>

#include "core/cuda/base/library.h"

namespace concertina::cuda {

#define CONCERTINA_CUBLASLT(X)                            \
  X(create, cublasLtCreate)                               \
  X(destroy, cublasLtDestroy)                             \
  X(version, cublasLtGetVersion)                          \
  X(status_string, cublasLtGetStatusString)               \
  X(desc_create, cublasLtMatmulDescCreate)                \
  X(desc_destroy, cublasLtMatmulDescDestroy)              \
  X(desc_set, cublasLtMatmulDescSetAttribute)             \
  X(layout_create, cublasLtMatrixLayoutCreate)            \
  X(layout_destroy, cublasLtMatrixLayoutDestroy)          \
  X(preference_create, cublasLtMatmulPreferenceCreate)    \
  X(preference_destroy, cublasLtMatmulPreferenceDestroy)  \
  X(preference_set, cublasLtMatmulPreferenceSetAttribute) \
  X(heuristic, cublasLtMatmulAlgoGetHeuristic)            \
  X(matmul, cublasLtMatmul)

/// The functions in use, under their original names.
struct CublasLt {
  CONCERTINA_CUBLASLT(CONCERTINA_LIBRARY_MEMBER)
};

/// Loads the library on the first call. Throws Error{bad_input}, naming the file, if it is missing.
const CublasLt& cublaslt();

/// Throws Error{failure} unless `status` is success.
void check(cublasStatus_t status, const char* call);

/// Returns the version of the loaded library, such as "13.1.0".
std::string cublaslt_version();

}  // namespace concertina::cuda
