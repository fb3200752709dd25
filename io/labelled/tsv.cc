// data.format = "tsv": one or two sentences and a class per row, separated by tabs, as in GLUE; or
// with quoted cells, as written by pandas and Excel.
#include "io/labelled/sentence_table.h"
#include "io/tables/table.h"

namespace concertina::dataset_makers {

DatasetFormat tsv() {
  return table_format(joined(
      {header_option(),
       {choice("quotes", kQuotesNames[0],
               "whether double quotes enclose cells of a tsv or are text; auto: they enclose "
               "cells if all cells that begin with one are correctly quoted and at least one cell "
               "requires quotes or is a column name",
               {std::begin(kQuotesNames), std::end(kQuotesNames)})}}));
}

}  // namespace concertina::dataset_makers
