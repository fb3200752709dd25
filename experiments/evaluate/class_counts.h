// Classification metrics from counts of label and prediction pairs. Invariant: pure, and
// independent of sample order, since counts are integers.
#pragma once

#include <cstdint>
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
/// (Gorodkin 2004).
std::vector<Metric> class_metrics(const Confusion& confusion);

}  // namespace concertina
