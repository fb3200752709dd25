// data.format = "jsonl": the same in JSON lines: an object a row.
#include "io/datasets/sentence_table.h"

namespace concertina::dataset_makers {

DatasetFormat jsonl() {
  return {.make = [](const DataOptions& options) { return sentence_table("jsonl", options); },
          .keys = kTableKeys};
}

}  // namespace concertina::dataset_makers
