// Scores of samples, or sets of classes whose probability is above one half, that is, whose logit
// is above 0.
#include "experiments/evaluate/predictions.h"
#include "experiments/evaluate/score_metrics.h"

namespace concertina {
namespace {

class ScorePredictions final : public Predictions {
 public:
  ScorePredictions(std::shared_ptr<const Dataset> dataset, Split split, std::size_t scores,
                   bool labels)
      : dataset_(std::move(dataset)), split_(split), scores_(scores), labels_(labels) {}

  std::size_t size() const override { return scores_; }
  void answer(std::uint64_t, std::span<const float> logits,
              std::span<double> numbers) const override {
    for (std::size_t k = 0; k < scores_; ++k)
      numbers[k] = labels_ ? (logits[k] > 0 ? 1 : 0) : static_cast<double>(logits[k]);
  }
  std::vector<Metric> metrics(std::span<const double> numbers) const override {
    std::vector<double> right;
    std::vector<float> scores(scores_);
    std::vector<View> views(dataset_->fields().size());
    if (!numbers.empty())
      views[static_cast<std::size_t>(field_index(*dataset_, "scores"))] = {scores.data(), scores_,
                                                                           DType::f32};
    for (std::size_t i = 0; i < numbers.size() / scores_; ++i) {
      dataset_->write({.split = split_, .sample = i}, views);
      right.insert(right.end(), scores.begin(), scores.end());
    }
    return (labels_ ? label_set_metrics : regression_metrics)(numbers, right, scores_);
  }

 private:
  std::shared_ptr<const Dataset> dataset_;
  Split split_;
  std::size_t scores_;
  bool labels_;
};

}  // namespace

std::unique_ptr<Predictions> score_predictions(std::shared_ptr<const Dataset> dataset, Split split,
                                               std::size_t scores, bool labels) {
  return std::make_unique<ScorePredictions>(std::move(dataset), split, scores, labels);
}

}  // namespace concertina
