// Files for tests, and what an Error said.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "core/error.h"
#include "io/file.h"

namespace concertina {

/// A directory of its own for each test, gone afterwards.
class FileTest : public ::testing::Test {
 protected:
  FileTest() {
    std::string name = ::testing::TempDir() + "concertina-io-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw_io("mkdtemp", name);
    directory_ = name;
  }
  ~FileTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  const std::string& directory() const { return directory_; }
  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  /// Writes a file and returns its path.
  std::string put(const std::string& name, std::string_view content) const {
    std::filesystem::remove(path(name));
    File(path(name), File::Mode::create).write(content);
    return path(name);
  }

 private:
  std::string directory_;
};

inline std::string slurp(const std::string& path) {
  return read_file(path, 1U << 30);
}

/// The Error that `call` throws, as text; fails the test if there is none.
inline std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return {};
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace concertina

#define EXPECT_ERROR(call, part)                                                  \
  do {                                                                            \
    const std::string error_text = ::concertina::error_of([&] { (void)(call); }); \
    EXPECT_TRUE(::concertina::contains(error_text, part)) << error_text;          \
  } while (false)
