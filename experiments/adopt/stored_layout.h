// The layout that a policy chose, as a checkpoint keeps it.
// Invariant: what is read is as free as a config's: assign() says whether it fits.
#pragma once

#include <nlohmann/json.hpp>

#include "parallel/generate/assign.h"

namespace concertina {

/// Keys: schedule (a name, or a path), spare, pipelines (of {microbatches, stages}, as
/// parallel.layout has them).
nlohmann::json layout_json(const Request& request, const Layout& layout);

/// `request` with what `stored` says in place of its grid, schedule and spare ranks. Throws
/// nlohmann::json::exception where that has another form.
Request with_stored_layout(Request request, const nlohmann::json& stored);

}  // namespace concertina
