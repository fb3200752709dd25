// data.format = "cifar100": CIFAR-100's binary version, 100 fine classes.
#include "io/images/cifar_records.h"

namespace concertina::dataset_makers {

DatasetFormat cifar100() {
  return image_format(
      [](const DataOptions& options) { return cifar_dataset(options, kCifar100Labels, 1); });
}

}  // namespace concertina::dataset_makers
