#include "io/paths.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace concertina {
namespace {

namespace fs = std::filesystem;

bool is_program(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::string find_program(const std::string& program) {
  if (program.find('/') != std::string::npos) return is_program(program) ? program : "";
  const char* variable = std::getenv("PATH");
  const std::string path = variable == nullptr ? "/usr/bin:/bin" : variable;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const std::string folder = path.substr(begin, end - begin);
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + program;
    if (is_program(candidate)) return candidate;
    begin = end + 1;
  }
  return {};
}

std::string why_not_writable(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  const fs::path parent = fs::path(path).parent_path();
  const std::string directory = parent.empty() ? "." : parent.string();
  if (fs::exists(status) && !fs::is_regular_file(status)) return "it is no regular file";
  if (!fs::is_directory(directory, error)) return "its directory is not there";
  if (access(directory.c_str(), W_OK | X_OK) != 0) return "its directory cannot be written to";
  return {};
}

}  // namespace concertina
