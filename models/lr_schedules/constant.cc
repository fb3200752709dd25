// The peak rate until the end. `min` is not used.
#include "models/lr_schedule.h"

namespace concertina::lr_shapes {

LrShape constant() {
  return {.fraction = [](const LrPoint&, const OptionValues&) { return 1.0; }};
}

}  // namespace concertina::lr_shapes
