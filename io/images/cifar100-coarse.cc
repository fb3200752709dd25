// data.format = "cifar100-coarse": CIFAR-100's binary version, 20 coarse classes.
#include "io/images/cifar_records.h"

namespace concertina::dataset_makers {

DatasetFormat cifar100_coarse() {
  return image_format(
      [](const DataOptions& options) { return cifar_dataset(options, kCifar100Labels, 0); });
}

}  // namespace concertina::dataset_makers
