// Predicts the class of each sample: the most likely class.
#include <algorithm>

#include "core/error.h"
#include "experiments/evaluate/predictions.h"

namespace concertina {
namespace {

class ClassPredictions final : public Predictions {
 public:
  ClassPredictions(std::shared_ptr<const Dataset> dataset, Split split, std::size_t classes)
      : dataset_(std::move(dataset)),
        split_(split),
        classes_(classes),
        views_(dataset_->fields().size()) {
    views_[static_cast<std::size_t>(field_index(*dataset_, "label"))] = {&label_, 1, DType::i32};
  }

  std::size_t size() const override { return 1; }
  void answer(std::uint64_t, std::span<const float> logits,
              std::span<double> numbers) const override {
    numbers[0] = static_cast<double>(likeliest(logits));
  }
  std::vector<Metric> metrics(std::span<const double> numbers) const override {
    return class_metrics(confusion(numbers));
  }
  Confusion confusion(std::span<const double> numbers) const override {
    Confusion counts(classes_);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      dataset_->write({.split = split_, .sample = i}, views_);
      CONCERTINA_CHECK(label_ < static_cast<std::int64_t>(classes_), "label {}", label_);
      if (label_ >= 0)
        ++counts.at(static_cast<std::size_t>(label_), static_cast<std::size_t>(numbers[i]));
    }
    return counts;
  }

 private:
  std::shared_ptr<const Dataset> dataset_;
  Split split_;
  std::size_t classes_;
  mutable std::int32_t label_ = 0;
  std::vector<View> views_;
};

}  // namespace

std::unique_ptr<Predictions> class_predictions(std::shared_ptr<const Dataset> dataset, Split split,
                                               std::size_t classes) {
  return std::make_unique<ClassPredictions>(std::move(dataset), split, classes);
}

}  // namespace concertina
