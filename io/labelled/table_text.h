// Rows of tables as documents of one long text.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "io/labelled/labelled_rows.h"

namespace concertina {

/// Returns the tokens that follow each row: the tokenizer's end-of-text token, its separator, or a
/// line break.
std::vector<std::int32_t> end_of_row(const Tokenizer& tokenizer);

/// Returns the rows of all files, which must have one text each. `counts` is set to the number of
/// rows in each split's files. Throws Error{bad_input} like LabelledRows, and for two text columns.
LabelledRows rows_of(const DataOptions& options, std::array<std::uint64_t, 3>& counts);

/// A document is the text of a row followed by end_of_row(). Rows without text are skipped.
/// split_items() chooses the held-out rows. The rows of a split are concatenated in file order and
/// split into samples like other long texts, or packed (io/datasets/packed.h). All tokens are in
/// memory, 4 bytes each. Throws Error{bad_input} like rows_of(), split_items() and
/// windowed_dataset(), and for a text that the tokenizer rejects.
std::unique_ptr<Dataset> table_text(const DataOptions& options);

}  // namespace concertina
