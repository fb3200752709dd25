// What io's tests share: files, chance, and what an Error said.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>

#include "core/error.h"
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
  std::filesystem::remove(path);  // ext4 flushes a file that is cut to nothing and written anew
  std::ofstream(path, std::ios::binary) << content;
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// The Error that `call` throws, as text; fails the test if there is none.
template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return {};
}

}  // namespace concertina

#define EXPECT_ERROR(call, part)                                                  \
  do {                                                                            \
    const std::string error_text = ::concertina::error_of([&] { (void)(call); }); \
    EXPECT_TRUE(::concertina::contains(error_text, part)) << error_text;          \
  } while (false)
