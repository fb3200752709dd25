#include "core/optimizer.h"

#include <algorithm>

namespace concertina {

float clip_scale(double norm, double clip) {
  return clip <= 0 ? 1.0F : static_cast<float>(std::min(1.0, clip / (norm + 1e-6)));
}

}  // namespace concertina
