// Sentences, or pairs of them, and their classes, from tables; the formats of tables.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "io/datasets/split_files.h"

namespace concertina {

/// Fields tokens, types, lengths, and where there are labels, or the task needs them, label, or
/// scores where options.targets says so; with a class per word it is tagged_words(). A sample that
/// is too long is cut as truncate_pair() says. Input errors: as of LabelledRows, number_classes(),
/// read_scores(), read_label_sets() and split_items(); a label that is a list; a label of held-out
/// files that none has to train on; a sample without room for the marks.
std::unique_ptr<Dataset> sentence_table(std::string_view format, const DataOptions& options);

/// The rows of a table as data.documents says: that, or table_text().
std::unique_ptr<Dataset> table_dataset(std::string_view format, const DataOptions& options);
/// As windows_vary(), where rows are documents of one long text.
std::optional<Variation> rows_vary(const DataOptions& options);

/// The options of all tables, and of those whose first row may have names.
std::vector<Option> table_options();
std::vector<Option> header_option();
/// The format of a table with these options.
DatasetFormat table_format(std::unique_ptr<Dataset> (*make)(const DataOptions& options),
                           std::vector<Option> options);

}  // namespace concertina
