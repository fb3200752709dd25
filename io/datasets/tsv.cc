// data.format = "tsv": one sentence or two and a label per line, as GLUE publishes its tasks.
// The first line names the columns, between tabs: sentence (or sentence1, text), sentence2, label,
// idx (or index; not read). Labels are the numbers 0, 1, ..., or names, numbered in the order of
// their bytes. No quotes, no escapes. A sample that is too long is cut as truncate_pair() says.
#include <algorithm>
#include <array>
#include <charconv>
#include <deque>
#include <map>

#include "core/error.h"
#include "io/datasets/content_hash.h"
#include "io/datasets/sentences.h"
#include "io/datasets/split_files.h"
#include "io/file.h"

namespace concertina::dataset_makers {
namespace {

/// Where a row's columns are.
struct TsvRow {
  std::array<std::string_view, 2> sentences;
  std::int32_t label = kIgnored;
};

/// The meaning of a file's columns; -1: not there.
struct TsvColumns {
  std::array<int, 2> sentences{-1, -1};
  int label = -1, count = 0;
};

struct LabelPlace {
  std::string file;
  std::size_t line = 0;
};

[[noreturn]] void refuse_tsv(const std::string& what, const LabelPlace& at,
                             const std::string& fix) {
  throw_input(what, fmt::format("{}:{}", at.file, at.line), fix);
}

std::vector<std::string_view> cut_line(std::string_view line) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0;;) {
    const std::size_t tab = line.find('\t', begin);
    parts.push_back(line.substr(begin, tab - begin));
    if (tab == std::string_view::npos) return parts;
    begin = tab + 1;
  }
}

TsvColumns read_header(std::string_view line, const LabelPlace& at) {
  const std::string usual =
      "a first line such as sentence<tab>label, or "
      "sentence1<tab>sentence2<tab>label";
  for (const std::string_view mark : {"\xef\xbb\xbf", "\xff\xfe", "\xfe\xff"})
    if (line.starts_with(mark))
      refuse_tsv("the file begins with a byte order mark", at, "UTF-8 without such a mark");
  TsvColumns columns;
  for (const std::string_view name : cut_line(line)) {
    const bool first = name == "sentence" || name == "sentence1" || name == "text";
    int* const column = first                 ? &columns.sentences[0]
                        : name == "sentence2" ? &columns.sentences[1]
                        : name == "label"     ? &columns.label
                                              : nullptr;
    if (column == nullptr && name != "idx" && name != "index")
      refuse_tsv(fmt::format("the column '{}' is unknown", escape_bytes(name.substr(0, 60))), at,
                 usual);
    if (column != nullptr && *column >= 0)
      refuse_tsv(fmt::format("the column '{}' is there twice", name), at, usual);
    if (column != nullptr) *column = columns.count;
    ++columns.count;
  }
  if (columns.sentences[0] < 0 || columns.label < 0)
    refuse_tsv(fmt::format("no column is called '{}'", columns.label < 0 ? "label" : "sentence"),
               at, usual);
  return columns;
}

class TsvDataset final : public Dataset {
 public:
  explicit TsvDataset(const DataOptions& options);

  std::span<const Field> fields() const override { return fields_; }
  std::int64_t vocabulary() const override { return encoder_.vocabulary(); }
  std::span<const std::string> classes() const override { return classes_; }
  std::uint64_t samples(Split split) const override { return splits_.size(split); }
  const Splits* splits() const override { return &splits_; }
  std::int64_t targets_before(Split /*split*/, std::uint64_t sample) const override {
    return static_cast<std::int64_t>(sample);
  }
  bool repeats() const override { return true; }
  const Corpus& corpus() const override { return *files_.corpus; }
  std::string summary() const override {
    return split_summary(
        corpus(), splits_,
        fmt::format("{} of {} classes", pair_ ? "pairs" : "sentences", classes_.size()), classes_);
  }
  void write(const SampleAt& at, std::span<const View> views) const override;

 private:
  void read_rows(const std::string& path, std::string_view text);
  void name_classes();
  void check_numbers(const std::vector<std::int64_t>& numbers) const;
  void check_held_out(std::size_t training_rows) const;
  std::vector<ItemKey> row_keys() const;

  SplitFiles files_;
  SentenceEncoder encoder_;
  std::int64_t room_;
  std::deque<std::string> texts_;  // what rows_ looks into; none moves
  std::vector<TsvRow> rows_;
  std::vector<std::string_view> labels_;  // of rows_, as written
  std::vector<LabelPlace> starts_;        // of the files: their name and first row
  bool pair_ = false;
  Splits splits_;
  std::vector<std::string> classes_;
  std::vector<Field> fields_;

  LabelPlace place_of(std::size_t row) const {
    std::size_t file = starts_.size() - 1;
    while (starts_[file].line > row) --file;
    return {starts_[file].file, row - starts_[file].line + 2};
  }
};

TsvDataset::TsvDataset(const DataOptions& options)
    : files_(split_files(options)),
      encoder_(options.tokenizer),
      room_(options.tokens_per_sample),
      fields_{tokens_field(room_), types_field(room_), lengths_field(), label_field()} {
  std::array<std::uint64_t, 3> counts{};
  for (std::size_t split = 0; split < 3; ++split)
    for (const std::string& path : files_.of[split]) {
      starts_.push_back({path, rows_.size()});
      read_rows(path, texts_.emplace_back(read_file(path, std::uint64_t{1} << 32)));
      counts[split] += rows_.size() - starts_.back().line;
    }
  if (room_ < (pair_ ? 5 : 3))
    throw_input(
        fmt::format("a sample of {} tokens has no room for a sentence and its marks", room_),
        "model.context", "at least 3 tokens, 5 for pairs");
  name_classes();
  check_held_out(counts[0]);
  const std::vector<ItemKey> keys = row_keys();
  splits_ =
      split_items(options, counts, {.keys = keys, .classes = classes_, .words = {.item = "row"}});
}

