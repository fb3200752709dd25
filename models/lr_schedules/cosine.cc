// Half a cosine from the peak down to `min` (SGDR, Loshchilov & Hutter 2017, equation 5).
#include <cmath>
#include <numbers>

namespace concertina::lr_shapes {

double cosine(double progress, double min) {
  return min + (1 - min) * (1 + std::cos(std::numbers::pi * progress)) / 2;
}

}  // namespace concertina::lr_shapes
