// Answers to questions, scored as in SQuAD's script.
#include <algorithm>
#include <numeric>

#include "experiments/evaluate/predictions.h"
#include "io/labelled/questions.h"
#include "io/squad_score.h"

namespace concertina {
namespace {

/// Exact match and F1 of each question's most likely span of at most 30 tokens, from the 20 most
/// likely starts and ends in each of its samples (Devlin et al. 2019, released code).
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
  enum Number { kStart, kEnd, kScore, kNumbers };  // a start of -1: no span contains text
  static constexpr std::size_t kLikeliest = 20;
  static constexpr std::int32_t kLongest = 30;

  struct Span {
    std::int32_t start = -1, end = -1;
    double score = 0;
  };
  /// The positions of the largest logits in column `column` of logits[T,2], best first.
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

}  // namespace

std::unique_ptr<Predictions> span_predictions(std::shared_ptr<const Dataset> dataset,
                                              const QuestionAnswers& questions, Split split) {
  return std::make_unique<SpanPredictions>(std::move(dataset), questions, split);
}

}  // namespace concertina
