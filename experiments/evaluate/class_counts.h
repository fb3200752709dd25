// Figures of classes, from how often which class was taken for which.
// Invariant: pure; from whole counts alone, so no order of samples matters.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace concertina {

/// A figure such as "accuracy".
struct Metric {
  std::string name{};
  double value = 0;
  bool minimise = false;  // smaller is better
  bool share = true;      // of 1: shown in percent
};

/// counts[label * classes + prediction].
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

/// How often a class was told rightly, wrongly, and not though it was there.
struct ClassCounts {
  std::int64_t right = 0, wrong = 0, missed = 0;

  double precision() const { return share(right, right + wrong); }
  double recall() const { return share(right, right + missed); }
  double f1() const { return share(2 * right, 2 * right + wrong + missed); }
  bool occurs() const { return right + wrong + missed > 0; }

 private:
  /// 0 of nothing, as scikit-learn has it.
  static double share(std::int64_t part, std::int64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
  }
};
ClassCounts counts_of(const Confusion& confusion, std::size_t one);

/// accuracy; of two classes precision, recall and f1 of the second, as GLUE has it; of more
/// macro_precision, macro_recall and macro_f1: means over the classes that occur as a label or a
/// prediction (the micro ones are the accuracy); and matthews_correlation (Gorodkin 2004).
std::vector<Metric> class_metrics(const Confusion& confusion);

}  // namespace concertina
