// What the first bytes of a file say that it is, where it is asked for something without a header.
#pragma once

#include <string_view>

namespace concertina {

/// "an array of NumPy", "an archive", "text", ...; empty: nothing that is known. `start`: up to
/// some KB; it is told to be text from 256 bytes on.
std::string_view known_format(std::string_view start);

}  // namespace concertina
