// Changes to a run's layout that a user requests, as keys that override the run's config.
// Invariant: they affect only how ranks share the work, not the results of training.
#pragma once

#include <string>

#include "experiments/config/config.h"

namespace concertina {

/// Returns `config` with the layout keys in `keys`, such as "parallel.pp=1 parallel.dp=2": keys of
/// [parallel] except the transport, and freeze.units. If `keys` sets any of pp, dp, chunks, spare
/// and layout, the rest of these are reset to their defaults. `place` names the source in errors,
/// such as "--to". Throws Error{bad_input} if there are other keys, or if validate() refuses the
/// result.
RunConfig with_layout_keys(RunConfig config, const std::string& keys, const std::string& place);

}  // namespace concertina
