#include "io/labelled/labelled_rows.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"
#include "io/datasets/content_hash.h"
#include "io/labelled/table_columns.h"

namespace concertina {
namespace {

std::string columns_line(const TableReader& table, const TableColumns& columns) {
  std::vector<std::string> texts;
  for (const std::size_t column : columns.text) texts.push_back(table.columns()[column]);
  std::string line = fmt::format("columns     {}", fmt::join(texts, ", "));
  if (columns.label) line += fmt::format("; label: {}", table.columns()[*columns.label]);
  if (!columns.ignored.empty())
    line += fmt::format("; ignored: {}", fmt::join(columns.ignored, ", "));
  if (!table.manner().empty()) line += fmt::format("; {}", table.manner());
  return escape_bytes(line) + "\n";
}

}  // namespace

LabelledRows::LabelledRows(const DataOptions& options)
    : format_(options.format),
      table_{options.own<std::string>("quotes"), options.own<bool>("header")},
      text_columns_(options.own<std::vector<std::string>>("text_columns")),
      label_column_(options.own<std::string>("label_column")),
      many_(options.targets == TargetKind::labels),
      needs_label_(options.labelled),
      reads_label_(options.documents == "alone") {}

TableColumns LabelledRows::columns_of(const TableReader& table, const std::string& path,
                                      bool may_lack) const {
  const bool lists = many_ && label_column_.empty() &&
                     std::ranges::find(table.columns(), "labels") != table.columns().end();
  const bool lacks_own =
      may_lack && std::ranges::find(table.columns(), label_column_) == table.columns().end();
  TableColumns columns = find_columns(table.columns(), text_columns_,
                                      lists       ? "labels"
                                      : lacks_own ? ""
                                                  : label_column_,
                                      path + ":1", needs_label_ && !may_lack);
  if (!reads_label_ && columns.label) {
    columns.ignored.push_back(table.columns()[*columns.label]);
    columns.label.reset();
  }
  return columns;
}

void LabelledRows::read(const std::string& path, bool may_lack) {
  starts_.push_back({path, rows_.size()});
  files_.push_back(open_table(format_, path, table_));
  TableReader& table = *files_.back();
  const TableColumns columns = columns_of(table, path, may_lack);
  const bool pair = columns.text.size() == 2, labelled = columns.label.has_value();
  const bool lacks = may_lack && needs_label_ && labelled_ && !labelled;
  if ((files_.size() > 1 && labelled != labelled_ && !lacks) || (unlabelled_from_ && !lacks))
    throw_input("only some of the files have labels", path + ":1", "use files of the same kind");
  if (lacks && !unlabelled_from_) unlabelled_from_ = rows_.size();
  labelled_ = labelled || lacks;
  if (files_.size() > 1 && pair != pair_)
    throw_input("some files have one sentence per row, others two", path + ":1",
                "use files of the same kind");
  pair_ = pair;
  std::vector<std::size_t> wanted = columns.text;
  if (labelled) wanted.push_back(*columns.label);
  table.select(wanted);
  RowCells row;
  while (table.next(row)) {
    LabelledRow read{.line = row.line};
    if (labelled) read.label = row.cells.back();
    for (std::size_t i = 0; i < columns.text.size(); ++i) {
      const CellText& cell = row.cells[i];
      if (cell.kind != CellText::Kind::value)
        throw_input(fmt::format("'{}' is {}, expected text", table.columns()[columns.text[i]],
                                cell.kind == CellText::Kind::missing ? "missing" : "a list"),
                    fmt::format("{}:{}", path, row.line), "add text to each row");
      read.text[i] = cell.text;
    }
    rows_.push_back(read);
  }
  if (const std::string line = columns_line(table, columns);
      summary_.find(line) == std::string::npos)
    summary_ += line;
}

std::string LabelledRows::place_of(std::size_t row) const {
  std::size_t file = starts_.size() - 1;
  while (starts_[file].row > row) --file;
  return fmt::format("{}:{}", starts_[file].file, rows_[row].line);
}

std::uint64_t row_hash(const LabelledRow& row, bool pair) {
  std::string folded;
  append_folded(row.text[0], folded);
  if (pair) append_folded(row.text[1], folded += '\t');
  return content_hash(folded);
}

std::uint64_t exact_hash(const LabelledRow& row) {
  return content_hash(fmt::format("{} {}\n{}\n{}\n{}", row.text[0].size(), row.text[1].size(),
                                  row.text[0], row.text[1], row.label.text));
}

}  // namespace concertina
