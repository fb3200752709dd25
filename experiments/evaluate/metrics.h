// Metrics of classes, scores, sets of labels and named entities, from predictions and targets.
// Invariant: pure; counts are integers, and other sums are in sample order, so metrics are
// bit-identical in all layouts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace concertina {

/// A metric such as "accuracy".
struct Metric {
  std::string name{};
  double value = 0;
  bool minimise = false;  // smaller is better
  bool share = true;      // a fraction, shown as a percentage
};

/// Confusion matrix: counts[label * classes + prediction].
struct Confusion {
  std::size_t classes = 0;
  std::vector<std::int64_t> counts{};

  Confusion() = default;
  explicit Confusion(std::size_t of) : classes(of), counts(of * of) {}
  bool empty() const { return classes == 0; }
  std::int64_t& at(std::size_t label, std::size_t prediction) {
    return counts[label * classes + prediction];
  }
  std::int64_t at(std::size_t label, std::size_t prediction) const {
    return counts[label * classes + prediction];
  }
};

/// Numbers of correct, wrong and missed predictions for a class.
struct ClassCounts {
  std::int64_t right = 0, wrong = 0, missed = 0;

  double precision() const { return share(right, right + wrong); }
  double recall() const { return share(right, right + missed); }
  double f1() const { return share(2 * right, 2 * right + wrong + missed); }
  bool occurs() const { return right + wrong + missed > 0; }

 private:
  /// 0 if `whole` is 0, as in scikit-learn.
  static double share(std::int64_t part, std::int64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
  }
};
ClassCounts counts_of(const Confusion& confusion, std::size_t one);

/// Returns accuracy; for two classes also the second one's precision, recall and f1, as in GLUE;
/// for more classes macro_precision, macro_recall and macro_f1, averaged over the classes that
/// occur as a label or a prediction (micro averages equal the accuracy); and matthews_correlation
/// (Gorodkin 2004), which is 0 if all samples have the same label or prediction.
std::vector<Metric> class_metrics(const Confusion& confusion);

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
