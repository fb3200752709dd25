// Which samples an epoch keeps in the cache: as many hits as with the best possible plan.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/integration/cached_training.h"

namespace concertina {
namespace {

/// Hits of single samples if the sample needed last is evicted first (Belady 1966).
int hits_of_belady(const std::vector<int>& samples, std::size_t from, std::size_t slots) {
  const auto next_use = [&](std::size_t at) {
    return std::find(samples.begin() + static_cast<std::ptrdiff_t>(at) + 1, samples.end(),
                     samples[at]);
  };
  std::map<int, std::vector<int>::const_iterator> kept;  // by sample: its next use
  int hits = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    hits += i >= from && kept.contains(samples[i]) ? 1 : 0;
    kept[samples[i]] = next_use(i);
    if (kept.size() > slots)
      kept.erase(std::ranges::max_element(kept, {}, [](const auto& one) { return one.second; }));
  }
  return hits;
}

TEST(SlotPlan, HasTheHitsOfBeladyInWholeMicrobatches) {
  constexpr int kSamples = 300, kStep = 12, kEpochs = 6;
  const auto order = [](std::uint64_t epoch, std::vector<std::uint64_t>& samples) {
    const Permutation permutation(1, epoch, kSamples);
    samples.resize(kSamples);
    for (std::size_t i = 0; i < kSamples; ++i) samples[i] = permutation(i);
  };
  for (const auto& [slots, views, size] :
       {std::tuple{180, 1, 6}, {180, 1, 1}, {299, 1, 6}, {30, 1, 6}, {360, 2, 6}, {0, 1, 6}}) {
    SCOPED_TRACE(fmt::format("{} slots, {} views, microbatches of {}", slots, views, size));
    SlotPlan plan(order, kSamples, static_cast<std::uint64_t>(views),
                  static_cast<std::uint64_t>(slots), 3, kStep);
    std::map<std::int64_t, int> held;  // by slot
    std::vector<int> seen;
    std::vector<std::uint64_t> samples;
    int hits = 0, whole = 0, epochs = 0;
    for (int epoch = 3; epoch < 3 + kEpochs * views; ++epoch) {
      const auto e = static_cast<std::uint64_t>(epoch);
      order(e, samples);
      epochs += epoch >= 3 + 2 * views ? 1 : 0;
      for (int i = 0; i < kSamples; i += size) {
        int there = 0;
        for (int j = i; j < i + size; ++j) {
          const std::uint64_t sample = samples[static_cast<std::size_t>(j)];
          const int number = epoch % views * kSamples + static_cast<int>(sample);
          seen.push_back(number);
          const std::int64_t slot = plan.before(e, sample);
          EXPECT_TRUE(slot < 0 || held.at(slot) == number);  // it still holds this sample
          there += slot >= 0 ? 1 : 0;
        }
        for (int j = i; j < i + size; ++j) {
          const std::uint64_t sample = samples[static_cast<std::size_t>(j)];
          if (const std::int64_t slot = plan.after(e, sample); slot >= 0) {
            EXPECT_LT(slot, slots);
            held[slot] = epoch % views * kSamples + static_cast<int>(sample);
          }
        }
        if (epoch < 3 + 2 * views) continue;
        hits += there;
        whole += there == size ? size : 0;
      }
    }
    const int best = hits_of_belady(seen, static_cast<std::size_t>(2 * views * kSamples),
                                    static_cast<std::size_t>(slots));
    EXPECT_GE(hits, 0.97 * best - kStep);
    EXPECT_GE(whole, hits - (size - 1) * epochs);  // one microbatch of an epoch has some
    EXPECT_NEAR(hits, static_cast<double>(slots) / (views * kSamples) * epochs * kSamples,
                0.03 * hits + kStep);
  }
}

}  // namespace
}  // namespace concertina
