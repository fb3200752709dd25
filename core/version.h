// The source that this program was built from, for results, traces, checkpoints and --version.
#pragma once

#include <string>
#include <string_view>

namespace concertina {

struct Version {
  std::string_view number;    // of the project, in meson.build
  std::string_view commit;    // as `git describe --always --dirty` has it; "unknown" without Git
  std::string_view compiler;  // name and version
};

/// The version of the running program. Two programs with equal `number` and `commit` are built from
/// the same sources unless `commit` ends with "-dirty" or is "unknown".
const Version& program_version();

/// The version on one line: "0.1.0 (b264435a1c2d, g++ 12.2.0)".
std::string version_line();

}  // namespace concertina
