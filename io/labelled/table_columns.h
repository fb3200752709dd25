// The text and label columns of a table.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace concertina {

/// Column indices in a file.
struct TableColumns {
  std::vector<std::size_t> text{};  // one, or two for a pair
  std::optional<std::size_t> label{};
  std::vector<std::string> ignored{};  // names of the other columns
};

/// Returns the columns named by `text` (one or two names) and `label`. Empty names stand for the
/// names in the published GLUE tasks and other common names. Throws Error{bad_input} with `where`
/// if a column is missing, duplicated or ambiguous. If `needs_label` is false, a missing or
/// ambiguous label column is ignored.
TableColumns find_columns(std::span<const std::string> names, const std::vector<std::string>& text,
                          const std::string& label, const std::string& where,
                          bool needs_label = true);

}  // namespace concertina
