// Reads plain or gzip files, regardless of their names.
#pragma once

#include <string>

namespace concertina {

/// Returns the whole file, decompressed if it has a gzip header. Throws Error{bad_input} if it has
/// more than 4 GiB, is damaged or truncated.
std::string read_maybe_gzip(const std::string& path);

}  // namespace concertina
