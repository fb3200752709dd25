#include "core/cuda/cublaslt.h"

#include <fmt/format.h>

#include "core/cuda/backend.h"
#include "core/error.h"

namespace concertina::cuda {
namespace {

struct Loaded : Library {
  CublasLt functions{};

  Loaded() : Library("cuBLASLt", fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR)) {
    CONCERTINA_CUBLASLT(CONCERTINA_LIBRARY_FIND)
  }
};

}  // namespace

const CublasLt& cublaslt() {
  if (const std::string& problem = loaded<Loaded>().problem(); !problem.empty())
    throw_input(problem, "CUDA backend",
                fmt::format("CUDA {} on this machine, its libraries in LD_LIBRARY_PATH, or "
                            "run.device = \"cpu\"",
                            CUBLAS_VER_MAJOR));
  return loaded<Loaded>().functions;
}

std::string products_status() {
  const std::string& problem = loaded<Loaded>().problem();
  return problem.empty() ? cublaslt_version() : problem;
}

}  // namespace concertina::cuda
