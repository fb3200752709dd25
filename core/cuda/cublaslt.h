// cuBLASLt, found at run time: a program that has it in its build starts without it.
#pragma once

#include <cublasLt.h>

#include <string>

namespace concertina::cuda {

/// The functions in use, under their own names.
struct CublasLt {
  decltype(&::cublasLtCreate) create;
  decltype(&::cublasLtDestroy) destroy;
  decltype(&::cublasLtGetVersion) version;
  decltype(&::cublasLtGetStatusString) status_string;
  decltype(&::cublasLtMatmulDescCreate) desc_create;
  decltype(&::cublasLtMatmulDescDestroy) desc_destroy;
  decltype(&::cublasLtMatmulDescSetAttribute) desc_set;
  decltype(&::cublasLtMatrixLayoutCreate) layout_create;
  decltype(&::cublasLtMatrixLayoutDestroy) layout_destroy;
  decltype(&::cublasLtMatmulPreferenceCreate) preference_create;
  decltype(&::cublasLtMatmulPreferenceDestroy) preference_destroy;
  decltype(&::cublasLtMatmulPreferenceSetAttribute) preference_set;
  decltype(&::cublasLtMatmulAlgoGetHeuristic) heuristic;
  decltype(&::cublasLtMatmul) matmul;
};

/// Loads the library at the first call. Throws Error{bad_input} that names what was looked for.
const CublasLt& cublaslt();

/// Throws a failure unless `status` is success.
void check(cublasStatus_t status, const char* call);

/// "13.1.0" of the library that was found.
std::string cublaslt_version();

}  // namespace concertina::cuda
