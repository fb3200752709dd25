#include "io/labelled/sentence_table.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.h"
#include "io/datasets/class_labels.h"
#include "io/datasets/sentences.h"
#include "io/datasets/windows.h"
#include "io/for_all.h"
#include "io/labelled/labelled_rows.h"
#include "io/labelled/table_text.h"
#include "io/labelled/tagged_words.h"
#include "io/labelled/target_lists.h"

namespace concertina {
namespace {

class SentenceTable final : public FileDataset {
 public:
  explicit SentenceTable(const DataOptions& options);

  std::span<const Field> fields() const override { return fields_; }
  std::int64_t vocabulary() const override { return encoder_.vocabulary(); }
  std::span<const std::string> classes() const override { return labels_.names; }
  const Splits* splits() const override { return &splits_; }
  std::uint64_t samples(Split split) const override { return splits_.size(split); }
  std::int64_t targets_before(Split split, std::uint64_t sample) const override {
    if (split == Split::test && rows_.labelled_rows() < rows_.rows().size()) return 0;
    return static_cast<std::int64_t>(sample) * (scores_.each > 0 ? scores_.each : 1);
  }
  bool repeats() const override { return true; }
  const Corpus& corpus() const override { return *files_.corpus; }
  std::string summary() const override {
    std::string items = rows_.is_pair() ? "pairs" : "sentences";
    if (kind_ == TargetKind::scores)
      items += fmt::format(" with {} scores", scores_.each);
    else if (rows_.has_labels())
      items += fmt::format(" of {} classes", labels_.names.size());
    return split_summary(corpus(), splits_, items, stratified_classes()) + rows_.summary();
  }
  void write(const SampleAt& at, std::span<const View> views) const override;
  void verify(const std::function<void()>& progress) const override;

 private:
  using Tokens = std::vector<std::int32_t>;
  /// Tokenizes the texts of a row. Throws Error{bad_input} naming its place if that fails.
  std::array<Tokens, 2> encoded(std::uint64_t row) const;
  void read_labels();
  void read_lists();
  /// Rows with several classes cannot be stratified.
  std::span<const std::string> stratified_classes() const {
    return kind_ == TargetKind::label ? std::span<const std::string>(labels_.names)
                                      : std::span<const std::string>();
  }
  /// Writes the row's label, or the first `most` of its scores.
  void write_target(std::uint64_t row, std::int64_t most, View target) const;
  /// Returns the class numbers of a row, or kIgnored if it has no label.
  std::vector<std::int32_t> classes_of(std::uint64_t row) const;
  std::vector<ItemKey> row_keys() const;

