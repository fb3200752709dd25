#include "io/tables/table.h"

#include <algorithm>

#include "core/error.h"
#include "io/corpus.h"
#include "io/file.h"
#include "io/tables/delimited_table.h"

namespace concertina {
namespace {

constexpr std::uint64_t kLargestTable = std::uint64_t{1} << 32;

/// Spreadsheets use semicolons if the comma is a decimal separator. Excel also writes a first line
/// "sep=;", which is turned into a blank one.
char csv_separator(std::string& text) {
  constexpr std::size_t kLine = 5;
  if (text.starts_with("sep=") && text.substr(kLine, 2).find_first_of("\r\n") == 0) {
    const char separator = text[kLine - 1];
    text.erase(0, kLine);
    return separator;
  }
  const std::string_view first = std::string_view(text).substr(0, text.find('\n'));
  return first.find(',') == std::string_view::npos && first.find(';') != std::string_view::npos
             ? ';'
             : ',';
}

}  // namespace

std::string read_text_file(const std::string& path) {
  std::string text = read_file(path, kLargestTable);
  if (text.starts_with(kUtf8Mark)) text.erase(0, kUtf8Mark.size());
  require_utf8(text, path);
  if (text.find('\n') == std::string::npos) std::ranges::replace(text, '\r', '\n');
  return text;
}

std::unique_ptr<TableReader> open_table(std::string_view format, const std::string& path,
                                        const TableFileOptions& options) {
  std::string text = read_text_file(path);
  if (format == "jsonl") return json_lines(path, std::move(text));
  if (format == "csv") {
    const char separator = csv_separator(text);
    return quoted_table(path, std::move(text), separator, options.header,
                        separator == ';' ? "cells separated by semicolons" : "");
  }
  CONCERTINA_CHECK(format == "tsv", "unknown table format {}", format);
  const bool quoted =
      options.quotes == "enclose" || (options.quotes == "auto" && has_quoted_cells(text, '\t'));
  return quoted ? quoted_table(path, std::move(text), '\t', options.header, "quoted cells")
                : plain_table(path, std::move(text), options.header);
}

}  // namespace concertina
