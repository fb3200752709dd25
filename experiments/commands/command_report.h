// `concertina report`: one page with what a run's step was predicted to be, and what it was.
#pragma once

#include "experiments/commands/command.h"

namespace concertina {

Runner add_report(CLI::App& app);

}  // namespace concertina
