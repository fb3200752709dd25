// The order in which samples are drawn from several weighted sources. Invariants: a sample's source
// is a pure function of the weights and its number, and is looked up in constant time in a table of
// one period, however long the run is. After any number of samples, each source has been drawn in
// proportion to its weight, to within one sample.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace concertina {

/// Implements Tijdeman's solution to the chairman assignment problem ("The chairman assignment
/// problem", Discrete Mathematics 32, 1980): of the sources that are due, draws the one with the
/// earliest deadline. Greedy rules, such as choosing the source with the largest deficit
/// (Megatron-LM's BlendedDataset), deviate by more than one sample if there are many sources. The
/// period is the sum of the weights as whole numbers.
class MixOrder {
 public:
  /// There must be at most kMostSources weights, all positive and finite. Unless they are in the
  /// ratio of whole numbers whose sum is at most kLongestPeriod, they are rounded to such a ratio.
  explicit MixOrder(std::span<const double> weights);

  static constexpr std::size_t kMostSources = 1000;
  static constexpr std::uint64_t kLongestPeriod = std::uint64_t{1} << 20;

  /// Returns the weights as coprime whole numbers; their sum is the period.
  std::span<const std::uint64_t> parts() const { return parts_; }
  std::uint64_t period() const { return order_.size(); }
  /// Returns the source of sample `n`.
  std::size_t source(std::uint64_t n) const { return order_[n % period()]; }
  /// Returns how many of the first `n` samples are from `source`.
  std::uint64_t before(std::uint64_t n, std::size_t source) const;

 private:
  static constexpr std::uint64_t kRun = 1024;  // samples between two checkpoints of the counts

  std::vector<std::uint64_t> parts_;
  std::vector<std::uint16_t> order_;   // for one period
  std::vector<std::uint32_t> counts_;  // for each kRun samples: earlier draws of each source
};

}  // namespace concertina
