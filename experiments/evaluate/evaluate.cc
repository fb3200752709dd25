#include "experiments/evaluate/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/clock.h"
#include "core/error.h"
#include "core/number_text.h"
#include "experiments/machine/gather.h"
#include "io/datasets/questions.h"
#include "io/squad_score.h"

namespace concertina {
namespace {

/// Accuracy: the likeliest class is the label.
class ClassPredictions final : public Predictions {
 public:
  ClassPredictions(std::shared_ptr<const Dataset> dataset, Split split)
      : dataset_(std::move(dataset)), split_(split), views_(dataset_->fields().size()) {
    views_[static_cast<std::size_t>(field_index(*dataset_, "label"))] = {&label_, 1, DType::i32};
  }

  std::size_t size() const override { return 1; }
  void answer(std::uint64_t, std::span<const float> logits,
              std::span<double> numbers) const override {
    numbers[0] = static_cast<double>(std::ranges::max_element(logits) - logits.begin());
  }
  std::vector<Metric> metrics(std::span<const double> numbers) const override {
    std::size_t right = 0, all = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      dataset_->write({.split = split_, .sample = i}, views_);
      if (label_ < 0) continue;
      ++all;
      right += static_cast<std::int32_t>(numbers[i]) == label_ ? 1 : 0;
    }
    return {{"accuracy", static_cast<double>(right) / static_cast<double>(all)}};
  }

 private:
  std::shared_ptr<const Dataset> dataset_;
  Split split_;
  mutable std::int32_t label_ = 0;
  std::vector<View> views_;
};

/// Exact match and F1 of the likeliest span of a question: of the 20 likeliest starts and ends of
/// each of its samples, at most 30 tokens long (Devlin et al. 2019, as their released code has it).
class SpanPredictions final : public Predictions {
 public:
  SpanPredictions(std::shared_ptr<const Dataset> dataset, const QuestionAnswers& questions,
                  Split split)
      : dataset_(std::move(dataset)), questions_(questions), split_(split) {}

  std::size_t size() const override { return kNumbers; }
  void answer(std::uint64_t sample, std::span<const float> logits,
              std::span<double> numbers) const override;
  std::vector<Metric> metrics(std::span<const double> numbers) const override;

 private:
  enum Number { kStart, kEnd, kScore, kNumbers };  // a start of -1: no span of the text
  static constexpr std::size_t kLikeliest = 20;
  static constexpr std::int32_t kLongest = 30;

  struct Span {
    std::int32_t start = -1, end = -1;
    double score = 0;
  };
  /// The places with the largest logits of column `column` of logits[T,2], best first.
  static std::vector<std::int32_t> likeliest(std::span<const float> logits, std::size_t column);

