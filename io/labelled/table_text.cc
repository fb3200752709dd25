#include "io/labelled/table_text.h"

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "io/datasets/packed.h"
#include "io/datasets/split_files.h"
#include "io/datasets/windows.h"
#include "io/for_all.h"

namespace concertina {
namespace {

/// Number of rows that a thread tokenizes at a time.
constexpr std::size_t kRowsTogether = 256;

/// Appends the tokens of the rows in `items` to `tokens` and their ends to `bounds`, on all cores
/// of this process.
void append_rows(const LabelledRows& rows, std::span<const std::uint64_t> items,
                 const Tokenizer& tokenizer, std::vector<std::int32_t>& tokens,
                 std::vector<std::uint64_t>& bounds) {
  const std::vector<std::int32_t> end = end_of_row(tokenizer);
  std::vector<std::vector<std::int32_t>> made((items.size() + kRowsTogether - 1) / kRowsTogether);
  std::vector<std::vector<std::uint64_t>> ends(made.size());  // in `made`
  for_all(made.size(), {}, [&](std::size_t piece) {
    const std::size_t first = piece * kRowsTogether;
    for (const std::uint64_t item :
         items.subspan(first, std::min(kRowsTogether, items.size() - first))) {
      const std::size_t before = made[piece].size();
      try {
        tokenizer.encode(rows.rows()[item].text[0], made[piece]);
      } catch (const Error& error) {
        throw_input(error.message(), rows.place_of(item), error.fix());
      }
      if (made[piece].size() == before) continue;
      made[piece].insert(made[piece].end(), end.begin(), end.end());
      ends[piece].push_back(made[piece].size());
    }
  });
  for (std::size_t piece = 0; piece < made.size(); ++piece) {
    for (const std::uint64_t one : ends[piece]) bounds.push_back(tokens.size() + one);
    tokens.insert(tokens.end(), made[piece].begin(), made[piece].end());
    made[piece] = {};
  }
}

Splits splits_of(const DataOptions& options, const LabelledRows& rows,
                 const std::array<std::uint64_t, 3>& counts) {
  std::vector<ItemKey> keys;
  keys.reserve(rows.rows().size());
  for (const LabelledRow& row : rows.rows())
    keys.push_back({row_hash(row, false), 0, exact_hash(row),
                    options.documents == "packed" ? 0 : row.text[0].size() + 1});
  return split_items(options, counts, {.keys = keys, .words = {.item = "document"}});
}

}  // namespace

std::vector<std::int32_t> end_of_row(const Tokenizer& tokenizer) {
  for (const SpecialToken mark : {SpecialToken::end, SpecialToken::separate})
    if (const auto token = tokenizer.special(mark)) return {*token};
  return tokenizer.tokens("\n");
}

LabelledRows rows_of(const DataOptions& options, std::array<std::uint64_t, 3>& counts) {
  const SplitFiles files = split_files(options);
  LabelledRows rows(options);
  counts = files.read([&](const std::string& path) { rows.read(path); },
                      [&] { return rows.rows().size(); });
  if (rows.is_pair())
    throw_input("rows have two texts, but a document of a long text is a single text",
                "data.text_columns", "use one column");
  return rows;
}

std::unique_ptr<Dataset> table_text(const DataOptions& options) {
  const std::shared_ptr<const Tokenizer> tokenizer = or_bytes(options.tokenizer);
  std::array<std::uint64_t, 3> counts{};
  const LabelledRows rows = rows_of(options, counts);
  WindowedTokens parts;
  parts.corpus = split_files(options).corpus;
  parts.splits = std::make_shared<const Splits>(splits_of(options, rows, counts));
  std::vector<std::int32_t> tokens;
  std::vector<std::uint64_t> bounds{0};
  for (std::size_t s = 0; s < counts.size(); ++s) {
    std::vector<std::uint64_t> items(parts.splits->sizes[s]);
    for (std::uint64_t i = 0; i < items.size(); ++i)
      items[i] = parts.splits->item(static_cast<Split>(s), i);
    const std::size_t before = tokens.size();
    append_rows(rows, items, *tokenizer, tokens, bounds);
    parts.sizes[s] = tokens.size() - before;
    if (s == 0) parts.begins = escape_bytes(rows.rows()[items[0]].text[0].substr(0, 72));
  }
  parts.tokens = std::make_unique<TokenList>(std::move(tokens));
  parts.vocabulary = tokenizer->vocabulary();
  parts.tokenizer = tokenizer;
  parts.most_overlap = options.most_overlap;
  parts.own_files = own_files(options);
  parts.word = "token";
  parts.columns = rows.summary();
  if (options.documents == "packed")
    return packed_dataset(options, std::move(parts), std::move(bounds));
  return windowed_dataset(options, std::move(parts));
}

}  // namespace concertina
