// JSON lines: an object on each line, whose keys are the columns. Blank lines are skipped.
#include <deque>
#include <utility>

#include "core/error.h"
#include "io/strict_json.h"
#include "io/tables/delimited_table.h"

namespace concertina {
namespace {

class JsonLines final : public TableReader {
 public:
  JsonLines(std::string path, std::string text) : path_(std::move(path)), text_(std::move(text)) {
    nlohmann::json first;
    if (RowCells row; !read_object(first, row))
      throw_input("the file is empty", path_ + ":1", "an object on each line");
    for (const auto& [key, value] : first.items()) {
      selected_.push_back(columns_.size());
      columns_.push_back(key);
    }
    at_ = 0, line_ = 1;
  }

  const std::vector<std::string>& columns() const override { return columns_; }
  void select(std::vector<std::size_t> columns) override { selected_ = std::move(columns); }
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
  std::vector<std::string> columns_;
  std::vector<std::size_t> selected_;
  std::deque<std::string> texts_;  // what cells look into; none moves
};

}  // namespace

std::unique_ptr<TableReader> json_lines(std::string path, std::string text) {
  return std::make_unique<JsonLines>(std::move(path), std::move(text));
}

}  // namespace concertina
