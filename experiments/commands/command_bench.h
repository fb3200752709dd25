// `concertina bench`: figures of this machine, each a ratio inside one run.
#pragma once

#include "experiments/commands/command.h"

namespace concertina {

Runner add_bench(CLI::App& app);

}  // namespace concertina
