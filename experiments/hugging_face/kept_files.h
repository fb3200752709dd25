// What a run keeps of its tokenizer and its data, so that its model can be exported when both are
// gone.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "experiments/config/config.h"

namespace concertina {

/// Files of a published model beside config.json; not each has them.
inline constexpr const char* kGenerationConfig = "generation_config.json";
inline constexpr const char* kPreprocessorConfig = "preprocessor_config.json";

/// Writes the files of data.tokenizer, and the names of classes where they are more than their
/// numbers, to the run directory, where they are not there yet.
void keep_for_export(const RunConfig& config, std::span<const std::string> classes);

/// The names that keep_for_export() has written; empty: none.
std::vector<std::string> kept_classes(const RunConfig& config);
/// `config` with the tokenizer that the run has kept, if it has.
RunConfig with_kept_tokenizer(RunConfig config);

}  // namespace concertina
