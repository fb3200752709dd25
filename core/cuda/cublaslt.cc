#include "core/cuda/cublaslt.h"

#include <fmt/format.h>

#include "core/cuda/backend.h"
#include "core/cuda/library.h"
#include "core/error.h"

namespace concertina::cuda {
namespace {

struct Loaded {
  Library library{"cuBLASLt", fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR)};
  CublasLt functions{};

  Loaded() {
    library.find("cublasLtCreate", functions.create);
    library.find("cublasLtDestroy", functions.destroy);
    library.find("cublasLtGetVersion", functions.version);
    library.find("cublasLtGetStatusString", functions.status_string);
    library.find("cublasLtMatmulDescCreate", functions.desc_create);
    library.find("cublasLtMatmulDescDestroy", functions.desc_destroy);
    library.find("cublasLtMatmulDescSetAttribute", functions.desc_set);
    library.find("cublasLtMatrixLayoutCreate", functions.layout_create);
    library.find("cublasLtMatrixLayoutDestroy", functions.layout_destroy);
    library.find("cublasLtMatmulPreferenceCreate", functions.preference_create);
    library.find("cublasLtMatmulPreferenceDestroy", functions.preference_destroy);
    library.find("cublasLtMatmulPreferenceSetAttribute", functions.preference_set);
    library.find("cublasLtMatmulAlgoGetHeuristic", functions.heuristic);
    library.find("cublasLtMatmul", functions.matmul);
  }
};

const Loaded& loaded() {
  static const Loaded once;
  return once;
}

}  // namespace

const CublasLt& cublaslt() {
  if (const std::string& problem = loaded().library.problem(); !problem.empty())
    throw_input(problem, "CUDA backend",
                fmt::format("CUDA {} on this machine, its libraries in LD_LIBRARY_PATH, or "
                            "run.device = \"cpu\"",
                            CUBLAS_VER_MAJOR));
  return loaded().functions;
}

std::string products_status() {
  const std::string& problem = loaded().library.problem();
  return problem.empty() ? cublaslt_version() : problem;
}

}  // namespace concertina::cuda
