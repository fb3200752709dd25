// data.format = "csv": sentences and classes as comma-separated values (RFC 4180).
#include "io/labelled/sentence_table.h"

namespace concertina::dataset_makers {

DatasetFormat csv() {
  return table_format(header_option());
}

}  // namespace concertina::dataset_makers
