// A study's table as text, and in the markup of other programs.
// Invariants: pure; figures of a column have the same number of decimals; markup is well-formed,
// whatever is in names, values and errors.
#pragma once

#include <string>
#include <vector>

#include "experiments/results/study_table.h"

namespace concertina {

/// The lines of a cell: mean and deviation; interval; difference to the baseline.
using CellLines = std::vector<std::string>;

/// How a format writes what it, or its character set, has words for.
struct TableWords {
  std::string plus_minus, delta, minus, less, star, best_before, best_after;
  std::string (*escape)(const std::string&);
  bool aligned = false;  // by blanks: means of a column end, and their lines begin, at one place
};

/// The titles of the columns: groups, n, metrics with an arrow for the better way.
std::vector<std::string> table_heads(const StudyTable& table);
/// All cells of all rows. The figures are in `words`; what is text went through its `escape`.
std::vector<std::vector<CellLines>> table_cells(const StudyTable& table, const TableWords& words,
                                                TableCells kind);
/// The means of a metric as their cells have them, by row.
std::vector<std::string> printed_means(const StudyTable& table, std::size_t metric);
/// Head and lines of a small table below the groups: rungs of a search, tests of equivalence,
/// front.
using SectionRows = std::vector<std::vector<std::string>>;
std::vector<SectionRows> table_sections(const StudyTable& table);
/// Lines of the highest of these cells.
std::size_t height_of(const std::vector<CellLines>& cells);
/// "study x: 3 groups, 8 of 9 trials done".
std::string table_summary(const StudyTable& table);

std::string table_markdown(const StudyTable& table, TableCells cells);
/// The table as LaTeX that needs \usepackage{booktabs}.
std::string table_latex(const StudyTable& table, TableCells cells);
/// A table and a list of notes, without a page around them.
std::string table_html(const StudyTable& table, TableCells cells);

}  // namespace concertina
