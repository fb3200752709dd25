// Image operations that keep the size: those of RandAugment (Cubuk et al., 2020) and of
// torchvision's ColorJitter. Invariant: the result is byte-identical to that of Pillow as called by
// torchvision. Pixels from outside the image are 0, and interpolation is nearest-neighbor.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "io/images/picture.h"

namespace concertina {

/// The largest magnitude of RandAugment (31 bins in torchvision).
inline constexpr int kMostMagnitude = 30;

struct PictureOp {
  std::string_view name;  // name in torchvision
  bool is_signed = false;
  /// Returns the strength at `level` times the largest magnitude, for images with this side
  /// length; null if the operation has no strength.
  double (*strength)(double level, std::int64_t side) = nullptr;
  void (*apply)(Picture& picture, double strength) = nullptr;
};

/// Returns the operations of RandAugment in torchvision's order. If `is_signed`, `apply` also
/// accepts -strength. Brightness, Color, Contrast and Sharpness blend by the factor 1 + strength.
std::span<const PictureOp> picture_ops();
const PictureOp& picture_op(std::string_view name);

/// Returns the strength at `magnitude` in [0, kMostMagnitude] for `picture`.
double strength_of(const PictureOp& op, int magnitude, const Picture& picture);

/// Mirrors the image horizontally.
void mirror(Picture& picture);

}  // namespace concertina
