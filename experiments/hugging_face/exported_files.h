// The files of an export other than config.json and the weights, so that transformers' pipelines
// can use the folder as it is.
#pragma once

#include <string>
#include "experiments/config/config.h"
#include "experiments/hugging_face/stored_run.h"
#include "io/tokenizers/published_tokenizer.h"

namespace concertina {

/// The files of exported_tokenizer(); if the model is causal, generation_config.json; if it reads
/// images, preprocessor_config.json with the run's or the original model's mean and deviation.
FileTexts exported_files(const RunConfig& config);

/// transformers' pipeline for the model, such as "text-classification"; empty if there is none.
std::string pipeline_of(const RunConfig& config);

/// Everything transformers needs to turn text into the inputs that the model of `config` was
/// trained on: the tokenizer's files, a tokenizer.json (except for a SentencePiece model) and a
/// tokenizer_config.json. Marks that the run put around texts and that the files lack are written
/// to tokenizer.json. Empty for a model that reads no tokens. Input errors: as for
/// make_tokenizer().
FileTexts exported_tokenizer(const RunConfig& config);

/// The text of a model card; the user must fill in the license. `step`: the step of the weights.
/// The metrics are the ones that the run recorded at this step. If the weights are not those that
/// were evaluated, `weights` says so, and the card has no metrics.
std::string model_card(const StoredRun& run, std::int64_t step, const std::string& weights = "");

}  // namespace concertina
