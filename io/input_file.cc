#include "io/input_file.h"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "io/file.h"

namespace concertina {

std::string read_input_file(const std::string& path, std::uint64_t limit, const std::string& fix) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  const auto refuse = [&](const std::string& why) {
    throw_input(fmt::format("cannot read this file: {}", why), path, fix);
  };
  if (error) refuse(error.message());
  if (fs::is_directory(status)) refuse("it is a directory");
  if (!fs::is_regular_file(status)) refuse("it is a pipe or a device, not a regular file");
  try {
    return read_file(path, limit);
  } catch (const Error& failed) {
    if (failed.system_error() != 0) refuse(std::strerror(failed.system_error()));
    throw;
  }
}

}  // namespace concertina
