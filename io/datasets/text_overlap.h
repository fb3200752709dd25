// Detects held-out text that repeats training text: copies of a file, even with different line
// ends, indentation or case, links to it, and files or rows from which others were joined. For
// tables and images, Splits compares items.
#pragma once

#include <functional>

#include "io/datasets/windows.h"

namespace concertina {

/// Verifies the tokens, then searches all positions of the training text for blocks of each
/// held-out part (at most about 2^20, evenly spaced). A block is 128 bytes of text in lower case
/// without white space, or 32 tokens if the tokenizer is unknown. Throws Error{bad_input} if a part
/// with separate files has more than data.most_overlap of its blocks in common; otherwise, it
/// warns. Text that was changed in every block is not detected. Takes time proportional to the text
/// on all cores of this process, and about 16 MiB plus 16 MiB per core.
void verify_tokens(const WindowedTokens& parts, const std::function<void()>& progress);

}  // namespace concertina
