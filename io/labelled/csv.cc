// data.format = "csv": the same in rows of comma-separated values (RFC 4180).
#include "io/labelled/sentence_table.h"

namespace concertina::dataset_makers {

DatasetFormat csv() {
  return table_format(header_option());
}

}  // namespace concertina::dataset_makers
