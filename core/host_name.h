// The name of this host.
#pragma once

#include <string>

namespace concertina {

/// Returns the result of gethostname(2), or "unknown" if that fails.
std::string host_name();

}  // namespace concertina
