// JSON lines: an object per line, whose keys are the columns. Blank lines are skipped. A JSON list
// of objects is also supported.
#include <deque>
#include <utility>

#include "core/error.h"
#include "io/strict_json.h"
#include "io/tables/delimited_table.h"

namespace concertina {
namespace {

/// Converts a list of objects to one object per line. Line numbers are preserved unless two objects
/// begin on the same line.
std::string lines_of_list(std::string_view list, const std::string& path) {
  if (!nlohmann::json::accept(list))
    throw_input("the file begins like a JSON list, but is not valid", path,
                "use [{...}, {...}] or an object per line; was the file truncated?");
  std::string lines;
  int depth = 0;
  std::size_t held = 0;               // line breaks within the object
  bool quoted = false, used = false;  // inside a string; the line contains an object
  for (std::size_t i = 0; i < list.size(); ++i) {
    const char c = list[i];
    const bool inside = quoted || depth > 1;
    if (!inside && c == '{' && used) lines += '\n';
    if (inside || std::string_view(", \t\r[]").find(c) == std::string_view::npos)
      lines += inside && c == '\n' ? ' ' : c;
    if (c == '\n' && inside) ++held;
    if (c == '\n' && !inside) used = false;
    if (quoted && c == '\\') lines += list[++i];
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && --depth == 1) {
      used = held == 0;
      lines.append(std::exchange(held, 0), '\n');
    }
  }
  return lines;
}

class JsonLines final : public TableReader {
 public:
  JsonLines(std::string path, std::string text) : path_(std::move(path)), text_(std::move(text)) {
    if (const std::size_t begin = text_.find_first_not_of(" \t\r\n");
        begin != std::string::npos && text_[begin] == '[')
      text_ = text_.substr(0, begin) + lines_of_list(std::string_view(text_).substr(begin), path_);
    nlohmann::json first;
    if (RowCells row; !read_object(first, row))
      throw_input("the file is empty", path_ + ":1", "use an object per line");
    for (const auto& [key, value] : first.items()) {
      selected_.push_back(columns_.size());
      columns_.push_back(key);
    }
    at_ = 0, line_ = 1;
  }

  bool next(RowCells& row) override {
    nlohmann::json object;
    if (!read_object(object, row)) return false;
    row.cells.clear();
    for (const std::size_t column : selected_)
      row.cells.push_back(cell_of(object, columns_[column]));
    return true;
  }

 private:
  bool read_object(nlohmann::json& object, RowCells& row) {
    const std::string_view text(text_);
    while (at_ < text.size()) {
      const std::size_t end = std::min(text.find('\n', at_), text.size());
      const std::string_view line = text.substr(at_, end - at_);
      row.raw = text.substr(at_, end + 1 - at_);
      row.line = line_++;
      at_ = end + 1;
      if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      object = parse_strict_object(line, fmt::format("{}:{}", path_, row.line));
      return true;
    }
    return false;
  }

  CellText cell_of(const nlohmann::json& object, const std::string& key) {
    const auto found = object.find(key);
    if (found == object.end() || found->is_null()) return {.kind = CellText::Kind::missing};
    texts_.push_back(found->is_string() ? found->get<std::string>() : found->dump());
    return {texts_.back(), found->is_structured() ? CellText::Kind::nested : CellText::Kind::value};
  }

  std::string path_, text_;
  std::size_t at_ = 0, line_ = 1;
  std::deque<std::string> texts_;  // referenced by cells; elements never move
};

}  // namespace

std::unique_ptr<TableReader> json_lines(std::string path, std::string text) {
  return std::make_unique<JsonLines>(std::move(path), std::move(text));
}

}  // namespace concertina
