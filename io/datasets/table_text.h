// The rows of tables as the documents of one long text.
#pragma once

#include <memory>
#include <string_view>

#include "io/datasets/dataset.h"

namespace concertina {

/// A document is a row's text, and after it the tokenizer's end of text; without one its mark
/// between sentences, else a line break. Rows without text are left out. Which rows are held out,
/// split_items() says; those of a split follow each other in the order of the files, and are cut
/// into samples as other long texts are, or packed into them (io/datasets/packed.h). All tokens are
/// in memory, 4 bytes each. Input errors: as of LabelledRows, split_items() and windowed_dataset();
/// two columns of text; a text that the tokenizer does not read.
std::unique_ptr<Dataset> table_text(std::string_view format, const DataOptions& options);

}  // namespace concertina
