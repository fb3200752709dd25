// `concertina plan`: what a run would hold, take and wait for, at any world size.
#pragma once

#include "experiments/commands/command.h"

namespace concertina {

Runner add_plan(CLI::App& app);

}  // namespace concertina
