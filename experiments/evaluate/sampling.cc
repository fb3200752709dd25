#include "experiments/evaluate/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/error.h"
#include "core/index.h"
#include "parallel/runtime/step_sums.h"

namespace concertina {
namespace {

/// A token that can be chosen, with its score and then its weight: a probability, up to a factor.
struct Choice {
  std::int32_t token = 0;
  double score = 0, weight = 0;
};

bool is_better(const Choice& a, const Choice& b) {
  return a.score != b.score ? a.score > b.score : a.token < b.token;
}

double log_sum_exp(std::span<const float> logits) {
  const double top = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - top);
  return top + std::log(sum);
}

/// Lowers the scores of the tokens of the text (Keskar et al. 2019, CTRL, section 4.1).
void penalize(std::span<const std::int32_t> text, double penalty, std::vector<Choice>& choices) {
  std::vector<std::int32_t> tokens(text.begin(), text.end());
  std::ranges::sort(tokens);
  const auto [first, last] = std::ranges::unique(tokens);
  tokens.erase(first, last);
  for (const std::int32_t token : tokens) {
    if (std::cmp_greater_equal(token, choices.size())) break;
    double& score = choices[at(token)].score;
    score = score > 0 ? score / penalty : score * penalty;
  }
}

/// Keeps the k best, and those as good as the last of them.
void keep_top(std::int64_t k, std::vector<Choice>& choices) {
  if (k <= 0 || std::cmp_greater_equal(k, choices.size())) return;
  const auto last = choices.begin() + (k - 1);
  std::ranges::nth_element(choices, last, is_better);
  const double least = last->score;
  std::erase_if(choices, [&](const Choice& choice) { return choice.score < least; });
}

/// Keeps the best until their probabilities add up to `share` (Holtzman et al. 2020).
void keep_nucleus(double share, std::vector<Choice>& choices) {
  if (share >= 1) return;
  std::ranges::sort(choices, is_better);
  double all = 0, above = 0;
  for (const Choice& choice : choices) all += choice.weight;
  std::size_t kept = 0;
  for (; kept < choices.size() && (kept == 0 || above < share * all); ++kept)
    above += choices[kept].weight;
  choices.resize(kept);
}

}  // namespace

SampledToken sample_token(std::span<const float> logits, std::span<const std::int32_t> text,
                          const GenerateSection& options, double uniform) {
  if (!std::ranges::all_of(logits, [](float logit) { return std::isfinite(logit); }))
    throw_failure("the model's predictions are not finite: it has diverged", "generate",
                  kDivergedAdvice);
  std::vector<Choice> choices(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i)
    choices[i] = {static_cast<std::int32_t>(i), logits[i], 0};
  if (options.repetition_penalty != 1) penalize(text, options.repetition_penalty, choices);
  const auto chosen = [&](std::int32_t token) {
    return SampledToken{token, logits[at(token)] - log_sum_exp(logits)};
  };
  const double best = std::ranges::min_element(choices, is_better)->score;
  if (options.temperature <= 0) return chosen(std::ranges::min_element(choices, is_better)->token);
  keep_top(options.top_k, choices);
  for (Choice& choice : choices)
    choice.weight = std::exp((choice.score - best) / options.temperature);
  keep_nucleus(options.top_p, choices);
  // The best token has the weight 1.
  std::erase_if(choices, [&](const Choice& choice) { return choice.weight < options.min_p; });
  std::ranges::sort(choices, {}, &Choice::token);
  double left = 0;
  for (const Choice& choice : choices) left += choice.weight;
  left *= uniform;
  for (const Choice& choice : choices) {
    left -= choice.weight;
    if (left < 0) return chosen(choice.token);
  }
  return chosen(choices.back().token);
}

}  // namespace concertina
