// data.format = "csv": the same in rows of comma-separated values (RFC 4180).
#include "io/datasets/sentence_table.h"

namespace concertina::dataset_makers {

DatasetFormat csv() {
  return {.make = [](const DataOptions& options) { return table_dataset("csv", options); },
          .varies = rows_vary,
          .keys = kHeaderTableKeys};
}

}  // namespace concertina::dataset_makers
