// `concertina train`: the training loop.
#pragma once

#include "experiments/commands/command.h"

namespace concertina {

Runner add_train(CLI::App& app);

}  // namespace concertina
