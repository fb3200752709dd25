// The rows of a run's tables as JSON, valid or not, which the Python package searches for faults.
// Invariant: each row of each file appears once, in order; rows that cannot be read are included.
#pragma once

#include <nlohmann/json.hpp>

#include "experiments/config/config.h"

namespace concertina {

/// The rows of data.files, data.validation_files and data.test_files. `counts_tokens`: counts the
/// tokens of each row with data.tokenizer, for comparison with model.context. Texts map each byte
/// to the character with that number (Latin-1), except `folded` (lower-case text with single
/// spaces, for finding overlap), which is UTF-8. Input errors: data.format is not a table format; a
/// file cannot be opened or has no text column.
nlohmann::ordered_json table_rows(const RunConfig& config, bool counts_tokens);

}  // namespace concertina
