// Which of several weighted sources each sample of a run is drawn from.
// Invariants: a pure function of the weights and the sample's number, found in constant time from a
// table of one period, however long the run; after any number of samples each source has been drawn
// its share of them, to less than one sample.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace concertina {

/// Tijdeman's solution of the chairman assignment problem ("The chairman assignment problem",
/// Discrete Mathematics 32, 1980): of the sources that are due, the one whose next sample would be
/// late first. Greedy rules such as the largest deficit (Megatron-LM's BlendedDataset) stray by
/// more than one sample where there are many sources. With whole weights it repeats itself after as
/// many samples as they sum up to.
class MixOrder {
 public:
  /// Weights are above 0 and finite, at most kMostSources. Those that are no ratio of whole numbers
  /// with a sum of at most kLongestPeriod are rounded to parts of that.
  explicit MixOrder(std::span<const double> weights);

  static constexpr std::size_t kMostSources = 1000;
  static constexpr std::uint64_t kLongestPeriod = std::uint64_t{1} << 20;

  /// The weights as whole numbers without a common divisor; their sum is the period.
  std::span<const std::uint64_t> parts() const { return parts_; }
  std::uint64_t period() const { return order_.size(); }
  /// The source of sample `n`.
  std::size_t source(std::uint64_t n) const { return order_[n % period()]; }
  /// Samples of `source` among the first `n`.
  std::uint64_t before(std::uint64_t n, std::size_t source) const;

 private:
  static constexpr std::uint64_t kRun = 1024;  // samples from one count of all sources to the next

  std::vector<std::uint64_t> parts_;
  std::vector<std::uint16_t> order_;   // of a period
  std::vector<std::uint32_t> counts_;  // of each source before each run, run by run
};

}  // namespace concertina
