// Sentences as words with a class per word, from CoNLL files or JSON lines.
#pragma once

#include <memory>

#include "io/datasets/split_files.h"

namespace concertina {

/// Returns a dataset with the fields tokens, types, lengths and tags. A word's class is set at its
/// first token; other tokens are ignored. Words that do not fit are dropped. `options.format` is
/// "conll" (one word per line, its class in the last of several columns, an empty line after each
/// sentence) or "jsonl" (lists of words and of classes). Throws Error{bad_input} naming the file
/// and line for columns or lists of different lengths and sentences without tokens, and throws like
/// number_classes() and split_items().
std::unique_ptr<Dataset> tagged_words(const DataOptions& options);

}  // namespace concertina
