// The format of a file by its first bytes, where a file without a header was expected.
#pragma once

#include <string_view>

namespace concertina {

/// "an array of NumPy", "an archive", "text", ...; empty: nothing that is known. `start`: up to
/// some KB; it is told to be text from 256 bytes on.
std::string_view known_format(std::string_view start);

}  // namespace concertina
