// Another layout for a run, as a person asks for it: keys on top of the run's config.
// Invariant: what is trained stays the same; only how ranks share it may differ.
#pragma once

#include <string>

#include "experiments/config/config.h"

namespace concertina {

/// `config` with the layout that `keys` ask for: "parallel.pp=1 parallel.dp=2". They are keys of
/// [parallel], but for the transport, and freeze.units. Where any of pp, dp, chunks, spare and
/// layout is among them, those that are not are as if no file had set them. `place` is for errors:
/// "--to". Throws Error{bad_input} for other keys, and for what validate() refuses.
RunConfig with_layout_keys(RunConfig config, const std::string& keys, const std::string& place);

}  // namespace concertina
