// The SHA-256 of a whole text, cached in a file for as long as the text's files are unchanged.
#pragma once

#include <functional>
#include <string>

#include "io/corpus.h"

namespace concertina {

/// Returns corpus.whole_sha256(), or the cached value in the file `memory` if the stamps match.
/// Writes the cache if `remember` is set and if possible (a failed write is not an error), except
/// for files modified in the last two seconds: the file system's clock may be too coarse to
/// distinguish two writes. Throws Error{failure} if the text changes while it is being read.
/// `check` is called if there is no cached value; if it throws, nothing is cached.
std::string remembered_sha256(const Corpus& corpus, const std::string& memory,
                              const std::function<void()>& progress = {}, bool remember = true,
                              const std::function<void()>& check = {});

}  // namespace concertina
