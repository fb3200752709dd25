// Operations that change a picture of one size into another one: those of RandAugment (Cubuk et
// al., 2020) and the factors of torchvision's ColorJitter.
// Invariant: the bytes are those of Pillow by torchvision's transforms, pixels that come from
// outside are 0, and each is taken from the nearest one.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "io/images/picture.h"

namespace concertina {

/// The largest magnitude of RandAugment (torchvision's 31 bins).
inline constexpr int kMostMagnitude = 30;

struct PictureOp {
  std::string_view name;  // torchvision's
  bool is_signed = false;
  /// The strength of it at the share `level` of the largest magnitude, for pictures with such a
  /// side; null: it has none.
  double (*strength)(double level, std::int64_t side) = nullptr;
  void (*apply)(Picture& picture, double strength) = nullptr;
};

/// RandAugment's, in torchvision's order. Where they are signed, `apply` takes -strength too.
/// Those of colours (Brightness, Color, Contrast, Sharpness) blend by the factor 1 + strength.
std::span<const PictureOp> picture_ops();
const PictureOp& picture_op(std::string_view name);

/// The strength at `magnitude` in [0, kMostMagnitude] for `picture`.
double strength_of(const PictureOp& op, int magnitude, const Picture& picture);

/// Left and right change places.
void mirror(Picture& picture);

}  // namespace concertina
