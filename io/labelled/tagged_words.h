// Sentences as words, with a class for each word: CoNLL's files, or JSON lines.
#pragma once

#include <memory>

#include "io/datasets/split_files.h"

namespace concertina {

/// Fields tokens, types, lengths, tags: a word's class stands at its first token, the others are
/// ignored. A sample that is too long loses words at its end. `options.format`: "conll" (a word in
/// each line, its class in the last of several columns, a line without any after each sentence) or
/// "jsonl" (lists of words and of classes). Input errors, with file and line: columns or lists of
/// other lengths, a sentence of which no word has a token, and as of number_classes() and
/// split_items().
std::unique_ptr<Dataset> tagged_words(const DataOptions& options);

}  // namespace concertina
