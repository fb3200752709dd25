// A CUDA shared library, loaded at run time, so that the program starts without it.
#pragma once

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace concertina::cuda {

/// Returns "13.1.0" for 130100, the encoding of cuBLASLt, cuDNN and NCCL.
inline std::string version_text(std::int64_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

class Library {
 public:
  /// Searches for `file`, such as "libnccl.so.2", in the loader's default places, the lib folder
  /// next to the program's, and the usual toolkit folder. It stays loaded until exit.
  Library(std::string_view name, std::string_view file);

  /// Returns why the library cannot be used; empty if it can.
  const std::string& problem() const { return problem_; }
  void refuse(std::string problem) { problem_ = std::move(problem); }

 protected:
  /// Sets `function` to the library's function of this name, or records its absence as the problem.
  template <class F>
  void find(const char* function_name, F& function) {
    if (library_ == nullptr) return;
    function = reinterpret_cast<F>(dlsym(library_, function_name));
    if (function == nullptr) refuse(fmt::format("{} lacks {}", name_, function_name));
  }

 private:
  std::string name_, problem_;
  void* library_ = nullptr;
};

/// Returns the library of type L, which is loaded by the first call.
template <class L>
const L& loaded() {
  static const L once;
  return once;
}

// Expand a list X(member, function) of library functions into the members of a struct, and into
// looking up each function in a Library whose member `functions` is such a struct.
#define CONCERTINA_LIBRARY_MEMBER(member, function) decltype(&::function) member;
#define CONCERTINA_LIBRARY_FIND(member, function) find(#function, functions.member);

}  // namespace concertina::cuda
