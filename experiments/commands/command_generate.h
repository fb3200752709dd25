// `concertina generate`: text from a run's newest checkpoint.
#pragma once

#include "experiments/commands/command.h"

namespace concertina {

Runner add_generate(CLI::App& app);

}  // namespace concertina
