#include "io/tables/table.h"

#include "core/error.h"
#include "io/file.h"
#include "io/tables/delimited_table.h"

namespace concertina {
namespace {

constexpr std::uint64_t kLargestTable = std::uint64_t{1} << 32;

std::string read_table(const std::string& path) {
  std::string text = read_file(path, kLargestTable);
  if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
  for (const std::string_view mark : {"\xff\xfe", "\xfe\xff"})
    if (text.starts_with(mark))
      throw_input("the file begins as UTF-16 does", path + ":1",
                  "UTF-8, as iconv -f UTF-16 -t UTF-8 makes it");
  return text;
}

/// Spreadsheets write semicolons where the comma stands in numbers.
char csv_separator(std::string_view text) {
  const std::string_view first = text.substr(0, text.find('\n'));
  return first.find(',') == std::string_view::npos && first.find(';') != std::string_view::npos
             ? ';'
             : ',';
}

}  // namespace

std::unique_ptr<TableReader> open_table(std::string_view format, const std::string& path,
                                        const TableFileOptions& options) {
  std::string text = read_table(path);
  if (format == "jsonl") return json_lines(path, std::move(text));
  if (format == "csv") {
    const char separator = csv_separator(text);
    return quoted_table(path, std::move(text), separator, options.header,
                        separator == ';' ? "semicolons separate cells" : "");
  }
  CONCERTINA_CHECK(format == "tsv", "a table of format {}", format);
  const bool quoted =
      options.quotes == "enclose" || (options.quotes == "auto" && has_quoted_cells(text, '\t'));
  return quoted ? quoted_table(path, std::move(text), '\t', options.header, "quotes enclose cells")
                : plain_table(path, std::move(text), options.header);
}

}  // namespace concertina
