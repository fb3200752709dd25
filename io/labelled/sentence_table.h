// Sentences or sentence pairs and their classes from tables, and the table formats.
#pragma once

#include <vector>

#include "io/datasets/split_files.h"

namespace concertina {

/// Returns a table format with its `own` options and those of all tables. The rows become one long
/// text through table_text() or, if data.documents is "alone", samples with the fields tokens,
/// types, lengths and, if there are labels or the task needs them, label, or scores depending on
/// options.targets; with a class per word, see tagged_words(). Long samples are truncated by
/// truncate_pair(). Throws Error{bad_input} like LabelledRows, number_classes(), read_scores(),
/// read_label_sets() and split_items(), for a label that is a list, a held-out label that is not
/// trained on, and samples without space for marks.
DatasetFormat table_format(std::vector<Option> own);
/// Returns the option for tables whose first row may contain column names.
std::vector<Option> header_option();

}  // namespace concertina
