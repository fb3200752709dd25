// The parts of the tokenizer and data that a run keeps for exporting its model.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "experiments/config/config.h"

namespace concertina {

/// Optional files of a published model other than config.json.
inline constexpr const char* kGenerationConfig = "generation_config.json";
inline constexpr const char* kPreprocessorConfig = "preprocessor_config.json";

/// Writes the files of data.tokenizer, and the names of classes if they are not just numbers, to
/// the run directory unless they are already there.
void keep_for_export(const RunConfig& config, std::span<const std::string> classes);

/// The names that keep_for_export() wrote; empty if there are none.
std::vector<std::string> kept_classes(const RunConfig& config);
/// `config` with the tokenizer kept by the run, if there is one.
RunConfig with_kept_tokenizer(RunConfig config);

}  // namespace concertina
