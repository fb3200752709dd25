// Predicts the class of each sample, or of each word at its first token: the most likely class.
#include "core/error.h"
#include "experiments/evaluate/predictions.h"
#include "experiments/evaluate/score_metrics.h"

namespace concertina {
namespace {

class ClassPredictions final : public Predictions {
 public:
  ClassPredictions(std::shared_ptr<const Dataset> dataset, Split split, bool words,
                   std::size_t classes)
      : dataset_(std::move(dataset)),
        split_(split),
        words_(words),
        classes_(classes),
        field_(static_cast<std::size_t>(field_index(*dataset_, words ? "tags" : "label"))),
        rows_(static_cast<std::size_t>(dataset_->fields()[field_].elements())) {}

  std::size_t size() const override { return rows_; }
  void answer(std::uint64_t, std::span<const float> logits,
              std::span<double> numbers) const override {
    for (std::size_t row = 0; row < rows_; ++row)
      numbers[row] = static_cast<double>(likeliest(logits.subspan(row * classes_, classes_)));
  }
  std::vector<Metric> metrics(std::span<const double> numbers) const override {
    const std::vector<TaggedPair> samples = pairs(numbers);
    std::vector<Metric> metrics = class_metrics(confusion_of(samples));
    if (!words_) return metrics;
    const std::vector<Metric> names = entity_metrics(samples, dataset_->classes());
    metrics.insert(metrics.end(), names.begin(), names.end());
    return metrics;
  }
  Confusion confusion(std::span<const double> numbers) const override {
    return confusion_of(pairs(numbers));
  }

 private:
  /// The classes of each sample, or of its words.
  std::vector<TaggedPair> pairs(std::span<const double> numbers) const {
    std::vector<TaggedPair> samples(numbers.size() / rows_);
    std::vector<std::int32_t> labels(rows_);
    std::vector<View> views(dataset_->fields().size());
    views[field_] = {labels.data(), rows_, DType::i32};
    for (std::size_t i = 0; i < samples.size(); ++i) {
      dataset_->write({.split = split_, .sample = i}, views);
      for (std::size_t row = 0; row < rows_; ++row) {
        if (labels[row] == kIgnored) continue;
        samples[i].right.push_back(static_cast<std::size_t>(labels[row]));
        samples[i].predicted.push_back(static_cast<std::size_t>(numbers[i * rows_ + row]));
      }
    }
    return samples;
  }
  Confusion confusion_of(std::span<const TaggedPair> samples) const {
    Confusion counts(classes_);
    for (const TaggedPair& one : samples)
      for (std::size_t w = 0; w < one.right.size(); ++w) {
        CONCERTINA_CHECK(one.right[w] < classes_, "label {}", one.right[w]);
        ++counts.at(one.right[w], one.predicted[w]);
      }
    return counts;
  }

  std::shared_ptr<const Dataset> dataset_;
  Split split_;
  bool words_;
  std::size_t classes_, field_, rows_;
};

}  // namespace

std::unique_ptr<Predictions> class_predictions(std::shared_ptr<const Dataset> dataset, Split split,
                                               bool words, std::size_t classes) {
  return std::make_unique<ClassPredictions>(std::move(dataset), split, words, classes);
}

}  // namespace concertina
