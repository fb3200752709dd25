// data.format = "jsonl": the same in JSON lines: an object a row.
#include "io/labelled/sentence_table.h"

namespace concertina::dataset_makers {

DatasetFormat jsonl() {
  return table_format({});
}

}  // namespace concertina::dataset_makers
