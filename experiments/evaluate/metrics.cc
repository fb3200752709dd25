#include "experiments/evaluate/metrics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string_view>
#include <tuple>

namespace concertina {
namespace {

std::vector<double> column_of(std::span<const double> values, std::size_t column,
                              std::size_t columns) {
  std::vector<double> one;
  for (std::size_t i = column; i < values.size(); i += columns) one.push_back(values[i]);
  return one;
}

double pearson(std::span<const double> a, std::span<const double> b) {
  const auto mean = [](std::span<const double> values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  };
  const double mean_a = mean(a), mean_b = mean(b);
  double both = 0, of_a = 0, of_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = a[i] - mean_a, y = b[i] - mean_b;
    both += x * y;
    of_a += x * x;
    of_b += y * y;
  }
  return of_a == 0 || of_b == 0 ? 0 : both / std::sqrt(of_a) / std::sqrt(of_b);
}

std::vector<double> ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> rank(values.size());
  for (std::size_t first = 0, last = 0; first < order.size(); first = last) {
    while (last < order.size() && values[order[last]] == values[order[first]]) ++last;
    for (std::size_t i = first; i < last; ++i)
      rank[order[i]] = static_cast<double>(first + last - 1) / 2;
  }
  return rank;
}

/// The parts of a tag: the position of the word in an entity ('O': outside), and the entity's kind.
struct TagParts {
  char place = 'O';
  std::string_view kind{};
};

TagParts parts_of(std::string_view name) {
  return name == "O" ? TagParts() : TagParts{name[0], name.substr(2)};
}

using Entity = std::tuple<std::string_view, std::size_t, std::size_t>;  // kind, first word, end

/// The entities of a sentence. An entity starts at a B, or at an I that does not follow a word of
/// the same kind.
std::set<Entity> entities(std::span<const std::size_t> tags, std::span<const TagParts> parts) {
  std::set<Entity> found;
  for (std::size_t first = 0, end = 0; first < tags.size(); first = std::max(end, first + 1)) {
    const TagParts& begin = parts[tags[first]];
    if (begin.place == 'O') continue;
    for (end = first + 1; end < tags.size(); ++end)
      if (parts[tags[end]].place != 'I' || parts[tags[end]].kind != begin.kind) break;
    found.emplace(begin.kind, first, end);
  }
  return found;
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
  std::int64_t right = 0, all = 0, both = 0, labels = 0, predictions = 0;
  for (const std::int64_t count : confusion.counts) all += count;
  double precision = 0, recall = 0, f1 = 0, occurring = 0;
  for (std::size_t one = 0; one < confusion.classes; ++one) {
    const ClassCounts counts = counts_of(confusion, one);
    const std::int64_t there = counts.right + counts.missed,
                       predicted = counts.right + counts.wrong;
    right += counts.right;
    both += there * predicted;
    labels += there * there;
    predictions += predicted * predicted;
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
  if (confusion.classes > 1) {
    const double of_labels = static_cast<double>(all * all - labels),
                 of_predictions = static_cast<double>(all * all - predictions);
    const bool uniform = of_labels == 0 || of_predictions == 0;
    const double correlation =
        uniform ? 0
                : static_cast<double>(right * all - both) / std::sqrt(of_labels * of_predictions);
    metrics.push_back({"matthews_correlation", correlation, false, false});
  }
  return metrics;
}

std::vector<Metric> regression_metrics(std::span<const double> predicted,
                                       std::span<const double> scores, std::size_t columns) {
  double squares = 0, distances = 0, pearsons = 0, spearmans = 0;
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    squares += (predicted[i] - scores[i]) * (predicted[i] - scores[i]);
    distances += std::abs(predicted[i] - scores[i]);
  }
  for (std::size_t column = 0; column < columns && !predicted.empty(); ++column) {
    const std::vector<double> a = column_of(predicted, column, columns),
                              b = column_of(scores, column, columns);
    pearsons += pearson(a, b);
    spearmans += pearson(ranks(a), ranks(b));
  }
  const auto count = static_cast<double>(predicted.size()), each = static_cast<double>(columns);
  return {{"mean_squared_error", squares / count, true, false},
          {"mean_absolute_error", distances / count, true, false},
          {"pearson_correlation", pearsons / each, false, false},
          {"spearman_correlation", spearmans / each, false, false}};
}

std::vector<Metric> label_set_metrics(std::span<const double> predicted,
                                      std::span<const double> labels, std::size_t columns) {
  std::vector<ClassCounts> counts(columns);
  const std::size_t rows = predicted.size() / columns;
  std::size_t exact = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    bool same = true;
    for (std::size_t k = 0; k < columns; ++k) {
      const bool predicts = predicted[row * columns + k] > 0, is = labels[row * columns + k] > 0;
      counts[k].right += predicts && is ? 1 : 0;
      counts[k].wrong += predicts && !is ? 1 : 0;
      counts[k].missed += !predicts && is ? 1 : 0;
      same = same && predicts == is;
    }
    exact += same ? 1 : 0;
  }
  ClassCounts all;
  double f1 = 0;
  for (const ClassCounts& one : counts) {
    all.right += one.right, all.wrong += one.wrong, all.missed += one.missed;
    f1 += one.f1();
  }
  return {{"subset_accuracy", static_cast<double>(exact) / static_cast<double>(rows)},
          {"micro_f1", all.f1()},
          {"macro_f1", f1 / static_cast<double>(columns)}};
}

std::vector<Metric> entity_metrics(std::span<const TaggedPair> sentences,
                                   std::span<const std::string> names) {
  std::vector<TagParts> parts;
  bool words = false;
  for (const std::string& name : names) {
    if (name != "O" && !name.starts_with("B-") && !name.starts_with("I-")) return {};
    words = words || name != "O";
    parts.push_back(parts_of(name));
  }
  if (!words) return {};
  ClassCounts counts;
  for (const auto& [predicted, right] : sentences) {
    const std::set<Entity> found = entities(predicted, parts), there = entities(right, parts);
    const auto both =
        std::ranges::count_if(found, [&](const Entity& one) { return there.contains(one); });
    counts.right += both;
    counts.wrong += std::ssize(found) - both;
    counts.missed += std::ssize(there) - both;
  }
  return {{"entity_precision", counts.precision()},
          {"entity_recall", counts.recall()},
          {"entity_f1", counts.f1()}};
}

}  // namespace concertina
