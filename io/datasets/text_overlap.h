// Whether the held-out parts of a long text repeat what is trained on: copies of a file, also with
// other line ends, indentation or case, links to it, files or rows that others were joined from. Of
// tables and images, Splits compares the items.
#pragma once

#include <functional>

#include "io/datasets/windows.h"

namespace concertina {

/// Verifies the tokens, and looks for blocks of each held-out part (about 2^20 of them at most,
/// evenly spaced) at every place of the training part. A block is 128 bytes of the text in lower
/// case and without white space, or 32 tokens where the tokenizer is not known. Throws an input
/// error where the part has files of its own and more than data.most_overlap of its blocks are
/// found; else it warns. Text that was changed in each block is not found. Takes time in proportion
/// to the text, on all cores of this process; some 16 MiB, and as much per core.
void verify_tokens(const WindowedTokens& parts, const std::function<void()>& progress);

}  // namespace concertina
