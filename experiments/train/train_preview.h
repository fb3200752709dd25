// The output of `train --dry-run`: what the launch would do, without running a step.
#pragma once

#include <string>

#include "experiments/train/train_launch.h"

namespace concertina {

/// The human-readable preview of an open launch; on rank 0. Without a costs.json in the run, the
/// step time is predicted from matrix products, whose rate is measured for about a second.
std::string train_preview(const TrainLaunch& launch);

}  // namespace concertina
