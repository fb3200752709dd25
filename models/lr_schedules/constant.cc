// The peak to the end; `min` is not used.
#include "models/lr_schedule.h"

namespace concertina::lr_shapes {
namespace {

double constant_fraction(const LrPoint&, const OptionValues&) {
  return 1;
}

}  // namespace

LrShape constant() {
  return {.fraction = constant_fraction};
}

}  // namespace concertina::lr_shapes
