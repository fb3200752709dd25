// Tables whose cells may be enclosed in double quotes (RFC 4180). Such cells may contain
// separators, line breaks and doubled quotes. Blank lines are skipped.
#include <algorithm>
#include <deque>
#include <optional>

#include "io/tables/delimited_table.h"

namespace concertina {
namespace {

/// A cell in a text: bytes [begin, end) without the enclosing quotes.
struct CellSpan {
  std::size_t begin = 0, end = 0;
  bool quoted = false, doubled = false;  // enclosed in quotes; has doubled quotes inside
};

/// Why a row is invalid.
struct RowFault {
  const char* what = nullptr;
  bool ends_all = false;  // whether the next row cannot be found
};

/// Splits the row at `at` into cells, advances `at` past it and adds its lines to `lines`.
std::optional<RowFault> split_row(std::string_view text, char separator, std::size_t& at,
                                  std::size_t& lines, std::vector<CellSpan>& cells) {
  cells.clear();
  while (true) {
    CellSpan cell{.begin = at};
    if (at < text.size() && text[at] == '"') {
      cell = {.begin = at + 1, .quoted = true};
      for (++at;; ++at) {
        at = text.find('"', at);
        if (at == std::string_view::npos) return RowFault{"unclosed quote", true};
        if (at + 1 >= text.size() || text[at + 1] != '"') break;
        cell.doubled = true;
        ++at;
      }
      cell.end = at++;
    } else {
      const char stops[] = {separator, '\n', '\0'};
      at = std::min(text.find_first_of(std::string_view(stops, 2), at), text.size());
      cell.end = at;
      const bool ends_line = at == text.size() || text[at] == '\n';
      if (ends_line && cell.end > cell.begin && text[cell.end - 1] == '\r') --cell.end;
    }
    lines += static_cast<std::size_t>(
        std::count(text.begin() + static_cast<std::ptrdiff_t>(cell.begin),
                   text.begin() + static_cast<std::ptrdiff_t>(cell.end), '\n'));
    cells.push_back(cell);
    if (at < text.size() && text[at] == separator) {
      ++at;
      continue;
    }
    if (cell.quoted && text.substr(at).starts_with("\r\n")) ++at;
    if (at < text.size() && text[at] != '\n') {
      at = std::min(text.find('\n', at), text.size() - 1) + 1;
      ++lines;
      return RowFault{"text after a closing quote"};
    }
    ++at;
    ++lines;
    return std::nullopt;
  }
}

void skip_blank_lines(std::string_view text, std::size_t& at, std::size_t& lines) {
  while (at < text.size()) {
    const std::size_t end = text.substr(at).starts_with("\r\n") ? at + 1 : at;
    if (text[end] != '\n') return;
    at = end + 1;
    ++lines;
  }
}

class QuotedTable final : public DelimitedTable {
 public:
  QuotedTable(std::string path, std::string text, char separator, std::string manner)
      : DelimitedTable(std::move(path), std::move(text)),
        separator_(separator),
        manner_(std::move(manner)) {}

  std::string manner() const override { return manner_; }

 private:
  bool read_record(std::vector<std::string_view>& cells, RowCells& row) override {
    skip_blank_lines(text_, at_, line_);
    if (at_ >= text_.size()) return false;
    row.line = line_;
    const std::size_t begin = at_;
    const auto fault = split_row(text_, separator_, at_, line_, spans_);
    at_ = fault && fault->ends_all ? text_.size() : std::min(at_, text_.size());
    row.raw = raw_from(begin);
    if (fault)
      refuse(fault->what, row.line, "enclose cells in quotes, and double each quote inside them");
    cells.clear();
    for (const CellSpan& cell : spans_) cells.push_back(unescaped(cell));
    return true;
  }

  std::string_view unescaped(const CellSpan& cell) {
    const std::string_view text = std::string_view(text_).substr(cell.begin, cell.end - cell.begin);
    if (!cell.doubled) return text;
    std::string& one = unescaped_.emplace_back();
    for (std::size_t i = 0; i < text.size(); ++i) {
      one += text[i];
      if (text[i] == '"') ++i;
    }
    return one;
  }

  char separator_;
  std::string manner_;
  std::vector<CellSpan> spans_;
  std::deque<std::string> unescaped_;  // referenced by cells; elements never move
};

}  // namespace

bool has_quoted_cells(std::string_view text, char separator) {
  std::size_t at = 0, lines = 0, columns = 0;
  bool needed = false, commas_in = false, commas_out = false;
  std::vector<CellSpan> cells;
  for (skip_blank_lines(text, at, lines); at < text.size(); skip_blank_lines(text, at, lines)) {
    const bool first = columns == 0;
    if (split_row(text, separator, at, lines, cells) || (!first && cells.size() != columns))
      return false;
    columns = cells.size();
    for (const CellSpan& cell : cells) {
      const std::string_view inside = text.substr(cell.begin, cell.end - cell.begin);
      const bool comma = inside.find(',') != std::string_view::npos;
      if (!cell.quoted)
        commas_out = commas_out || comma;
      else if (first || cell.doubled || inside.find_first_of("\t\n") != std::string_view::npos)
        needed = true;
      else
        commas_in = commas_in || comma;
    }
  }
  return needed || (commas_in && !commas_out);  // Excel quotes cells with commas
}

std::unique_ptr<TableReader> quoted_table(std::string path, std::string text, char separator,
                                          bool header, std::string manner) {
  auto table =
      std::make_unique<QuotedTable>(std::move(path), std::move(text), separator, std::move(manner));
  table->begin(header);
  return table;
}

}  // namespace concertina
