// Random augmentation of training images. Invariant: the random numbers of a sample are a pure
// function of (seed, epoch, sample), and those for one option do not depend on the other options.
#pragma once

#include "io/images/picture.h"

namespace concertina {

struct SampleAt;  // io/datasets/dataset.h

/// Values of the keys of [data] with the same names.
struct Augmentation {
  int crop = 0;       // maximum shift in pixels in each direction, padded with zeros
  bool flip = false;  // whether to mirror at random
  double scale = 1;   // smallest share of the area to crop to
  double rotate = 0;  // maximum rotation in degrees in each direction
  double brightness = 0, contrast = 0, saturation = 0;  // factors are in [1 - x, 1 + x]
  int randaugment = 0;                                  // number of operations of picture_ops()
  int magnitude = 9;                                    // of their effect, at most kMostMagnitude
};

/// Returns a random box with a share of the area in [least, 1] and width / height in [3/4, 4/3]
/// (torchvision's RandomResizedCrop), or, after ten failed attempts, the largest central one.
PictureBox random_part(const Picture& picture, double least, const SampleAt& at);

/// Returns the augmented image at `at`, in the size of fitted(): cropped, shifted, mirrored,
/// rotated, recolored, and then changed by RandAugment.
Picture augmented(Picture picture, const Augmentation& how, const PictureFit& fit,
                  const SampleAt& at);

}  // namespace concertina
