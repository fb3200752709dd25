#include "io/datasets/sentence_table.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.h"
#include "io/datasets/class_labels.h"
#include "io/datasets/labelled_rows.h"
#include "io/datasets/sentences.h"
#include "io/datasets/table_text.h"
#include "io/datasets/windows.h"

namespace concertina {
namespace {

class SentenceTable final : public Dataset {
 public:
  SentenceTable(std::string_view format, const DataOptions& options);

  std::span<const Field> fields() const override { return fields_; }
  std::int64_t vocabulary() const override { return encoder_.vocabulary(); }
  std::span<const std::string> classes() const override { return labels_.names; }
  const Splits* splits() const override { return &splits_; }
  std::uint64_t samples(Split split) const override { return splits_.size(split); }
  std::int64_t targets_before(Split /*split*/, std::uint64_t sample) const override {
    return static_cast<std::int64_t>(sample);
  }
  bool repeats() const override { return true; }
  const Corpus& corpus() const override { return *files_.corpus; }
  std::string summary() const override {
    std::string items = rows_.is_pair() ? "pairs" : "sentences";
    if (rows_.has_labels()) items += fmt::format(" of {} classes", labels_.names.size());
    return split_summary(corpus(), splits_, items, labels_.names) + rows_.summary();
  }
  void write(const SampleAt& at, std::span<const View> views) const override;

 private:
  void read_labels();
  void check_held_out(std::size_t training_rows) const;
  std::vector<ItemKey> row_keys() const;

  SplitFiles files_;
  SentenceEncoder encoder_;
  std::int64_t room_;
  LabelledRows rows_;
  ClassLabels labels_;
  Splits splits_;
  std::vector<Field> fields_;
};

SentenceTable::SentenceTable(std::string_view format, const DataOptions& options)
    : files_(split_files(options)),
      encoder_(options.tokenizer),
      room_(options.tokens_per_sample),
      rows_(format, options),
      fields_{tokens_field(room_), types_field(room_), lengths_field()} {
  std::array<std::uint64_t, 3> counts{};
  for (std::size_t split = 0; split < 3; ++split) {
    const std::size_t before = rows_.rows().size();
    for (const std::string& path : files_.of[split]) rows_.read(path);
    counts[split] = rows_.rows().size() - before;
  }
  const bool pair = rows_.is_pair();
  if (const std::int64_t least = encoder_.marks(pair) + (pair ? 2 : 1); room_ < least)
    throw_input(
        fmt::format("a sample of {} tokens has no room for a sentence and its marks", room_),
        "model.context", fmt::format("at least {} tokens", least));
  if (rows_.has_labels()) {
    fields_.push_back(label_field());
    read_labels();
    check_held_out(counts[0]);
  }
  const std::vector<ItemKey> keys = row_keys();
  splits_ = split_items(options, counts,
                        {.keys = keys, .classes = labels_.names, .words = {.item = "row"}});
}

void SentenceTable::read_labels() {
  std::vector<std::string_view> labels;
  for (std::size_t row = 0; row < rows_.rows().size(); ++row) {
    const CellText& label = rows_.rows()[row].label;
    if (label.kind == CellText::Kind::nested)
      throw_input("the label is a list, not a class", rows_.place_of(row), "one class in each row");
    labels.push_back(label.text);
  }
  labels_ = number_classes(labels, [this](std::size_t row) { return rows_.place_of(row); });
}

/// No class is in the held-out files alone.
void SentenceTable::check_held_out(std::size_t training_rows) const {
  std::vector<bool> trained(labels_.names.size());
  for (std::size_t row = 0; row < labels_.numbers.size(); ++row) {
    const auto label = static_cast<std::size_t>(labels_.numbers[row]);
    if (row < training_rows)
      trained[label] = true;
    else if (!trained[label])
      throw_input(fmt::format("the label '{}' is that of no row of data.files",
                              rows_.rows()[row].label.text.substr(0, 60)),
                  rows_.place_of(row), "labels that the model is trained on");
  }
}

std::vector<ItemKey> SentenceTable::row_keys() const {
  std::vector<ItemKey> keys;
  keys.reserve(rows_.rows().size());
  for (std::size_t row = 0; row < rows_.rows().size(); ++row)
    keys.push_back({row_hash(rows_.rows()[row], rows_.is_pair()),
                    rows_.has_labels() ? labels_.numbers[row] : 0});
  return keys;
}

void SentenceTable::write(const SampleAt& at, std::span<const View> views) const {
  const std::uint64_t item = splits_.item(at.split, at.sample);
  const LabelledRow& row = rows_.rows()[item];
  const bool pair = rows_.is_pair();
  if (views.size() > 3 && !views[3].empty())
    *views[3].i32() = at.most > 0 ? labels_.numbers[item] : kIgnored;
  if (views[0].empty() && views[1].empty() && views[2].empty()) return;
  std::vector<std::int32_t> a, b;
  encoder_.encode(row.text[0], a);
  if (pair) encoder_.encode(row.text[1], b);
  truncate_pair(a, b, static_cast<std::size_t>(room_ - encoder_.marks(pair)));
  write_sentences(encoder_, a, b, pair, room_, views[0], views[1], views[2]);
}

}  // namespace

std::unique_ptr<Dataset> sentence_table(std::string_view format, const DataOptions& options) {
  return std::make_unique<SentenceTable>(format, options);
}

std::unique_ptr<Dataset> table_dataset(std::string_view format, const DataOptions& options) {
  return options.documents == "alone" ? sentence_table(format, options)
                                      : table_text(format, options);
}

std::optional<Variation> rows_vary(const DataOptions& options) {
  return options.documents == "alone" ? std::nullopt : windows_vary(options);
}

}  // namespace concertina
