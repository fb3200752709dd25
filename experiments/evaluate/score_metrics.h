// Figures of scores, of several labels per sample, and of names that several words make, from what
// a model told and what is right. Invariant: pure; sums are in the order of samples, so figures are
// the same bits at every layout.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "experiments/evaluate/class_counts.h"

namespace concertina {

/// mean_squared_error, mean_absolute_error over all of told[N,K] and scores[N,K]; and
/// pearson_correlation, spearman_correlation (of ranks, of equals their mean): of each of the K
/// columns, the mean; 0 of a column that is constant.
std::vector<Metric> regression_metrics(std::span<const double> told, std::span<const double> scores,
                                       std::size_t columns);

/// subset_accuracy: the share of samples of which all K classes are told rightly; micro_f1 over all
/// labels; macro_f1, the mean over all classes. Of told[N,K] and labels[N,K], 0 or 1 each.
std::vector<Metric> label_set_metrics(std::span<const double> told, std::span<const double> labels,
                                      std::size_t columns);

/// The tags of the words of one sentence, as told and as they are.
struct TaggedPair {
  std::vector<std::size_t> told{}, right{};
};
/// entity_precision, entity_recall, entity_f1 as seqeval has them: of names that are told with all
/// their words and their kind. `names`: of the tags, "O", "B-PER", "I-PER", ...; nothing if they
/// are not such.
std::vector<Metric> entity_metrics(std::span<const TaggedPair> sentences,
                                   std::span<const std::string> names);

}  // namespace concertina
