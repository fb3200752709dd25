// SentencePiece models (Kudo and Richardson, 2018), as in Llama 2 and T5, using Google's library.
#include "io/tokenizers/sentencepiece_library.h"
#include "io/tokenizers/tokenizer.h"
#include "io/tokenizers/tokenizer_files.h"

namespace concertina::tokenizer_kinds {
namespace {

std::unique_ptr<Tokenizer> open_sentencepiece(const TokenizerFiles& files) {
  if (files.description() != nullptr) return nullptr;
  const std::string path = files.sentencepiece();
  return path.empty() ? nullptr : open_sentencepiece_model(path, files.declared());
}

}  // namespace

TokenizerKind sentencepiece() {
  return {.open = open_sentencepiece, .files = "a SentencePiece model (*.model)"};
}

}  // namespace concertina::tokenizer_kinds
