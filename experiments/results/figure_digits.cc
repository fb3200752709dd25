#include "experiments/results/figure_digits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/number_text.h"

namespace concertina {
namespace {

constexpr int kMostDecimals = 9;
constexpr int kMostDigits = 10;  // of a figure: more than any measurement has

/// The power of ten of the first digit: 2 of 123, -1 of 0.5.
int magnitude(double value) {
  return static_cast<int>(std::floor(std::log10(value)));
}

}  // namespace

FigureDigits digits_for(const std::vector<double>& values,
                        const std::vector<double>& uncertainties) {
  double largest = 0;
  bool whole = true;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    largest = std::max(largest, std::abs(value));
    whole = whole && value == std::floor(value);
  }
  std::vector<double> sizes;
  for (const double size : uncertainties)
    if (std::isfinite(size) && size > 0) sizes.push_back(size);
  std::ranges::sort(sizes);
  if (sizes.empty() && (whole || largest == 0)) return {0, largest >= 1e15};
  int decimals = 4 - (largest > 0 ? magnitude(largest) : 0);
  if (!sizes.empty()) {
    const int usual = 1 - magnitude(sizes[sizes.size() / 2]);
    decimals = std::max(usual, std::min(-magnitude(sizes.front()), usual + 2));
  }
  if (largest > 0) decimals = std::min(decimals, kMostDigits - 1 - magnitude(largest));
  return {std::clamp(decimals, 0, kMostDecimals), decimals > kMostDecimals || largest >= 1e15};
}

std::string figure_text(double value, const FigureDigits& digits) {
  if (!std::isfinite(value)) return number_text(value);
  if (digits.powers && value != 0) return fmt::format("{:.3e}", value);
  std::string text = fmt::format("{:.{}f}", value, digits.decimals);
  if (text.find_first_of("123456789") == std::string::npos) {
    if (value != 0) return fmt::format("{:.0e}", value);
    return text.front() == '-' ? text.substr(1) : text;
  }
  const std::size_t first = text.front() == '-' ? 1 : 0;
  const std::size_t point = std::min(text.find('.'), text.size());
  for (std::size_t at = point; at > first + 3; at -= 3) text.insert(at - 3, 1, ',');
  return text;
}

}  // namespace concertina
