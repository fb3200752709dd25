// Detects held-out text that repeats training text: links to a file and copies of it (even with
// different line endings, indentation or case), and files or rows that were joined into others. For
// tables and images, Splits compares items.
#pragma once

#include <functional>

#include "io/datasets/windows.h"

namespace concertina {

/// Verifies the tokens, then searches all positions of the training text for blocks of each
/// held-out part (at most about 2^20, evenly spaced). A block is 128 bytes of text in lower case
/// without white space, or 32 tokens if the tokenizer is unknown. Throws Error{bad_input} if more
/// than data.most_overlap of the blocks of a part with separate files are found; otherwise warns if
/// any are. Text that was changed in every block is not detected. Keeps all cores of this process
/// busy for a time proportional to the text; uses about 16 MiB plus 16 MiB per core.
void verify_tokens(const WindowedTokens& parts, const std::function<void()>& progress);

}  // namespace concertina