  std::shared_ptr<const Dataset> dataset_;
  const QuestionAnswers& questions_;
  Split split_;
};

std::vector<std::int32_t> SpanPredictions::likeliest(std::span<const float> logits,
                                                     std::size_t column) {
  std::vector<std::int32_t> places(logits.size() / 2);
  std::iota(places.begin(), places.end(), 0);
  const auto most = std::min(kLikeliest, places.size());
  std::ranges::stable_sort(places, std::greater(), [&](std::int32_t t) {
    return logits[static_cast<std::size_t>(t) * 2 + column];
  });
  places.resize(most);
  return places;
}

void SpanPredictions::answer(std::uint64_t sample, std::span<const float> logits,
                             std::span<double> numbers) const {
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

std::vector<Metric> SpanPredictions::metrics(std::span<const double> numbers) const {
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

bool reads(std::span<const Field> fields, std::string_view name) {
  return std::ranges::any_of(fields, [&](const Field& field) { return field.name == name; });
}

}  // namespace

std::unique_ptr<Predictions> make_predictions(std::span<const Field> fields,
                                              std::shared_ptr<const Dataset> dataset, Split split) {
  if (reads(fields, "label")) return std::make_unique<ClassPredictions>(std::move(dataset), split);
  const QuestionAnswers* questions = questions_of(*dataset);
  if (reads(fields, "start") && questions != nullptr)
    return std::make_unique<SpanPredictions>(std::move(dataset), *questions, split);
  return nullptr;
}

std::string text_share(const Validation& validation) {
  if (validation.targets == validation.of) return grouped(validation.of) + " targets";
  return fmt::format("{} of {} targets", grouped(validation.targets), grouped(validation.of));
}

std::string metrics_text(const Validation& validation) {
  std::string text;
  for (const Metric& metric : validation.metrics)
    text += fmt::format(", {} {:.2f}%", metric.name, 100 * metric.value);
  return text;
}

namespace {

/// Sends the model's answers to held-out samples, from the ranks of last stages to all.
class Answers {
 public:
  Answers(Trainer& trainer, const std::shared_ptr<const Dataset>& dataset, Split split,
          const SampleLogits& see)
      : trainer_(trainer),
        see_(see),
        predictions_(make_predictions(fields_of(trainer.job().model), dataset, split)) {}

  /// The next batch begins with sample `first` and has `count` samples.
  void begin(std::int64_t first, std::int64_t count) {
    first_ = first;
    count_ = count;
    if (predictions_ != nullptr)
      mine_.assign(static_cast<std::size_t>(count) * predictions_->size(), 0);
  }
  /// For Trainer::evaluate().
  std::function<void(int, View)> see() {
    if (predictions_ == nullptr && !see_) return {};
    return [this](int microbatch, View logits) { take(microbatch, logits); };
  }
  /// Collective.
  void gather() {
    if (predictions_ == nullptr) return;
    const std::vector<double> all = gather_values(trainer_.world(), mine_);
    std::vector<double> sums(mine_.size());
    for (std::size_t i = 0; i < all.size(); ++i) sums[i % sums.size()] += all[i];
    all_.insert(all_.end(), sums.begin(), sums.end());
  }
  std::vector<Metric> metrics() const {
    return predictions_ == nullptr ? std::vector<Metric>() : predictions_->metrics(all_);
  }

 private:
  void take(int microbatch, View logits) {
    const std::int64_t samples = trainer_.job().model.samples;
    const std::vector<float> values =
        to_floats(host_view(trainer_.tensor_memory(), logits, scratch_));
    const std::size_t each = values.size() / static_cast<std::size_t>(samples);
    for (std::int64_t s = 0; s < samples; ++s) {
      const std::int64_t at = microbatch * samples + s;
      if (at >= count_) return;  // padding
      const auto sample = static_cast<std::uint64_t>(first_ + at);
      const auto logits_of_it = std::span(values).subspan(static_cast<std::size_t>(s) * each, each);
      if (see_) see_(sample, logits_of_it);
      if (predictions_ == nullptr) continue;
      const std::size_t size = predictions_->size();
      predictions_->answer(sample, logits_of_it,
                           std::span(mine_).subspan(static_cast<std::size_t>(at) * size, size));
    }
  }

  Trainer& trainer_;
  const SampleLogits& see_;
  std::unique_ptr<Predictions> predictions_;
  std::int64_t first_ = 0, count_ = 0;
  std::vector<double> mine_, all_;  // of this batch, 0 where another rank answers; of all samples
  std::vector<std::byte> scratch_;
};

}  // namespace

Validation evaluate(Trainer& trainer, std::shared_ptr<const Dataset> dataset,
                    const HeldOut& held_out, const std::function<bool()>& stop,
                    const SampleLogits& see) {
  const double start = now();
  const Job& job = trainer.job();
  const std::int64_t samples = job.batch(), microbatch = job.model.samples;
  Validation result;
  result.of = dataset->targets(held_out.split);
  result.tokens = field_index(*dataset, "targets") >= 0;
  Answers answers(trainer, dataset, held_out.split, see);
  ValidationSource source(std::move(dataset), samples, held_out.batches * kEvaluationBatch,
                          held_out.split);
  const int together = trainer.assignment().batches;
  for (std::int64_t batch = 0; batch < source.batches(); batch += together) {
    // Microbatches of nothing but padding are left out.
    std::int64_t valid = 0;
    for (std::int64_t b = batch; b < std::min(batch + together, source.batches()); ++b)
      valid += source.samples(b);
    const auto count = static_cast<int>((valid + microbatch - 1) / microbatch);
    answers.begin(batch * samples, valid);
    result.samples += valid;
    const std::vector<double>& mine = trainer.evaluate(batch, count, source, answers.see());
    if (trainer.watchdog() != nullptr) trainer.watchdog()->at("gather of held-out losses");
    const std::vector<double> all = gather_values(trainer.world(), mine);
    // One rank has a microbatch's loss, the others have 0: this order of sums is the microbatches'.
    for (std::size_t m = 0; m < mine.size(); ++m)
      for (std::size_t i = m; i < all.size(); i += mine.size()) result.loss += all[i];
    answers.gather();
    if (stop && stop()) break;
  }
  result.targets = source.targets();
  if (result.targets > 0) result.loss /= static_cast<double>(result.targets);
  if (result.targets > 0) result.metrics = answers.metrics();
  result.seconds = now() - start;
  return result;
}

void require_finite(const Validation& validation, std::int64_t step) {
  if (std::isfinite(validation.loss)) return;
  throw_failure(fmt::format("the held-out loss is {}: the weights have diverged",
                            number_text(validation.loss)),
                fmt::format("step {}", step),
                "a lower optimizer.lr or a longer lr.warmup, in a run of another run.name");
}

}  // namespace concertina
