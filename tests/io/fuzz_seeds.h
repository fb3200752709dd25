// Formats of files for reader_fuzz.cc: what a sound one holds, and what reads it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "io/datasets/dataset.h"
#include "tests/io/reader_files.h"

namespace concertina {

/// A format and the files of a sound example of it; each of them is damaged in turn.
struct FuzzSeed {
  std::string name{};
  std::vector<std::string> names{}, contents{};  // of files in the folder of the test
  std::function<void(const Folder&)> read{};     // all that they hold
  bool refuses = true;                           // whether hardly any damage passes unseen
};

/// Tokenizers, weights, JSON, and the token file by its own door.
std::vector<FuzzSeed> model_seeds();

}  // namespace concertina
