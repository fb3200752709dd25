#include "experiments/study/results.h"

#include <algorithm>
#include <set>

namespace concertina {
namespace {

constexpr const char *kData = "validation_data", *kMeasure = "validation_measure";

/// The texts in a column, for trials that have one.
std::set<std::string> known(const Trials& trials, const std::string& column) {
  std::set<std::string> texts;
  for (const TrialRecord* trial : trials)
    if (const std::string text = cell_text(cell_of(*trial, column)); !text.empty())
      texts.insert(text);
  return texts;
}

bool all_know(const Trials& trials, const std::string& column) {
  return std::ranges::none_of(
      trials, [&](const TrialRecord* trial) { return cell_text(cell_of(*trial, column)).empty(); });
}

/// Whether the key affects a loss in ways other than through the quality of training.
bool is_data_key(const std::string& key) {
  return key.starts_with("data.") || key.starts_with("eval.") || key == "model.task" ||
         key == "model.label_smoothing" || key.starts_with("distill.");
}

/// Why the configs do not show that these trials use the same data; empty if they do. Files with
/// equal contents and tokenizers with equal tokens may have different paths.
std::string why_other_config(const Trials& trials) {
  for (const TrialRecord* trial : trials)
    if (trial->facts.contains(kNoConfig)) return "their data is not recorded";
  if (known(trials, "text").size() > 1) return "the data differs";
  const bool same_text = all_know(trials, "text"), same_unit = all_know(trials, kMeasure);
  std::set<std::string> keys;
  for (const TrialRecord* trial : trials)
    for (const auto& [key, value] : trial->settings)
      if (is_data_key(key)) keys.insert(key);
  for (const std::string& key : keys) {
    const bool path = key == "data.text" || key.ends_with("files");
    if ((path && same_text) || (key == "data.tokenizer" && same_unit)) continue;
    if (known(trials, key).size() > 1 || !all_know(trials, key))
      return "the configs differ in " + key;
  }
  return {};
}

/// Why the tokens of these trials may differ; empty if they cannot.
std::string why_other_tokens(const Trials& trials) {
  if (all_know(trials, kMeasure)) return {};
  for (const TrialRecord* trial : trials)
    if (trial->facts.contains(kNoConfig)) return "their tokens are not recorded";
  return known(trials, "data.tokenizer").size() > 1 ? "the tokenizers differ" : "";
}

std::string why_other_evaluation(const Trials& trials, const std::string& metric) {
  if (!all_know(trials, kData)) {
    if (std::string why = why_other_config(trials); !why.empty()) return why;
  } else if (known(trials, kData).size() > 1) {
    return "the held-out data differs";
  }
  if (metric == kBitsPerByte) return {};
  if (known(trials, kMeasure).size() > 1) return "the tasks or the tokenizers differ";
  if (known(trials, "validation_tokens").size() > 1)
    return "the evaluations use different parts of the held-out data";
  return {};
}

}  // namespace

std::string why_incomparable(const Trials& all, const std::string& metric) {
  const bool held_out = metric.starts_with("validation_");
  if (!held_out && metric != "loss" && metric != "tokens_per_s") return {};
  Trials trials = all;
  std::erase_if(trials, [&](const TrialRecord* trial) {
    return !std::holds_alternative<double>(cell_of(*trial, metric));
  });
  if (trials.size() < 2) return {};
  if (held_out) return why_other_evaluation(trials, metric);
  if (known(trials, kMeasure).size() > 1) return "the tasks or the tokenizers differ";
  return metric == "loss" ? why_other_config(trials) : why_other_tokens(trials);
}

}  // namespace concertina
