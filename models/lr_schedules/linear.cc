// Linear decay from the peak to `min` (torch.optim.lr_scheduler.LinearLR).
#include "models/lr_schedule.h"

namespace concertina::lr_shapes {

LrShape linear() {
  return {.fraction = [](const LrPoint& at, const OptionValues&) {
    return 1 - (1 - at.min) * at.progress;
  }};
}

}  // namespace concertina::lr_shapes
