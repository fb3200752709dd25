// The rows of a run's tables as JSON, sound or not, in which the Python package looks for faults.
// Invariant: each row of each file is there once, in order; what can be read is read, and what
// cannot be is a row too.
#pragma once

#include <nlohmann/json.hpp>

#include "experiments/config/config.h"

namespace concertina {

/// The rows of data.files, data.validation_files and data.test_files. `counts_tokens`: those of
/// each row by data.tokenizer, against model.context. Texts are as their bytes are, each byte as
/// the character of this number (Latin-1), but `folded` (texts in lower case, with single spaces:
/// what overlap is found by), which is UTF-8. Input errors: data.format is not a table; a file that
/// cannot be opened, or has no column of text.
nlohmann::ordered_json table_rows(const RunConfig& config, bool counts_tokens);

}  // namespace concertina
