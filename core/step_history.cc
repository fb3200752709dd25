#include "core/step_history.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/error.h"

namespace concertina {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

StepHistory::StepHistory(std::size_t width) : width_(width), rows_(kKept * width) {}

void StepHistory::record(std::span<const double> metrics) {
  CONCERTINA_CHECK(metrics.size() == width_, "{} values, {} expected", metrics.size(), width_);
  std::copy(metrics.begin(), metrics.end(),
            rows_.begin() + static_cast<std::ptrdiff_t>(steps_ % kKept * width_));
  ++steps_;
}

std::vector<double> StepHistory::typical() const {
  const std::size_t oldest = steps_ > kKept ? steps_ - kKept : 0;
  const std::size_t first = steps_ > kWarmUp ? std::max(oldest, kWarmUp) : oldest;
  const auto row = [&](std::size_t step) {
    return std::span(rows_).subspan(step % kKept * width_, width_);
  };
  std::vector<std::pair<double, std::size_t>> steps;  // sum, step
  for (std::size_t step = first; step < steps_; ++step)
    steps.emplace_back(std::accumulate(row(step).begin(), row(step).end(), 0.0), step);
  std::sort(steps.begin(), steps.end());
  const std::size_t cut = steps.size() / 4;
  std::vector<double> means(width_, 0.0);
  for (std::size_t i = cut; i + cut < steps.size(); ++i)
    for (std::size_t column = 0; column < width_; ++column)
      means[column] += row(steps[i].second)[column] / static_cast<double>(steps.size() - 2 * cut);
  return means;
}

}  // namespace concertina
