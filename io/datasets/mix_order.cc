#include "io/datasets/mix_order.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"

namespace concertina {
namespace {

/// Scales weights by a power of ten if that makes them whole numbers with a small enough sum;
/// otherwise rounds them to parts of the longest period, each at least one part.
std::vector<std::uint64_t> whole_parts(std::span<const double> weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<std::uint64_t> parts(weights.size());
  for (double scale = 1; scale <= 1e9; scale *= 10) {
    const bool whole = std::ranges::all_of(weights, [&](double weight) {
      const double scaled = weight * scale;
      return scaled < 1e15 && std::abs(scaled - std::round(scaled)) <= 1e-9 * scaled;
    });
    if (!whole) continue;
    std::uint64_t divisor = 0, total = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      parts[i] = static_cast<std::uint64_t>(std::llround(weights[i] * scale));
      divisor = std::gcd(divisor, parts[i]);
    }
    for (std::uint64_t& part : parts) total += part /= divisor;
    if (total <= MixOrder::kLongestPeriod) return parts;
    break;
  }
  for (std::size_t i = 0; i < weights.size(); ++i)
    parts[i] = std::max<std::uint64_t>(
        1, static_cast<std::uint64_t>(std::floor(
               weights[i] / sum * static_cast<double>(MixOrder::kLongestPeriod - weights.size()))));
  // The largest weight receives what was lost by rounding down.
  const std::uint64_t total = std::accumulate(parts.begin(), parts.end(), std::uint64_t{0});
  *std::ranges::max_element(parts) += MixOrder::kLongestPeriod - total;
  return parts;
}

/// At sample n (from 1), a source with share a/P that has been drawn x times is due if n a/P - x >=
/// 1/(2S-2); its deadline is the n at which n a/P - x = 1 - 1/(2S-2): n = P/a (x + 1 - 1/(2S-2)).
std::vector<std::uint16_t> order_of(std::span<const std::uint64_t> parts) {
  const std::uint64_t period = std::accumulate(parts.begin(), parts.end(), std::uint64_t{0});
  const auto slack = static_cast<std::int64_t>(parts.size() > 1 ? 2 * parts.size() - 2 : 1);
  std::vector<std::int64_t> drawn(parts.size());
  std::vector<std::uint16_t> order;
  order.reserve(period);
  const auto whole = static_cast<std::int64_t>(period);
  for (std::int64_t n = 1; n <= whole; ++n) {
    std::size_t best = parts.size();
    std::int64_t best_late = 0;  // deadline of `best` times slack a/P
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto part = static_cast<std::int64_t>(parts[i]);
      if (slack * (part * n - whole * drawn[i]) < (parts.size() > 1 ? whole : 0)) continue;
      const std::int64_t late = slack * drawn[i] + slack - 1;
      if (best == parts.size() || late * static_cast<std::int64_t>(parts[best]) < best_late * part)
        best = i, best_late = late;
    }
    CONCERTINA_CHECK(best < parts.size(), "no source is due at sample {}", n);
    ++drawn[best];
    order.push_back(static_cast<std::uint16_t>(best));
  }
  return order;
}

}  // namespace

MixOrder::MixOrder(std::span<const double> weights) {
  CONCERTINA_CHECK(!weights.empty() && weights.size() <= kMostSources &&
                       std::ranges::all_of(weights, [](double w) { return w > 0 && w < 1e300; }),
                   "invalid set of {} weights", weights.size());
  parts_ = whole_parts(weights);
  order_ = order_of(parts_);
  std::vector<std::uint32_t> drawn(parts_.size());
  for (std::size_t n = 0; n < order_.size(); ++n) {
    if (n % kRun == 0) counts_.insert(counts_.end(), drawn.begin(), drawn.end());
    ++drawn[order_[n]];
  }
}

std::uint64_t MixOrder::before(std::uint64_t n, std::size_t source) const {
  const std::uint64_t within = n % period(), run = within / kRun;
  std::uint64_t count = n / period() * parts_[source] + counts_[run * parts_.size() + source];
  for (std::uint64_t i = run * kRun; i < within; ++i) count += order_[i] == source ? 1 : 0;
  return count;
}

}  // namespace concertina
