// Predicts the class of each word: the most likely class at the word's first token.
#include <algorithm>

#include "experiments/evaluate/predictions.h"
#include "experiments/evaluate/score_metrics.h"

namespace concertina {
namespace {

class TagPredictions final : public Predictions {
 public:
  TagPredictions(std::shared_ptr<const Dataset> dataset, Split split, std::size_t classes)
      : dataset_(std::move(dataset)),
        split_(split),
        classes_(classes),
        field_(static_cast<std::size_t>(field_index(*dataset_, "tags"))),
        tokens_(static_cast<std::size_t>(dataset_->fields()[field_].elements())) {}

  std::size_t size() const override { return tokens_; }
  void answer(std::uint64_t, std::span<const float> logits,
              std::span<double> numbers) const override {
    for (std::size_t t = 0; t < tokens_; ++t)
      numbers[t] = static_cast<double>(likeliest(logits.subspan(t * classes_, classes_)));
  }
  std::vector<Metric> metrics(std::span<const double> numbers) const override {
    const std::vector<TaggedPair> sentences = pairs(numbers);
    std::vector<Metric> metrics = class_metrics(confusion_of(sentences));
    const std::vector<Metric> names = entity_metrics(sentences, dataset_->classes());
    metrics.insert(metrics.end(), names.begin(), names.end());
    return metrics;
  }
  Confusion confusion(std::span<const double> numbers) const override {
    return confusion_of(pairs(numbers));
  }

 private:
  /// The tags of all words.
  std::vector<TaggedPair> pairs(std::span<const double> numbers) const {
    std::vector<TaggedPair> sentences(numbers.size() / tokens_);
    std::vector<std::int32_t> tags(tokens_);
    std::vector<View> views(dataset_->fields().size());
    views[field_] = {tags.data(), tokens_, DType::i32};
    for (std::size_t i = 0; i < sentences.size(); ++i) {
      dataset_->write({.split = split_, .sample = i}, views);
      for (std::size_t t = 0; t < tokens_; ++t) {
        if (tags[t] == kIgnored) continue;
        sentences[i].right.push_back(static_cast<std::size_t>(tags[t]));
        sentences[i].predicted.push_back(static_cast<std::size_t>(numbers[i * tokens_ + t]));
      }
    }
    return sentences;
  }
  Confusion confusion_of(std::span<const TaggedPair> sentences) const {
    Confusion counts(classes_);
    for (const TaggedPair& one : sentences)
      for (std::size_t w = 0; w < one.right.size(); ++w)
        ++counts.at(one.right[w], one.predicted[w]);
    return counts;
  }

  std::shared_ptr<const Dataset> dataset_;
  Split split_;
  std::size_t classes_, field_, tokens_;
};

}  // namespace

std::unique_ptr<Predictions> tag_predictions(std::shared_ptr<const Dataset> dataset, Split split,
                                             std::size_t classes) {
  return std::make_unique<TagPredictions>(std::move(dataset), split, classes);
}

}  // namespace concertina
