// README.md of an export: what the model is, how it was trained and what it reached.
#pragma once

#include <string>

#include "experiments/hugging_face/stored_run.h"

namespace concertina {

/// The text; the licence is left to fill in. `step`: that the weights are of. Figures are those
/// that the run has kept of this step.
std::string model_card(const StoredRun& run, std::int64_t step);

}  // namespace concertina
