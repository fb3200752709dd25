#include "core/step_history.h"

#include <algorithm>

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

void StepHistory::record(std::span<const double> figures) {
  CONCERTINA_CHECK(figures.size() == width_, "{} figures, {} expected", figures.size(), width_);
  std::copy(figures.begin(), figures.end(),
            rows_.begin() + static_cast<std::ptrdiff_t>(steps_ % kKept * width_));
  ++steps_;
}

std::vector<double> StepHistory::medians() const {
  const std::size_t oldest = steps_ > kKept ? steps_ - kKept : 0;
  const std::size_t first = steps_ > kWarmUp ? std::max(oldest, kWarmUp) : oldest;
  std::vector<double> result;
  for (std::size_t column = 0; column < width_; ++column) {
    std::vector<double> values;
    for (std::size_t step = first; step < steps_; ++step)
      values.push_back(rows_[step % kKept * width_ + column]);
    result.push_back(median(std::move(values)));
  }
  return result;
}

}  // namespace concertina
