// Metrics for scores, for several labels per sample and for named entities, from predictions and
// targets. Invariant: pure; sums are in sample order, so metrics are bit-identical in all layouts.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "experiments/evaluate/class_counts.h"

namespace concertina {

/// Returns mean_squared_error and mean_absolute_error over all elements of predicted[N,K] and
/// scores[N,K], and pearson_correlation and spearman_correlation (of ranks, with mean ranks for
/// ties), each averaged over the K columns; a constant column counts as 0.
std::vector<Metric> regression_metrics(std::span<const double> predicted,
                                       std::span<const double> scores, std::size_t columns);

/// Returns subset_accuracy, the share of samples with all K classes correct; micro_f1 over all
/// labels; and macro_f1, the mean over all classes. predicted[N,K] and labels[N,K] are 0 or 1.
std::vector<Metric> label_set_metrics(std::span<const double> predicted,
                                      std::span<const double> labels, std::size_t columns);

/// Predicted and true tags of the words of one sentence.
struct TaggedPair {
  std::vector<std::size_t> predicted{}, right{};
};
/// Returns entity_precision, entity_recall and entity_f1 as in seqeval: an entity is correct if all
/// its words and its kind are correct. `names` are the tags, "O", "B-PER", "I-PER", ...; returns
/// nothing for other tags.
std::vector<Metric> entity_metrics(std::span<const TaggedPair> sentences,
                                   std::span<const std::string> names);

}  // namespace concertina
