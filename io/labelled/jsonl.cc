// data.format = "jsonl": sentences and classes as JSON lines, with an object per row.
#include "io/labelled/sentence_table.h"

namespace concertina::dataset_makers {

DatasetFormat jsonl() {
  return table_format({});
}

}  // namespace concertina::dataset_makers
