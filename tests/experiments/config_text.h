// Configs from text and from files.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "experiments/config/config.h"
#include "experiments/config/config_toml.h"
#include "tests/errors.h"

namespace concertina {

inline RunConfig parse(const std::string& toml) {
  RunConfig config;
  read_config(toml, "a.toml", config);
  validate(config);
  return config;
}

/// Applies the defaults, the files from left to right, and the assignments; validates the result.
inline RunConfig load_config(const std::vector<std::string>& files,
                             const std::vector<std::string>& sets) {
  RunConfig config;
  for (const std::string& file : files) read_config_file(file, config);
  for (const std::string& assignment : sets) set_config(assignment, config);
  validate(config);
  return config;
}

inline RunConfig with_set(const std::string& assignment) {
  return load_config({}, {assignment});
}

/// Reads each text of a table with `read`, which must reject it. Rows are where | what | what would
/// be right | text; the first three are parts of the error. \n starts a new line of the text, and
/// two leading spaces continue the row above.
template <class Read>
void expect_refusals(const char* table, Read read) {
  std::istringstream rows(std::regex_replace(table, std::regex("\n  "), ""));
  for (std::string row; std::getline(rows, row);) {
    if (row.empty()) continue;
    SCOPED_TRACE(row);
    std::smatch part;
    ASSERT_TRUE(std::regex_match(row, part, std::regex("(.*) \\| (.*) \\| (.*) \\| (.*)")));
    const std::string text = std::regex_replace(part[4].str(), std::regex("\\\\n"), "\n");
    const Error error = input_error([&] { read(text); });
    expect_has(error.where(), part[1].str());
    expect_has(error.message(), part[2].str());
    expect_has(error.fix(), part[3].str());
    EXPECT_FALSE(error.fix().empty());
  }
}

class TempFile {
 public:
  TempFile(const std::string& name, const std::string& text)
      : path_(std::filesystem::path(testing::TempDir()) / name) {
    std::ofstream(path_) << text;
  }
  ~TempFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};
}  // namespace concertina
