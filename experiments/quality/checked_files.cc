#include "experiments/quality/checked_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "experiments/run/planning.h"
#include "io/datasets/split_files.h"
#include "io/datasets/table_columns.h"

namespace concertina {
namespace {

void require_table(const RunConfig& config) {
  const std::string& format = config.data.format;
  if (std::ranges::find(kTableFormats, format) != std::end(kTableFormats)) return;
  throw_input(
      fmt::format("data.format = \"{}\" is no table, whose rows could be looked at", format),
      "data.format", fmt::format("one of: {}", fmt::join(kTableFormats, ", ")));
}

}  // namespace

CheckedFiles::CheckedFiles(const RunConfig& config, const QualityOptions& options)
    : options_(options), context_(config.model.context), encoder_(tokenizer_of(config)) {
  require_table(config);
  const SplitFiles files = split_files(data_options(config, nullptr));
  for (std::size_t split = 0; split < files.of.size(); ++split)
    for (const std::string& path : files.of[split]) read(config, path, static_cast<Split>(split));
  FaultLimits limits{.near = options.near};
  if (options.counts_tokens) limits.tokens = static_cast<std::size_t>(context_);
  findings_ = find_faults(rows_, limits);
}

void CheckedFiles::read(const RunConfig& config, const std::string& path, Split split) {
  files_.push_back(path);
  const OptionValues& own = config.data.options;
  tables_.push_back(open_table(config.data.format, path,
                               {option<std::string>(own, "quotes"), option<bool>(own, "header")}));
  TableReader& table = *tables_.back();
  const TableColumns columns =
      find_columns(table.columns(), option<std::vector<std::string>>(own, "text_columns"),
                   option<std::string>(own, "label_column"), path + ":1", false);
  std::vector<std::size_t> wanted = columns.text;
  if (columns.label) wanted.push_back(*columns.label);
  has_labels_ = has_labels_ && columns.label.has_value();
  table.select(wanted);
  for (bool more = true; more;) {
    RowCells row;
    CheckedRow checked;
    try {
      more = table.next(row);
      if (!more) break;
      checked = this->checked(row, columns.text.size(), columns.label.has_value());
    } catch (const Error& error) {
      if (error.code() != Exit::bad_input) throw;
      checked.broken = error.message();
    }
    checked.split = split;
    sources_.push_back({files_.size() - 1, row.line, row.raw});
    rows_.push_back(std::move(checked));
  }
}

CheckedRow CheckedFiles::checked(const RowCells& row, std::size_t texts, bool labelled) const {
  CheckedRow checked;
  std::size_t tokens = texts + 1;  // marks
  for (std::size_t i = 0; i < texts; ++i) {
    const CellText& cell = row.cells[i];
    if (cell.kind == CellText::Kind::nested) checked.broken = "a text is a list";
    checked.text[i] = cell.kind == CellText::Kind::missing ? std::string_view("") : cell.text;
    if (!options_.counts_tokens) continue;
    try {
      std::vector<std::int32_t> encoded;
      encoder_.encode(checked.text[i], encoded);
      tokens += encoded.size();
    } catch (const Error&) {  // of bytes that are no text, which is a fault of its own
    }
  }
  checked.tokens = tokens;
  if (!labelled) return checked;
  checked.label = row.cells.back().text;
  if (checked.label.empty()) checked.broken = "the label is empty";
  return checked;
}

std::string CheckedFiles::place_of(std::size_t row) const {
  return fmt::format("{}:{}", files_[sources_[row].file], sources_[row].line);
}

}  // namespace concertina
