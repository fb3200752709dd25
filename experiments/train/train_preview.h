// The output of `train --dry-run`: what the launch would do, without a step.
#pragma once

#include <string>

#include "experiments/train/train_launch.h"

namespace concertina {

/// The preview of an open launch, in lines for a person; on rank 0. Where the run has no costs.json
/// the step is predicted from matrix products, whose rate is measured for about a second.
std::string train_preview(const TrainLaunch& launch);

}  // namespace concertina
