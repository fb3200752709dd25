// Folders of models as the hub has them, from tests/golden/published, and configs that name them.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "experiments/config/config_toml.h"
#include "experiments/hugging_face/model_from.h"

namespace concertina {

namespace fs = std::filesystem;
using Settings = std::vector<std::string>;

inline std::string folder_of(const std::string& name) {
  return CONCERTINA_SOURCE "/tests/golden/published/" + name;
}

inline std::string bytes_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_bytes(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

inline RunConfig config_from(const std::string& folder, Settings sets = {}) {
  sets.insert(sets.end(), {"model.from=" + folder, "batch.global=3", "batch.microbatches=1"});
  RunConfig config;
  for (const std::string& assignment : sets) set_config(assignment, config);
  adopt_model_from(config);
  validate(config);
  return config;
}

}  // namespace concertina
