#include "experiments/quality/table_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/text/utf8.h"
#include "experiments/run/planning.h"
#include "io/datasets/content_hash.h"
#include "io/datasets/sentences.h"
#include "io/datasets/split_files.h"
#include "io/labelled/table_columns.h"
#include "io/tables/table.h"
#include "io/tokenizers/characters/unicode.h"

namespace concertina {
namespace {

using Json = nlohmann::ordered_json;

void require_table(const RunConfig& config) {
  const std::string& format = config.data.format;
  if (std::ranges::find(kTableFormats, format) != std::end(kTableFormats)) return;
  throw_input(fmt::format("data.format = \"{}\" is not a table format", format), "data.format",
              fmt::format("one of: {}", fmt::join(kTableFormats, ", ")));
}

/// Encodes arbitrary bytes as JSON text.
std::string latin1(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) append_utf8(static_cast<unsigned char>(byte), text);
  return text;
}

/// Reads the rows of files in sequence.
class RowReader {
 public:
  RowReader(const RunConfig& config, bool counts_tokens)
      : config_(config), counts_tokens_(counts_tokens), encoder_(tokenizer_of(config)) {}

  void read(const std::string& path, Split split) {
    const OptionValues& own = config_.data.options;
    const auto table =
        open_table(config_.data.format, path,
                   {option<std::string>(own, "quotes"), option<bool>(own, "header")});
    const TableColumns columns =
        find_columns(table->columns(), option<std::vector<std::string>>(own, "text_columns"),
                     option<std::string>(own, "label_column"), path + ":1", false);
    std::vector<std::size_t> wanted = columns.text;
    if (columns.label) wanted.push_back(*columns.label);
    if (files_.empty()) head_ = latin1(table->head());
    labelled_ = labelled_ && columns.label.has_value();
    table->select(wanted);
    for (bool more = true; more;) {
      RowCells row;
      Json found = Json::object();
      try {
        more = table->next(row);
        if (!more) break;
        found = checked(row, columns.text.size());
      } catch (const Error& error) {
        if (error.code() != Exit::bad_input) throw;
        found["broken"] = error.message();
      }
      found.update({{"file", files_.size()},
                    {"line", row.line},
                    {"split", kSplitNames[static_cast<std::size_t>(split)]},
                    {"raw", latin1(row.raw)}});
      rows_.push_back(std::move(found));
    }
    files_.push_back(path);
  }

  Json json() && {
    return {{"files", files_},
            {"head", head_},
            {"labelled", labelled_},
            {"tokens", counts_tokens_ ? Json(config_.model.context) : Json()},
            {"rows", std::move(rows_)}};
  }

 private:
  Json checked(const RowCells& row, std::size_t texts) const {
    Json json = {{"texts", Json::array()}, {"folded", Json::array()}, {"label", ""}};
    std::size_t tokens = texts + 1;  // marks
    bool decodable = true;
    for (std::size_t i = 0; i < texts; ++i) {
      const CellText& cell = row.cells[i];
      const std::string_view text = cell.kind == CellText::Kind::missing ? "" : cell.text;
      if (cell.kind == CellText::Kind::nested) json["broken"] = "a text cell is a list";
      json["texts"].push_back(latin1(text));
      decodable = decodable && is_utf8(text);
      if (decodable) append_folded(text, json["folded"].emplace_back("").get_ref<std::string&>());
      if (counts_tokens_) tokens += tokens_of(text);
    }
    json["tokens"] = tokens;
    if (row.cells.size() > texts) {
      const std::string_view label = row.cells.back().text;
      json["label"] = latin1(label);
      decodable = decodable && is_utf8(label);
      if (label.empty()) json["broken"] = "the label is empty";
    }
    json["decodable"] = decodable;
    return json;
  }

  std::size_t tokens_of(std::string_view text) const try {
    std::vector<std::int32_t> encoded;
    encoder_.encode(text, encoded);
    return encoded.size();
  } catch (const Error&) {  // bytes that are not text; reported as a separate fault
    return 0;
  }

  const RunConfig& config_;
  const bool counts_tokens_;
  const SentenceEncoder encoder_;
  std::vector<std::string> files_;
  std::string head_;
  bool labelled_ = true;
  Json rows_ = Json::array();
};

}  // namespace

nlohmann::ordered_json table_rows(const RunConfig& config, bool counts_tokens) {
  require_table(config);
  RowReader reader(config, counts_tokens);
  const SplitFiles files = split_files(data_options(config, nullptr));
  for (std::size_t split = 0; split < files.of.size(); ++split)
    for (const std::string& path : files.of[split]) reader.read(path, static_cast<Split>(split));
  return std::move(reader).json();
}

}  // namespace concertina
