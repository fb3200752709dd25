// Sentences, or pairs of them, and their classes, from tables; the formats of tables.
#pragma once

#include <vector>

#include "io/datasets/split_files.h"

namespace concertina {

/// The format of a table, with its `own` options besides those of all tables. Its rows are one long
/// text as of table_text(), or where data.documents says alone: fields tokens, types, lengths, and
/// where there are labels, or the task needs them, label, or scores where options.targets says so;
/// with a class per word it is tagged_words(). A sample that is too long is cut as truncate_pair()
/// says. Input errors: as of LabelledRows, number_classes(), read_scores(), read_label_sets() and
/// split_items(); a label that is a list; a label of held-out files that none has to train on; a
/// sample without room for the marks.
DatasetFormat table_format(std::vector<Option> own);
/// The option of tables whose first row may have names.
std::vector<Option> header_option();

}  // namespace concertina
