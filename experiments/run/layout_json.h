// Layouts as JSON, in checkpoints and traces: [{microbatches: [0, 4], stages: [...]}, ...], without
// what is frozen.
#pragma once

#include <nlohmann/json.hpp>

#include "parallel/plan/layout.h"

namespace concertina {

/// A stage is {rank, units: [first, last]}, as parallel.layout has it; in a trace, which has many,
/// [rank, first, last].
enum class StageForm { named, brief };

nlohmann::ordered_json to_json(const Layout& layout, StageForm form);
/// Reads either form. Throws nlohmann::json::exception where it is another.
Layout layout_from(const nlohmann::json& pipelines);

}  // namespace concertina
