#include "core/cuda/cublaslt.h"

#include <fmt/format.h>

#include "core/cuda/backend.h"
#include "core/cuda/base/library.h"
#include "core/error.h"

namespace concertina::cuda {
namespace {

struct Loaded : Library {
  CublasLt functions{};

  Loaded() : Library("cuBLASLt", fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR)) {
    find("cublasLtCreate", functions.create);
    find("cublasLtDestroy", functions.destroy);
    find("cublasLtGetVersion", functions.version);
    find("cublasLtGetStatusString", functions.status_string);
    find("cublasLtMatmulDescCreate", functions.desc_create);
    find("cublasLtMatmulDescDestroy", functions.desc_destroy);
    find("cublasLtMatmulDescSetAttribute", functions.desc_set);
    find("cublasLtMatrixLayoutCreate", functions.layout_create);
    find("cublasLtMatrixLayoutDestroy", functions.layout_destroy);
    find("cublasLtMatmulPreferenceCreate", functions.preference_create);
    find("cublasLtMatmulPreferenceDestroy", functions.preference_destroy);
    find("cublasLtMatmulPreferenceSetAttribute", functions.preference_set);
    find("cublasLtMatmulAlgoGetHeuristic", functions.heuristic);
    find("cublasLtMatmul", functions.matmul);
  }
};

const Loaded& loaded() {
  static const Loaded once;
  return once;
}

}  // namespace

const CublasLt& cublaslt() {
  if (const std::string& problem = loaded().problem(); !problem.empty())
    throw_input(problem, "CUDA backend",
                fmt::format("CUDA {} on this machine, its libraries in LD_LIBRARY_PATH, or "
                            "run.device = \"cpu\"",
                            CUBLAS_VER_MAJOR));
  return loaded().functions;
}

std::string products_status() {
  const std::string& problem = loaded().problem();
  return problem.empty() ? cublaslt_version() : problem;
}

}  // namespace concertina::cuda
