// The SHA-256 of a whole text, computed once and remembered for as long as its files stay the same.
#pragma once

#include <functional>
#include <string>

#include "io/corpus.h"

namespace concertina {

/// corpus.whole_sha256(), or what the file `memory` remembers of it for files with these stamps.
/// Remembers it there where it can (a failure to write is no error), but not for files that changed
/// in the last two seconds: a file system's clock may be too coarse to tell two writes apart.
/// Nor where `remember` is false. A failure if the text changes while it is read. `check` is called
/// where nothing is remembered: what it throws leaves no memory.
std::string remembered_sha256(const Corpus& corpus, const std::string& memory,
                              const std::function<void()>& progress = {}, bool remember = true,
                              const std::function<void()>& check = {});

}  // namespace concertina
