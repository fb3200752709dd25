// File formats for reader_fuzz.cc: a valid example of each, and its reader.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "io/datasets/dataset.h"
#include "tests/io/reader_files.h"

namespace concertina {

/// A format and the files of a valid example; each file is damaged in turn.
struct FuzzSeed {
  std::string name{};
  std::vector<std::string> names{}, contents{};  // of files in the test's folder
  std::function<void(const Folder&)> read{};     // reads all contents
  bool refuses = true;                           // whether almost all damage is detected
};

/// Returns tokenizers, weights, JSON, and the token file with its own reader.
std::vector<FuzzSeed> model_seeds();

}  // namespace concertina
