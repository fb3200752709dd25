#include "io/cache_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "core/clock.h"
#include "io/cache_tier.h"

namespace concertina {
namespace {

constexpr std::uint64_t kProbes = 32, kProbeBytes = 32 << 20;

/// Samples whose slots are spread over the whole tier, as those of a step are.
std::vector<std::uint64_t> probe_samples(const CacheSlots& slots) {
  const std::uint64_t count =
      std::min({slots.count, kProbes, std::max<std::uint64_t>(1, kProbeBytes / slots.entry_bytes)});
  std::vector<std::uint64_t> samples;
  for (std::uint64_t i = 0; i < count; ++i)
    samples.push_back(slots.first + slots.count / count * i);
  return samples;
}

double rate_of(std::uint64_t bytes, std::vector<double> seconds) {
  if (seconds.empty()) return 0;
  const auto middle = seconds.begin() + std::ssize(seconds) / 2;
  std::nth_element(seconds.begin(), middle, seconds.end());
  return static_cast<double>(bytes) / std::max(*middle, 1e-9);
}

}  // namespace

TierRates measure_tier(CacheTier& tier) {
  const std::uint64_t bytes = tier.slots().entry_bytes;
  // The same in every process: they may measure at the same time.
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 131 >> 3);
  const Sha256Digest prefix = prefix_digest("measurement", "", {});
  const std::vector<std::uint64_t> samples = probe_samples(tier.slots());
  const auto rate = [&](const std::function<bool(const CacheKey&)>& act) {
    std::vector<double> seconds;
    for (const std::uint64_t sample : samples) {
      const double start = now();
      if (act({sample, 0, prefix})) seconds.push_back(now() - start);
    }
    return rate_of(bytes, std::move(seconds));
  };
  const auto write = [&](const CacheKey& key) {
    tier.write(key, data);
    return true;
  };
  // Another process may have cleared it by now: that is no read.
  const auto read = [&](const CacheKey& key) { return tier.read(key, data) == CacheOutcome::hit; };
  TierRates rates;
  rates.write = rate(write);
  rates.read = rate(read);
  tier.evict();
  rates.read_cold = rate(read);
  for (const std::uint64_t sample : samples) tier.clear(sample);
  return rates;
}

CacheVerdict cache_pays(std::uint64_t entry_bytes, double read_bytes_per_s,
                        double forward_seconds) {
  if (!(read_bytes_per_s > 0) || !(forward_seconds > 0) || !std::isfinite(forward_seconds))
    return {false, "it is not known what reading and computing an entry cost"};
  const double read_seconds = static_cast<double>(entry_bytes) / read_bytes_per_s;
  const double ratio = read_seconds / forward_seconds;
  return {ratio < 1,
          fmt::format("reading {:.1f} KiB takes {:.3g} ms, computing them {:.3g} ms: {:.3g}%",
                      static_cast<double>(entry_bytes) / 1024, read_seconds * 1e3,
                      forward_seconds * 1e3, ratio * 100)};
}

}  // namespace concertina
