// A shared library of CUDA's, found at run time: a program whose build has it starts without it.
#pragma once

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace concertina::cuda {

/// "13.1.0" of 130100, as cuBLASLt, cuDNN and NCCL count.
inline std::string version_text(std::int64_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

class Library {
 public:
  /// Looks for `file`, "libnccl.so.2", in the loader's own places, in the lib folder beside the
  /// program's, and in the toolkit's usual one. What is found stays for the life of the program.
  Library(std::string_view name, std::string_view file);

  /// Why it cannot be used; empty where it can.
  const std::string& problem() const { return problem_; }
  void refuse(std::string problem) { problem_ = std::move(problem); }

 protected:
  /// Sets `function` to the library's of this name; where there is none, that is the problem.
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

// What a list X(member, function) of a library's functions becomes: the members of a struct that
// has them, and in a Library with such `functions` the search for each.
#define CONCERTINA_LIBRARY_MEMBER(member, function) decltype(&::function) member;
#define CONCERTINA_LIBRARY_FIND(member, function) find(#function, functions.member);

}  // namespace concertina::cuda
