// Creates a run that is not trained yet from weights that exist.
#pragma once

#include "experiments/launch/launch.h"

namespace concertina {

/// Creates the run that the config of `launch` names, with the trainer's weights as a checkpoint at
/// step 0. Throws Error{bad_input} about `out` if the run exists. Collective.
void save_new_run(Launch& launch, const std::string& out);

}  // namespace concertina
