// A straight line from the peak down to `min` (torch.optim.lr_scheduler.LinearLR).
#include "models/lr_schedule.h"

namespace concertina::lr_shapes {
namespace {

double linear_fraction(const LrPoint& at, const OptionValues&) {
  return 1 - (1 - at.min) * at.progress;
}

}  // namespace

LrShape linear() {
  return {.fraction = linear_fraction};
}

}  // namespace concertina::lr_shapes
