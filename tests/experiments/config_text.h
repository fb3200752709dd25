// Configs from text and from files.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
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

/// Defaults, then the files from left to right, then the assignments; validated.
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
