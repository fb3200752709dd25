#include "core/cuda/cublaslt.h"

#include <dlfcn.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <vector>

#include "core/error.h"

namespace concertina::cuda {
namespace {

/// The loader's own places, then the lib folder beside the program's, then the toolkit's usual one.
std::vector<std::string> candidates() {
  const std::string name = fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR);
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  std::vector<std::string> paths{name};
  if (!error) paths.push_back(program.parent_path().parent_path() / "lib" / name);
  paths.push_back("/usr/local/cuda/lib64/" + name);
  return paths;
}

void* open_library() {
  const std::vector<std::string> paths = candidates();
  for (const std::string& path : paths)
    if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  const char* why = dlerror();
  throw_input(
      fmt::format("cuBLASLt cannot be loaded: {}", why == nullptr ? "no reason given" : why),
      fmt::format("looked for {}", fmt::join(paths, ", ")),
      fmt::format("CUDA {} on this machine, its libraries in LD_LIBRARY_PATH, or "
                  "run.device = \"cpu\"",
                  CUBLAS_VER_MAJOR));
}

template <class F>
void find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  if (function == nullptr)
    throw_input(fmt::format("cuBLASLt lacks {}", name), "CUDA backend",
                fmt::format("the library of CUDA {}", CUBLAS_VER_MAJOR));
}

CublasLt load_functions() {
  void* library = open_library();  // stays for the life of the program
  CublasLt lt{};
  find(library, "cublasLtCreate", lt.create);
  find(library, "cublasLtDestroy", lt.destroy);
  find(library, "cublasLtGetVersion", lt.version);
  find(library, "cublasLtGetStatusString", lt.status_string);
  find(library, "cublasLtMatmulDescCreate", lt.desc_create);
  find(library, "cublasLtMatmulDescDestroy", lt.desc_destroy);
  find(library, "cublasLtMatmulDescSetAttribute", lt.desc_set);
  find(library, "cublasLtMatrixLayoutCreate", lt.layout_create);
  find(library, "cublasLtMatrixLayoutDestroy", lt.layout_destroy);
  find(library, "cublasLtMatmulPreferenceCreate", lt.preference_create);
  find(library, "cublasLtMatmulPreferenceDestroy", lt.preference_destroy);
  find(library, "cublasLtMatmulPreferenceSetAttribute", lt.preference_set);
  find(library, "cublasLtMatmulAlgoGetHeuristic", lt.heuristic);
  find(library, "cublasLtMatmul", lt.matmul);
  return lt;
}

}  // namespace

const CublasLt& cublaslt() {
  static const CublasLt functions = load_functions();
  return functions;
}

}  // namespace concertina::cuda
