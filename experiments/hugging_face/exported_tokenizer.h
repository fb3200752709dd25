// The tokenizer of a run as files of an export, which transformers' AutoTokenizer reads.
#pragma once

#include "experiments/config/config.h"
#include "io/tokenizers/published_tokenizer.h"

namespace concertina {

/// What a text of transformers needs to become what the model of `config` was trained to read:
/// the tokenizer's own files, a tokenizer.json (but of a SentencePiece model alone), and a
/// tokenizer_config.json. Marks that the run has put around texts and that the files do not know
/// of are written to tokenizer.json. None of a model that reads no tokens. Input errors: those of
/// make_tokenizer().
FileTexts exported_tokenizer(const RunConfig& config);

/// Whether the model tells which token comes next.
bool is_causal(const RunConfig& config);

}  // namespace concertina