/// Rows are the same whose sentences are, but for case and space.
std::vector<ItemKey> TsvDataset::row_keys() const {
  std::vector<ItemKey> keys;
  keys.reserve(rows_.size());
  std::string folded;
  for (const TsvRow& row : rows_) {
    folded.clear();
    append_folded(row.sentences[0], folded);
    if (pair_) append_folded(row.sentences[1], folded += '\t');
    keys.push_back({content_hash(folded), row.label});
  }
  return keys;
}

void TsvDataset::read_rows(const std::string& path, std::string_view text) {
  LabelPlace at{path, 1};
  TsvColumns columns;
  for (std::size_t begin = 0; begin < text.size(); ++at.line) {
    std::size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) end = text.size();
    std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (at.line == 1) {
      columns = read_header(line, at);
      const bool pair = columns.sentences[1] >= 0;
      if (!rows_.empty() && pair != pair_)
        refuse_tsv("some files have one sentence per line, others two", at, "files of one kind");
      pair_ = pair;
      continue;
    }
    const std::vector<std::string_view> parts = cut_line(line);
    if (std::cmp_not_equal(parts.size(), columns.count))
      refuse_tsv(
          fmt::format("{} columns where the first line names {}", parts.size(), columns.count), at,
          "a tab between columns and none in them");
    TsvRow row;
    for (std::size_t i = 0; i < (pair_ ? 2 : 1); ++i)
      row.sentences[i] = parts[static_cast<std::size_t>(columns.sentences[i])];
    labels_.push_back(parts[static_cast<std::size_t>(columns.label)]);
    if (labels_.back().empty()) refuse_tsv("the label is empty", at, "a label on each line");
    rows_.push_back(row);
  }
}

/// Numbers must be 0, 1, ... without a gap: one that is alone is most likely an error.
void TsvDataset::check_numbers(const std::vector<std::int64_t>& numbers) const {
  const auto largest = std::ranges::max_element(numbers);
  std::vector<bool> there(numbers.size());
  for (const std::int64_t number : numbers)
    if (std::cmp_less(number, there.size())) there[static_cast<std::size_t>(number)] = true;
  for (std::int64_t label = 0; label <= *largest; ++label)
    if (std::cmp_greater_equal(label, there.size()) || !there[static_cast<std::size_t>(label)])
      refuse_tsv(fmt::format("label {} is out of range: no line has label {}", *largest, label),
                 place_of(static_cast<std::size_t>(largest - numbers.begin())),
                 "labels 0, 1, ... without a gap, or names");
}

void TsvDataset::name_classes() {
  if (rows_.empty()) return;
  std::vector<std::int64_t> numbers;
  for (std::size_t row = 0; row < labels_.size(); ++row) {
    const std::string_view label = labels_[row];
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(label.begin(), label.end(), number);
    const bool whole = error == std::errc() && end == label.end() && number >= 0;
    if (row > 0 && whole == numbers.empty())
      refuse_tsv(fmt::format("the label '{}' is {} number, those before it are {}",
                             label.substr(0, 60), whole ? "a" : "no", whole ? "names" : "numbers"),
                 place_of(row), "labels 0, 1, ... without a gap, or names");
    if (whole) numbers.push_back(number);
  }
  if (numbers.size() == labels_.size()) {
    check_numbers(numbers);
    for (std::size_t row = 0; row < rows_.size(); ++row)
      rows_[row].label = static_cast<std::int32_t>(numbers[row]);
    for (std::int64_t label = 0; label <= *std::ranges::max_element(numbers); ++label)
      classes_.push_back(std::to_string(label));
  } else {
    std::map<std::string_view, std::int32_t> names;
    for (const std::string_view label : labels_) names.emplace(label, 0);
    for (auto& [name, number] : names) {
      number = static_cast<std::int32_t>(classes_.size());
      classes_.emplace_back(name);
    }
    for (std::size_t row = 0; row < rows_.size(); ++row) rows_[row].label = names.at(labels_[row]);
  }
}

/// No class is in the held-out files alone.
void TsvDataset::check_held_out(std::size_t training_rows) const {
  std::vector<bool> trained(classes_.size());
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    const auto label = static_cast<std::size_t>(rows_[row].label);
    if (row < training_rows)
      trained[label] = true;
    else if (!trained[label])
      refuse_tsv(fmt::format("the label '{}' is that of no line of data.files",
                             labels_[row].substr(0, 60)),
                 place_of(row), "labels that the model is trained on");
  }
}

void TsvDataset::write(const SampleAt& at, std::span<const View> views) const {
  const TsvRow& row = rows_[splits_.item(at.split, at.sample)];
  if (!views[3].empty()) *views[3].i32() = at.most > 0 ? row.label : kIgnored;
  if (views[0].empty() && views[1].empty() && views[2].empty()) return;
  std::vector<std::int32_t> a, b;
  encoder_.encode(row.sentences[0], a);
  if (pair_) encoder_.encode(row.sentences[1], b);
  truncate_pair(a, b, static_cast<std::size_t>(room_ - (pair_ ? 3 : 2)));
  write_sentences(encoder_, a, b, pair_, room_, views[0], views[1], views[2]);
}

std::unique_ptr<Dataset> make_tsv(const DataOptions& options) {
  return std::make_unique<TsvDataset>(options);
}

}  // namespace

DatasetFormat tsv() {
  return {.make = make_tsv, .keys = kSplitKeys};
}

}  // namespace concertina::dataset_makers
