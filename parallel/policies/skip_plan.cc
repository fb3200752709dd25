#include "parallel/policies/skip_plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/index.h"
#include "core/rng.h"

namespace concertina {

int skipped_bucket(const ModelSpec& model, const std::vector<Bucket>& buckets, int unit) {
  const auto is_shared = [](const ParameterSpec& parameter) { return !parameter.shared.empty(); };
  if (std::ranges::any_of(model.units[at(unit)].parameters, is_shared)) return -1;
  for (std::size_t b = 0; b < buckets.size(); ++b)
    if (buckets[b].uses.front() == unit) return static_cast<int>(b);
  return -1;
}

SkipTurns::SkipTurns(const ModelSpec& model, std::vector<SkipGroup> groups, std::uint64_t seed)
    : seed_(seed), groups_(std::move(groups)) {
  if (std::ranges::all_of(groups_, [](const SkipGroup& group) { return group.skipped == 0; }))
    groups_.clear();
  if (groups_.empty()) return;
  const std::vector<Bucket> buckets = make_buckets(model);
  for (int unit = 0; unit < std::ssize(model.units); ++unit)
    buckets_.push_back(skipped_bucket(model, buckets, unit));
  std::size_t most = 0;
  for (const SkipGroup& group : groups_) {
    CONCERTINA_CHECK(group.skipped >= 0 && group.skipped <= std::ssize(group.units),
                     "{} of {} units", group.skipped, group.units.size());
    for (const int unit : group.units)
      CONCERTINA_CHECK(unit >= 0 && unit < std::ssize(buckets_) && buckets_[at(unit)] >= 0,
                       "unit {} cannot skip", unit);
    most = std::max(most, group.units.size());
  }
  order_.reserve(most);
  flags_.resize(buckets.size());
}

/// The units of a group skip in a random order that is drawn for each round of as many steps as
/// there are units.
SkippedBuckets SkipTurns::of_step(std::int64_t step) {
  if (groups_.empty()) return {};
  const Rng random(seed_, Purpose::skip);
  std::fill(flags_.begin(), flags_.end(), 0);
  for (const SkipGroup& group : groups_) {
    const std::size_t units = group.units.size(), count = at(group.skipped);
    if (count == 0) continue;
    const auto turn = static_cast<std::size_t>(step - 1);
    order_.resize(units);
    std::iota(order_.begin(), order_.end(), 0);
    for (std::size_t i = units; --i > 0;) {
      const std::uint64_t word = random.words(static_cast<std::uint32_t>(turn / units), 0,
                                              static_cast<std::uint32_t>(group.units[0]),
                                              static_cast<std::uint32_t>(i))[0];
      std::swap(order_[i], order_[(word * (i + 1)) >> 32]);
    }
    for (std::size_t i = 0; i < count; ++i) {
      const int unit = group.units[at(order_[(turn % units * count + i) % units])];
      flags_[at(buckets_[at(unit)])] = 1;
    }
  }
  return SkippedBuckets(flags_);
}

}  // namespace concertina
