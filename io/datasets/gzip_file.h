// Files that are plain or gzip, whatever their names say.
#pragma once

#include <string>

namespace concertina {

/// The whole of a file, decompressed where it begins as gzip does. Input errors: more than 4 GiB,
/// damaged or cut short.
std::string read_maybe_gzip(const std::string& path);

}  // namespace concertina
