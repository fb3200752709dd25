#include "core/cuda/base/library.h"

#include <fmt/ranges.h>

#include <filesystem>
#include <vector>

namespace concertina::cuda {
namespace {

std::vector<std::string> candidates(const std::string& file) {
  std::vector<std::string> paths{file};
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) paths.push_back(program.parent_path().parent_path() / "lib" / file);
  paths.push_back("/usr/local/cuda/lib64/" + file);
  return paths;
}

}  // namespace

Library::Library(std::string_view name, std::string_view file) : name_(name) {
  std::vector<std::string> refusals;  // each includes its file
  for (const std::string& path : candidates(std::string(file))) {
    if ((library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) != nullptr) return;
    const char* why = dlerror();
    refusals.emplace_back(why == nullptr ? path : why);
  }
  refuse(fmt::format("{} cannot be loaded: {}", name, fmt::join(refusals, "; ")));
}

}  // namespace concertina::cuda
