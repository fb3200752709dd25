// A study's table in the markup of other programs.
// Invariant: the text is well-formed, whatever is in names, values and errors.
#pragma once

#include <string>

#include "experiments/results/study_table.h"

namespace concertina {

std::string table_markdown(const StudyTable& table, TableCells cells);
/// The table as LaTeX that needs \usepackage{booktabs}.
std::string table_latex(const StudyTable& table, TableCells cells);
/// A table and a list of notes, without a page around them.
std::string table_html(const StudyTable& table, TableCells cells);

}  // namespace concertina
