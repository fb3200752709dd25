// `concertina eval`: held-out loss of a run's newest checkpoint.
#pragma once

#include "experiments/commands/command.h"

namespace concertina {

Runner add_eval(CLI::App& app);

}  // namespace concertina
