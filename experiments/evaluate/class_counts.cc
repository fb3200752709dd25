#include "experiments/evaluate/class_counts.h"

#include <cmath>

namespace concertina {
namespace {

/// The correlation of labels and predictions; 0 if all samples have the same label or prediction.
double matthews_correlation(const Confusion& confusion) {
  std::int64_t all = 0, right = 0, both = 0, labels = 0, predictions = 0;
  for (std::size_t one = 0; one < confusion.classes; ++one) {
    const ClassCounts counts = counts_of(confusion, one);
    const std::int64_t there = counts.right + counts.missed,
                       predicted = counts.right + counts.wrong;
    all += there;
    right += counts.right;
    both += there * predicted;
    labels += there * there;
    predictions += predicted * predicted;
  }
  const double of_labels = static_cast<double>(all * all - labels),
               of_predictions = static_cast<double>(all * all - predictions);
  if (of_labels == 0 || of_predictions == 0) return 0;
  return static_cast<double>(right * all - both) / std::sqrt(of_labels * of_predictions);
}

}  // namespace

ClassCounts counts_of(const Confusion& confusion, std::size_t one) {
  ClassCounts counts{.right = confusion.at(one, one)};
  for (std::size_t other = 0; other < confusion.classes; ++other) {
    if (other == one) continue;
    counts.wrong += confusion.at(other, one);
    counts.missed += confusion.at(one, other);
  }
  return counts;
}

std::vector<Metric> class_metrics(const Confusion& confusion) {
  std::int64_t right = 0, all = 0;
  for (const std::int64_t count : confusion.counts) all += count;
  double precision = 0, recall = 0, f1 = 0, occurring = 0;
  for (std::size_t one = 0; one < confusion.classes; ++one) {
    const ClassCounts counts = counts_of(confusion, one);
    right += counts.right;
    if (!counts.occurs()) continue;
    ++occurring;
    precision += counts.precision();
    recall += counts.recall();
    f1 += counts.f1();
  }
  std::vector<Metric> metrics{{"accuracy", static_cast<double>(right) / static_cast<double>(all)}};
  if (confusion.classes == 2) {
    const ClassCounts second = counts_of(confusion, 1);
    metrics.insert(
        metrics.end(),
        {{"precision", second.precision()}, {"recall", second.recall()}, {"f1", second.f1()}});
  } else if (confusion.classes > 2) {
    metrics.insert(metrics.end(), {{"macro_precision", precision / occurring},
                                   {"macro_recall", recall / occurring},
                                   {"macro_f1", f1 / occurring}});
  }
  if (confusion.classes > 1)
    metrics.push_back({"matthews_correlation", matthews_correlation(confusion), false, false});
  return metrics;
}

}  // namespace concertina
