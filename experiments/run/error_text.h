// The one form in which the program says an Error.
#pragma once

#include <string>

#include "core/error.h"

namespace concertina {

/// "concertina: error: WHAT\n  at: WHERE\n  try: FIX\n"; names the rank unless it is negative.
std::string error_text(const Error& error, int rank);

}  // namespace concertina
