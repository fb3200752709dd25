// data.format = "jsonl": the same in JSON lines: an object a row.
#include "io/datasets/sentence_table.h"

namespace concertina::dataset_makers {

DatasetFormat jsonl() {
  return {.make = [](const DataOptions& options) { return table_dataset("jsonl", options); },
          .varies = rows_vary,
          .keys = kTableKeys};
}

}  // namespace concertina::dataset_makers
