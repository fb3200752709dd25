// The name of this host.
#pragma once

#include <string>

namespace concertina {

/// As gethostname(2) has it; "unknown" where that fails.
std::string host_name();

}  // namespace concertina
