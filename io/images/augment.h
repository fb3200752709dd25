// How an image of training differs by epoch.
// Invariant: what is drawn for a sample is a pure function of (seed, epoch, sample), and what one
// option draws does not depend on the others.
#pragma once

#include "io/images/picture.h"

namespace concertina {

struct SampleAt;  // io/datasets/dataset.h

/// The keys of [data] of the same names.
struct Augmentation {
  int crop = 0;  // pixels that the image is moved at most, each way, with pixels of 0 around it
  bool flip = false;  // whether it is mirrored, by chance
  double scale = 1;   // least share of its area that is read
  double rotate = 0;  // degrees that it is turned at most, each way
  double brightness = 0, contrast = 0, saturation = 0;  // factors are drawn from 1 -+ this
  int randaugment = 0;                                  // operations of picture_ops()
  int magnitude = 9;                                    // of these, at most kMostMagnitude
};

/// The part of an image of which the area is a share in [least, 1] and width / height in [3/4, 4/3]
/// (RandomResizedCrop of torchvision): drawn, or after ten vain draws the largest in the middle.
PictureBox random_part(const Picture& picture, double least, const SampleAt& at);

/// The image as it is seen at `at`, in the size of fitted(): a part of it, moved, mirrored, turned,
/// in other colours, and then by RandAugment.
Picture augmented(Picture picture, const Augmentation& how, const PictureFit& fit,
                  const SampleAt& at);

}  // namespace concertina
