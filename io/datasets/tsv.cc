// data.format = "tsv": one sentence or two and a class in a row, between tabs, as GLUE publishes
// its tasks; or with quotes around cells, as pandas and Excel write them.
#include "io/datasets/sentence_table.h"

namespace concertina::dataset_makers {

DatasetFormat tsv() {
  return {.make = [](const DataOptions& options) { return table_dataset("tsv", options); },
          .varies = rows_vary,
          .keys = kTsvKeys};
}

}  // namespace concertina::dataset_makers
