// Layouts, without their frozen units, as JSON in checkpoints and traces: [{microbatches: [0, 4],
// stages: [...]}, ...].
#pragma once

#include <nlohmann/json.hpp>

#include "parallel/plan/layout.h"

namespace concertina {

/// A stage is {rank, units: [first, last]} as in parallel.layout, or, in a trace, which has many
/// stages, [rank, first, last].
enum class StageForm { named, brief };

nlohmann::ordered_json to_json(const Layout& layout, StageForm form);
/// Parses both forms. Throws nlohmann::json::exception for anything else.
Layout layout_from(const nlohmann::json& pipelines);

}  // namespace concertina
