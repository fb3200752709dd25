// data.format = "cifar100": files of CIFAR-100's binary version, the 100 fine classes.
#include "io/datasets/cifar_records.h"

namespace concertina::dataset_makers {

DatasetFormat cifar100() {
  return {
      .make = [](const DataOptions& options) { return cifar_dataset(options, kCifar100Labels, 1); },
      .varies = images_vary,
      .keys = kImageKeys,
      .binary = true};
}

}  // namespace concertina::dataset_makers
