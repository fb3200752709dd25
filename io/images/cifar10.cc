// data.format = "cifar10": CIFAR-10's binary version, 10 classes.
#include "io/images/cifar_records.h"

namespace concertina::dataset_makers {

DatasetFormat cifar10() {
  return image_format(
      [](const DataOptions& options) { return cifar_dataset(options, kCifar10Labels, 0); });
}

}  // namespace concertina::dataset_makers