  SplitFiles files_;
  SentenceEncoder encoder_;
  std::int64_t room_;
  TargetKind kind_;
  std::string separator_;
  std::vector<std::string> order_;  // of classes
  LabelledRows rows_;
  ClassLabels labels_;  // names of all classes; class numbers if each row has one label
  ScoreRows scores_;    // if rows have scores or several labels
  Splits splits_;
  std::vector<Field> fields_;
};

SentenceTable::SentenceTable(const DataOptions& options)
    : files_(split_files(options)),
      encoder_(options.tokenizer),
      room_(options.tokens_per_sample),
      kind_(options.targets),
      separator_(options.own<std::string>("label_separator")),
      order_(options.class_names),
      rows_(options),
      fields_{tokens_field(room_), types_field(room_), lengths_field()} {
  std::array<std::uint64_t, 3> counts{};
  // An imported run has no dataset; all rows are used for evaluation.
  const bool all_tested = options.most_overlap >= 1 && options.files == options.test_files;
  for (std::size_t split = 0; split < 3; ++split) {
    const std::size_t before = rows_.rows().size();
    const bool evaluated = split == static_cast<std::size_t>(Split::test) || all_tested;
    for (const std::string& path : files_.of[split])
      rows_.read(path, evaluated && options.own<bool>("missing_classes"));
    counts[split] = rows_.rows().size() - before;
    if (rows_.labelled_rows() > before && rows_.labelled_rows() < rows_.rows().size())
      throw_input("only some of the files have labels", files_.of[split].back(),
                  "use files of the same kind");
  }
  const bool pair = rows_.is_pair();
  if (const std::int64_t least = encoder_.marks(pair) + (pair ? 2 : 1); room_ < least)
    throw_input(
        fmt::format("a sample of {} tokens has no space for a sentence and its marks", room_),
        "model.context", fmt::format("use at least {} tokens", least));
  if (rows_.has_labels()) {
    kind_ == TargetKind::label ? read_labels() : read_lists();
    fields_.push_back(kind_ == TargetKind::label ? label_field() : scores_field(scores_.each));
  }
  const std::vector<ItemKey> keys = row_keys();
  ItemFacts facts{.keys = keys, .classes = stratified_classes(), .words = {.item = "row"}};
  facts.names = labels_.names;
  if (!labels_.names.empty()) facts.classes_of = [this](auto row) { return classes_of(row); };
  facts.place_of = [this](auto row) { return rows_.place_of(row); };
  splits_ = split_items(options, counts, facts);
}

void SentenceTable::read_lists() {
  if (separator_.empty())
    throw_input("missing label separator", "data.label_separator", "use \",\" or \"|\"");
  std::vector<CellText> cells;
  for (const LabelledRow& row : rows_.rows().first(rows_.labelled_rows()))
    cells.push_back(row.label);
  const auto place = [this](std::size_t row) { return rows_.place_of(row); };
  scores_ = kind_ == TargetKind::scores ? read_scores(cells, separator_, place)
                                        : read_label_sets(cells, separator_, place, order_);
  labels_.names = scores_.names;
  if (scores_.each == 0) scores_.each = std::max<std::int64_t>(1, std::ssize(order_));
  scores_.values.resize(rows_.rows().size() * static_cast<std::size_t>(scores_.each), kNoScore);
}

void SentenceTable::read_labels() {
  std::vector<std::string_view> labels;
  for (std::size_t row = 0; row < rows_.labelled_rows(); ++row) {
    const CellText& label = rows_.rows()[row].label;
    if (label.kind == CellText::Kind::nested)
      throw_input("the label is a list, not a class", rows_.place_of(row), "use one class per row");
    labels.push_back(label.text);
  }
  labels_ = number_classes(
      labels, [this](std::size_t row) { return rows_.place_of(row); }, order_);
  labels_.numbers.resize(rows_.rows().size(), kIgnored);
}

std::vector<std::int32_t> SentenceTable::classes_of(std::uint64_t row) const {
  if (kind_ == TargetKind::label) return {labels_.numbers[row]};
  std::vector<std::int32_t> classes;
  for (std::size_t c = 0; c < labels_.names.size(); ++c)
    if (scores_.values[row * labels_.names.size() + c] > 0)
      classes.push_back(static_cast<std::int32_t>(c));
  return classes;
}

std::vector<ItemKey> SentenceTable::row_keys() const {
  std::vector<ItemKey> keys;
  keys.reserve(rows_.rows().size());
  for (std::size_t row = 0; row < rows_.rows().size(); ++row)
    keys.push_back({row_hash(rows_.rows()[row], rows_.is_pair()),
                    kind_ == TargetKind::label && !labels_.names.empty() ? labels_.numbers[row] : 0,
                    exact_hash(rows_.rows()[row])});
  return keys;
}

void SentenceTable::write_target(std::uint64_t row, std::int64_t most, View target) const {
  if (kind_ == TargetKind::label) {
    *target.i32() = most > 0 ? labels_.numbers[row] : kIgnored;
    return;
  }
  for (std::int64_t i = 0; i < scores_.each; ++i)
    target.f32()[i] = i < most ? scores_.values[row * static_cast<std::uint64_t>(scores_.each) +
                                                static_cast<std::uint64_t>(i)]
                               : kNoScore;
}

std::array<SentenceTable::Tokens, 2> SentenceTable::encoded(std::uint64_t row) const {
  std::array<Tokens, 2> tokens;
  try {
    for (std::size_t i = 0; i < (rows_.is_pair() ? 2 : 1); ++i)
      encoder_.encode(rows_.rows()[row].text[i], tokens[i]);
  } catch (const Error& error) {
    throw_input(error.message(), rows_.place_of(row), error.fix());
  }
  return tokens;
}

void SentenceTable::verify(const std::function<void()>& progress) const {
  for_all(rows_.rows().size(), progress, [this](std::size_t row) { encoded(row); });
}

void SentenceTable::write(const SampleAt& at, std::span<const View> views) const {
  const std::uint64_t item = splits_.item(at.split, at.sample);
  const bool pair = rows_.is_pair();
  if (views.size() > 3 && !views[3].empty()) write_target(item, at.most, views[3]);
  if (views[0].empty() && views[1].empty() && views[2].empty()) return;
  auto [a, b] = encoded(item);
  truncate_pair(a, b, static_cast<std::size_t>(room_ - encoder_.marks(pair)));
  write_sentences(encoder_, a, b, pair, room_, views[0], views[1], views[2]);
}

std::unique_ptr<Dataset> sentence_table(const DataOptions& options) {
  if (options.targets != TargetKind::tags) return std::make_unique<SentenceTable>(options);
  if (options.format != "jsonl")
    throw_input(
        fmt::format("a row of {} has one label, but this task needs one per word", options.format),
        "data.format", "use \"conll\", or \"jsonl\" with lists of words and of classes");
  return tagged_words(options);
}

/// Creates the dataset that data.documents selects.
std::unique_ptr<Dataset> table_dataset(const DataOptions& options) {
  return options.documents == "alone" ? sentence_table(options) : table_text(options);
}

/// Like windows_vary(), if rows are documents of one long text.
std::optional<Variation> rows_vary(const DataOptions& options) {
  return options.documents == "joined" ? windows_vary(options) : std::nullopt;
}

std::vector<Option> table_options() {
  return joined(
      {window_options(),
       split_options(),
       {{"text_columns", std::vector<std::string>{},
         "table column with the sentence, or the two columns of a pair; empty: the "
         "columns of the GLUE tasks, sentence, text, ..."},
        {"label_column", std::string(),
         "table column with the label; empty: label, gold_label, "
         "is_duplicate, Quality or score (in multi-label tasks, labels; for classes of words, "
         "ner_tags, tags, labels or pos_tags)"},
        {"label_separator", std::string(","),
         "separator of labels or scores in a table cell; not used for JSON "
         "lists"}}});
}

}  // namespace

std::vector<Option> header_option() {
  return {{"header", true,
           "whether the first row of a table names the columns; if not, they are named 1, 2, ..."}};
}

DatasetFormat table_format(std::vector<Option> own) {
  return {.make = table_dataset,
          .varies = rows_vary,
          .keys = {"data.test", "data.documents"},
          .options = joined({table_options(), std::move(own)})};
}

}  // namespace concertina
