// Shared by io's tests: files and random numbers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>

#include "tests/errors.h"
#include "tests/temporary_directory.h"

namespace concertina {

using Random = std::mt19937_64;
/// Uniform in [low, high].
inline std::int64_t draw(Random& random, std::int64_t low, std::int64_t high) {
  return std::uniform_int_distribution<std::int64_t>(low, high)(random);
}

inline std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void spill(const std::string& path, std::string_view content) {
  std::filesystem::remove(path);  // ext4 flushes a file that is truncated and rewritten
  std::ofstream(path, std::ios::binary) << content;
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace concertina
