// `concertina verify`: same bits at every layout, for a user's own model and schedule.
#pragma once

#include "experiments/commands/command.h"

namespace concertina {

Runner add_verify(CLI::App& app);

}  // namespace concertina
