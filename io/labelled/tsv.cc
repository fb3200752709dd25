// data.format = "tsv": one sentence or two and a class in a row, between tabs, as GLUE publishes
// its tasks; or with quotes around cells, as pandas and Excel write them.
#include "io/labelled/sentence_table.h"
#include "io/tables/table.h"

namespace concertina::dataset_makers {

DatasetFormat tsv() {
  return table_format(joined(
      {header_option(),
       {choice("quotes", kQuotesNames[0],
               "whether double quotes enclose cells of a tsv, or are text; auto: they enclose "
               "where all cells that begin with one are quoted soundly, and one of them needs it "
               "or is a name",
               {std::begin(kQuotesNames), std::end(kQuotesNames)})}}));
}

}  // namespace concertina::dataset_makers
