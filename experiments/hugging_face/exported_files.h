// The files of an export beside config.json and the weights, so that transformers' pipelines work
// with the folder as it is.
#pragma once

#include "experiments/config/config.h"
#include "io/tokenizers/published_tokenizer.h"

namespace concertina {

/// exported_tokenizer(); generation_config.json of a causal model; preprocessor_config.json of one
/// that reads images, with the run's mean and deviation, or those that the model came with.
FileTexts exported_files(const RunConfig& config);

/// transformers' name for what a pipeline does with the model: "text-classification"; empty: none.
std::string pipeline_of(const RunConfig& config);

}  // namespace concertina
