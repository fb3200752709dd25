// The files of an export beside config.json and the weights, so that transformers' pipelines work
// with the folder as it is.
#pragma once

#include <string>
#include "experiments/config/config.h"
#include "experiments/hugging_face/stored_run.h"
#include "io/tokenizers/published_tokenizer.h"

namespace concertina {

/// exported_tokenizer(); generation_config.json of a causal model; preprocessor_config.json of one
/// that reads images, with the run's mean and deviation, or those that the model came with.
FileTexts exported_files(const RunConfig& config);

/// transformers' name for what a pipeline does with the model: "text-classification"; empty: none.
std::string pipeline_of(const RunConfig& config);

/// What a text of transformers needs to become what the model of `config` was trained to read:
/// the tokenizer's own files, a tokenizer.json (but of a SentencePiece model alone), and a
/// tokenizer_config.json. Marks that the run has put around texts and that the files do not know
/// of are written to tokenizer.json. None of a model that reads no tokens. Input errors: those of
/// make_tokenizer().
FileTexts exported_tokenizer(const RunConfig& config);

/// Whether the model tells which token comes next.
bool is_causal(const RunConfig& config);

/// The text; the licence is left to fill in. `step`: that the weights are of. Figures are those
/// that the run has kept of this step.
std::string model_card(const StoredRun& run, std::int64_t step);

}  // namespace concertina
