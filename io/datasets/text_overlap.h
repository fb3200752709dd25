// Whether the held-out parts of a long text repeat what is trained on: copies of a file, links to
// it, files that others were joined from. Of tables and images, Splits compares the items.
#pragma once

#include <functional>

#include "io/datasets/windows.h"

namespace concertina {

/// Verifies the tokens, and where they are not items of a split, looks for blocks of each held-out
/// part (128 bytes, or 32 tokens; at most 2^20 of them, evenly spaced) at every place of the
/// training part. Throws an input error where the part has files of its own and more than
/// data.most_overlap of its blocks are found; else it warns. Text that was changed in each block is
/// not found. Takes time in proportion to the text, on all cores of this process.
void verify_tokens(const WindowedTokens& parts, const std::function<void()>& progress);

}  // namespace concertina
