#include "io/labelled/tagged_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <ranges>
#include <utility>

#include "core/error.h"
#include "io/datasets/class_labels.h"
#include "io/datasets/content_hash.h"
#include "io/datasets/sentences.h"
#include "io/file.h"
#include "io/labelled/table_columns.h"
#include "io/labelled/target_lists.h"
#include "io/tables/table.h"

namespace concertina {
namespace {

struct TaggedSentence {
  std::vector<std::int32_t> tokens{};
  std::vector<std::pair<std::int32_t, std::int32_t>> tags{};  // first token and class of each word
  std::uint64_t content = 0, exact = 0;
  std::string place{};  // "FILE:LINE"
};

class TaggedWords final : public FileDataset {
 public:
  explicit TaggedWords(const DataOptions& options);

  std::span<const Field> fields() const override { return fields_; }
  std::int64_t vocabulary() const override { return encoder_.vocabulary(); }
  std::span<const std::string> classes() const override { return names_; }
  const Splits* splits() const override { return &splits_; }
  std::uint64_t samples(Split split) const override { return splits_.size(split); }
  std::int64_t targets_before(Split split, std::uint64_t sample) const override {
    return before_[static_cast<std::size_t>(split)][sample];
  }
  bool repeats() const override { return true; }
  void verify(const std::function<void()>&) const override {}  // everything is read on opening
  const Corpus& corpus() const override { return *files_.corpus; }
  std::string summary() const override {
    return split_summary(corpus(), splits_,
                         fmt::format("sentences, {} word classes", names_.size()));
  }
  void write(const SampleAt& at, std::span<const View> views) const override;

 private:
  void read_lines(const std::string& path);
  void read_objects(const std::string& path, const DataOptions& options);
  /// Adds a sentence that begins at `place`, "FILE:LINE".
  void add(std::span<const std::string> words, std::span<const std::string> tags,
           const std::string& place);
  /// Decides how words are encoded: with a leading space if the tokenizer treats it as part of the
  /// word, like transformers' add_prefix_space.
  void choose_space(bool bytes);
  void number_tags(std::span<const std::string> order);

