// The source version of this program, for results, traces, checkpoints and --version.
#pragma once

#include <string>
#include <string_view>

namespace concertina {

struct Version {
  std::string_view number;    // project version, from meson.build
  std::string_view commit;    // from `git describe --always --dirty`; "unknown" without Git
  std::string_view compiler;  // name and version
};

/// Returns the version of the running program. Equal `number` and `commit` mean the same sources,
/// unless `commit` ends with "-dirty" or is "unknown".
const Version& program_version();

/// Returns the version on one line: "0.1.0 (b264435a1c2d, g++ 12.2.0)".
std::string version_line();

}  // namespace concertina
