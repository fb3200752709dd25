// `concertina report --serve`: a page that follows a run or a study.
#pragma once

#include <cstdint>
#include <string>

namespace concertina {

/// Serves until the process is told to stop. `directory`: of a run or a study; empty: of the run in
/// runs/ that was written last. Returns the exit code. Throws Error{bad_input} if there is none.
int serve_report(const std::string& directory, std::uint16_t port);

}  // namespace concertina
