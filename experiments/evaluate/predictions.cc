#include "experiments/evaluate/predictions.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "io/labelled/questions.h"
#include "io/squad_score.h"
#include "models/task.h"

namespace concertina {
namespace {

/// Predicts the class of each sample, or of each word at its first token: the most likely class.
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

/// Scores of samples, or sets of classes whose probability is above one half, that is, whose logit
/// is above 0.
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

/// Answers to questions, scored as in SQuAD's script: exact match and F1 of each question's most
/// likely span of at most 30 tokens, from the 20 most likely starts and ends in each of its samples
/// (Devlin et al. 2019, released code).
class SpanPredictions final : public Predictions {
 public:
  SpanPredictions(std::shared_ptr<const Dataset> dataset, const QuestionAnswers& questions,
                  Split split)
      : dataset_(std::move(dataset)), questions_(questions), split_(split) {}

  std::size_t size() const override { return kNumbers; }
  void answer(std::uint64_t sample, std::span<const float> logits,
              std::span<double> numbers) const override {
    std::vector<Span> spans;
    const std::vector<std::int32_t> ends = likeliest(logits, 1);
    for (const std::int32_t start : likeliest(logits, 0))
      for (const std::int32_t end : ends)
        if (end >= start && end < start + kLongest)
          spans.push_back({start, end,
                           static_cast<double>(logits[static_cast<std::size_t>(start) * 2]) +
                               static_cast<double>(logits[static_cast<std::size_t>(end) * 2 + 1])});
    std::ranges::stable_sort(spans, std::greater(), &Span::score);
    const auto best = std::ranges::find_if(spans, [&](const Span& span) {
      return !questions_.text(split_, sample, span.start, span.end).empty();
    });
    const Span found = best == spans.end() ? Span() : *best;
    numbers[kStart] = found.start;
    numbers[kEnd] = found.end;
    numbers[kScore] = found.score;
  }
  std::vector<Metric> metrics(std::span<const double> numbers) const override {
    const std::size_t samples = numbers.size() / kNumbers;
    double exact = 0, f1 = 0;
    std::size_t asked = 0;
    for (std::size_t first = 0, last = 0; first < samples; first = last) {
      const std::uint64_t question = questions_.question(split_, first);
      std::string answer;
      double score = 0;
      for (last = first; last < samples && questions_.question(split_, last) == question; ++last) {
        const std::span<const double> one = numbers.subspan(last * kNumbers, kNumbers);
        if (one[kStart] < 0 || (!answer.empty() && one[kScore] <= score)) continue;
        score = one[kScore];
        answer = questions_.text(split_, last, static_cast<std::int32_t>(one[kStart]),
                                 static_cast<std::int32_t>(one[kEnd]));
      }
      const AnswerScore scored = score_answer(answer, questions_.answers(split_, question));
      exact += scored.exact;
      f1 += scored.f1;
      ++asked;
    }
    const auto count = static_cast<double>(asked);
    return {{"exact_match", exact / count}, {"f1", f1 / count}};
  }

 private:
  enum Number { kStart, kEnd, kScore, kNumbers };  // a start of -1: no span contains text
  static constexpr std::size_t kLikeliest = 20;
  static constexpr std::int32_t kLongest = 30;

  struct Span {
    std::int32_t start = -1, end = -1;
    double score = 0;
  };
  /// The positions of the largest logits in column `column` of logits[T,2], best first.
  static std::vector<std::int32_t> likeliest(std::span<const float> logits, std::size_t column) {
    std::vector<std::int32_t> places(logits.size() / 2);
    std::iota(places.begin(), places.end(), 0);
    const auto most = std::min(kLikeliest, places.size());
    std::ranges::stable_sort(places, std::greater(), [&](std::int32_t t) {
      return logits[static_cast<std::size_t>(t) * 2 + column];
    });
    places.resize(most);
    return places;
  }

  std::shared_ptr<const Dataset> dataset_;
  const QuestionAnswers& questions_;
  Split split_;
};

}  // namespace

std::unique_ptr<Predictions> make_predictions(const RunConfig& config, std::span<const Field> reads,
                                              std::shared_ptr<const Dataset> dataset, Split split) {
  const auto has = [&](std::string_view name) {
    return std::ranges::find(reads, name, &Field::name) != reads.end();
  };
  const auto classes = static_cast<std::size_t>(config.model.classes);
  if (has("label") || has("tags"))
    return std::make_unique<ClassPredictions>(std::move(dataset), split, /*words=*/!has("label"),
                                              classes);
  if (has("scores"))
    return std::make_unique<ScorePredictions>(
        std::move(dataset), split, classes,
        task_of(config.model.family, config.model.task).targets == TargetKind::labels);
  const QuestionAnswers* questions = dataset->questions();
  if (has("start") && questions != nullptr)
    return std::make_unique<SpanPredictions>(std::move(dataset), *questions, split);
  return nullptr;
}

}  // namespace concertina