  SplitFiles files_;
  SentenceEncoder encoder_;
  std::int64_t room_;
  std::string space_;
  std::vector<TaggedSentence> sentences_;
  std::vector<std::string> names_;                        // of classes, unsorted at first
  std::map<std::string, std::int32_t, std::less<>> met_;  // number of each class
  std::vector<std::string> met_at_;                       // first place of each class
  Splits splits_;
  std::array<std::vector<std::int64_t>, 3> before_;  // targets before each sample of a split
  std::vector<Field> fields_;
};

TaggedWords::TaggedWords(const DataOptions& options)
    : files_(split_files(options)),
      encoder_(options.tokenizer),
      room_(options.tokens_per_sample),
      fields_{tokens_field(room_), types_field(room_), lengths_field(), tags_field(room_)} {
  if (const std::int64_t least = encoder_.marks(false) + 1; room_ < least)
    throw_input(fmt::format("a sample of {} tokens has no space for a word and its marks", room_),
                "model.context", fmt::format("use at least {} tokens", least));
  choose_space(options.tokenizer == nullptr);
  const auto counts = files_.read(
      [&](const std::string& path) {
        options.format == "conll" ? read_lines(path) : read_objects(path, options);
      },
      [this] { return sentences_.size(); });
  number_tags(options.class_names);
  std::vector<ItemKey> keys;
  for (const TaggedSentence& sentence : sentences_)
    keys.push_back({sentence.content, 0, sentence.exact});
  ItemFacts facts{.keys = keys, .words = {.item = "sentence"}, .names = names_};
  facts.classes_of = [this](std::uint64_t item) {
    const auto tags = std::views::values(sentences_[item].tags);
    return std::vector<std::int32_t>(tags.begin(), tags.end());
  };
  facts.place_of = [this](std::uint64_t item) { return sentences_[item].place; };
  splits_ = split_items(options, counts, facts);
  for (const Split split : {Split::train, Split::validation, Split::test}) {
    std::vector<std::int64_t>& before = before_[static_cast<std::size_t>(split)];
    before.push_back(0);
    for (std::uint64_t i = 0; i < splits_.size(split); ++i)
      before.push_back(before.back() + std::ssize(sentences_[splits_.item(split, i)].tags));
  }
}

void TaggedWords::choose_space(bool bytes) {
  std::vector<std::int32_t> alone, spaced;
  encoder_.encode("a", alone);
  encoder_.encode(" a", spaced);
  if (bytes || alone.size() == spaced.size()) space_.push_back(' ');
}

void TaggedWords::read_lines(const std::string& path) {
  const std::string text = read_text_file(path);
  std::vector<std::string> words, tags;
  std::size_t line = 0, begin = 1, columns = 0;
  const auto place = [&](std::size_t at) { return fmt::format("{}:{}", path, at); };
  bool numbered = true;  // whether the words of all sentences so far are numbers, starting with 1
  const auto end_sentence = [&] {
    if (!words.empty()) {
      numbered = numbered && words[0].starts_with('1') &&
                 std::ranges::all_of(words, [](const std::string& word) {
                   return word.find_first_not_of("0123456789-.") == std::string::npos;
                 });
      add(words, tags, place(begin));
    }
    words.clear(), tags.clear();
    begin = line + 1;
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::vector<std::string_view> cells;
    for (std::size_t i = at; i < end;) {
      const std::size_t cell = text.find_first_not_of(" \t\r", i);
      if (cell >= end) break;
      i = std::min(text.find_first_of(" \t\r\n", cell), end);
      cells.push_back(std::string_view(text).substr(cell, i - cell));
    }
    at = end + 1;
    ++line;
    if (cells.empty() || cells[0] == "-DOCSTART-") {
      end_sentence();
      continue;
    }
    if (columns == 0) columns = cells.size();
    if (cells.size() != columns || columns < 2)
      throw_input(
          columns < 2
              ? "a word without a class"
              : fmt::format("got {} columns, but the first line has {}", cells.size(), columns),
          place(line),
          cells[0].starts_with('#')
              ? "use a file without comments; for CoNLL-U: grep -v '^#' FILE | cut -f 2,4"
              : "put the word first and its class last, with the same columns in each line");
    words.emplace_back(cells.front());
    tags.emplace_back(cells.back());
  }
  ++line;
  end_sentence();
  if (numbered && columns > 2)
    throw_input(
        "the first column is the number of the word, as in CoNLL-U, whose words are in the "
        "second column",
        place(1), "put the word first and its class last: grep -v '^#' FILE | cut -f 2,4");
}

void TaggedWords::read_objects(const std::string& path, const DataOptions& options) {
  const auto table = open_table("jsonl", path);
  const auto first_present = [&](std::initializer_list<std::string> names) {
    for (const std::string& name : names)
      if (std::ranges::find(table->columns(), name) != table->columns().end()) return name;
    return *names.begin();
  };
  auto words = options.own<std::vector<std::string>>("text_columns");
  if (words.empty()) words = {first_present({"tokens", "words"})};
  if (words.size() > 1)
    throw_input(fmt::format("got {} word columns", words.size()), "data.text_columns",
                "use one column");
  auto tags = options.own<std::string>("label_column");
  if (tags.empty()) tags = first_present({"ner_tags", "tags", "labels", "pos_tags"});
  const TableColumns columns = find_columns(table->columns(), words, tags, path + ":1");
  table->select({columns.text[0], *columns.label});
  for (RowCells row; table->next(row);) {
    const std::string place = fmt::format("{}:{}", path, row.line);
    for (const CellText& cell : row.cells)
      if (cell.kind != CellText::Kind::nested)
        throw_input(fmt::format("'{}' is {}", &cell == &row.cells[0] ? words[0] : tags,
                                cell.kind == CellText::Kind::missing ? "missing" : "not a list"),
                    place, "use a list of words and a list of classes with the same length");
    add(list_entries(row.cells[0], "", place), list_entries(row.cells[1], "", place), place);
  }
}

void TaggedWords::add(std::span<const std::string> words, std::span<const std::string> tags,
                      const std::string& place) {
  if (words.size() != tags.size())
    throw_input(fmt::format("got {} classes for {} words", tags.size(), words.size()), place,
                "use one class per word");
  const std::int64_t most = room_ - encoder_.marks(false);
  TaggedSentence sentence;
  std::string folded;
  for (std::size_t i = 0; i < words.size(); ++i) {
    append_folded(words[i], folded += ' ');
    if (std::ssize(sentence.tokens) >= most) continue;
    const auto first = static_cast<std::int32_t>(sentence.tokens.size());
    encoder_.encode(space_ + words[i], sentence.tokens);
    const auto [found, is_new] = met_.emplace(tags[i], static_cast<std::int32_t>(met_.size()));
    if (is_new) {
      names_.push_back(tags[i]);
      met_at_.push_back(place);
    }
    if (std::cmp_greater(sentence.tokens.size(), first))
      sentence.tags.emplace_back(first, found->second);
  }
  if (sentence.tags.empty())
    throw_input("the sentence has no tokens", place, "use at least one word per sentence");
  if (std::ssize(sentence.tokens) > most) sentence.tokens.resize(static_cast<std::size_t>(most));
  sentence.place = place;
  sentence.content = content_hash(folded);
  sentence.exact =
      content_hash(fmt::format("{}\n{}", fmt::join(words, "\t"), fmt::join(tags, "\t")));
  sentences_.push_back(std::move(sentence));
}

void TaggedWords::number_tags(std::span<const std::string> order) {
  ClassLabels classes = number_classes(
      std::vector<std::string_view>(names_.begin(), names_.end()),
      [&](std::size_t tag) { return met_at_[tag]; }, order);
  for (TaggedSentence& sentence : sentences_)
    for (auto& [token, tag] : sentence.tags) tag = classes.numbers[static_cast<std::size_t>(tag)];
  names_ = std::move(classes.names);
}

void TaggedWords::write(const SampleAt& at, std::span<const View> views) const {
  const TaggedSentence& sentence = sentences_[splits_.item(at.split, at.sample)];
  write_sentences(encoder_, sentence.tokens, {}, /*pair=*/false, room_, views[0], views[1],
                  views[2]);
  if (views[3].empty()) return;
  std::fill_n(views[3].i32(), room_, kIgnored);
  const std::int64_t before = encoder_.marks_before(false);
  for (std::int64_t i = 0; i < std::min(at.most, std::ssize(sentence.tags)); ++i) {
    const auto& [token, tag] = sentence.tags[static_cast<std::size_t>(i)];
    views[3].i32()[before + token] = tag;
  }
}

}  // namespace

std::unique_ptr<Dataset> tagged_words(const DataOptions& options) {
  return std::make_unique<TaggedWords>(options);
}

}  // namespace concertina
