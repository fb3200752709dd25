// `concertina train`: the training loop.
#pragma once

#include "experiments/command.h"

namespace concertina {

Runner add_train(CLI::App& app);

}  // namespace concertina
