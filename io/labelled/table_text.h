// The rows of tables as the documents of one long text.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "io/labelled/labelled_rows.h"

namespace concertina {

/// What follows each document that is a row: the tokenizer's end of text; without one its mark
/// between sentences, else a line break.
std::vector<std::int32_t> end_of_row(const Tokenizer& tokenizer);

/// The rows of all files, one after the other, which have one text each; `counts`: of each split's
/// own files. Input errors: as of LabelledRows; two columns of text.
LabelledRows rows_of(const DataOptions& options, std::array<std::uint64_t, 3>& counts);

/// A document is a row's text, and end_of_row(). Rows without text are left out. Which rows are
/// held out, split_items() says; those of a split follow each other in the order of the files, and
/// are cut into samples as other long texts are, or packed into them (io/datasets/packed.h). All
/// tokens are in memory, 4 bytes each. Input errors: as of rows_of(), split_items() and
/// windowed_dataset(); a text that the tokenizer does not read.
std::unique_ptr<Dataset> table_text(const DataOptions& options);

}  // namespace concertina
