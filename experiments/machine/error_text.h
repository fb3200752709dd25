// The one form in which the program says an Error, and text that is safe to print.
#pragma once

#include <string>

#include "core/error.h"

namespace concertina {

/// `text` with \xNN in place of bytes that steer a terminal: what a broken input or an untrained
/// model says may hold any.
std::string terminal_text(const std::string& text);

/// "concertina: error: WHAT\n  at: WHERE\n  try: FIX\n"; names the rank unless it is negative.
std::string error_text(const Error& error, int rank);

}  // namespace concertina
