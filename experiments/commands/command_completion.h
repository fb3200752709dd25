// `concertina completion`: scripts for bash and zsh, and the candidates that they ask for.
#pragma once

#include "experiments/commands/command.h"

namespace concertina {

Runner add_completion(CLI::App& app);

}  // namespace concertina
