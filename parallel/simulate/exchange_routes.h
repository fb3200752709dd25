// The messages of an exchange between the holders of a bucket, by phase and step.
// Invariant: a regular phase with many steps is thinned out (kMostSteps), so that the cost of a
// simulation is linear rather than quadratic in the number of holders.
#pragma once

#include <vector>

#include "parallel/simulate/costs.h"

namespace concertina {

/// Maximum number of steps of a phase that are simulated separately. If there are more, and every
/// holder sends in each, adjacent steps are merged into one with the peers of the middle one.
inline constexpr std::size_t kMostSteps = 64;

/// One step, by holder; -1: none.
struct ExchangeStep {
  std::vector<int> to, from;
};

class ExchangeRoutes {
 public:
  /// Routes of gradients, or of weights if `back`.
  ExchangeRoutes(const ExchangeScheme& scheme, ExchangeShape shape, bool back);

  int holders() const { return shape_.holders(); }
  const std::vector<std::vector<ExchangeStep>>& phases() const { return phases_; }
  /// Calls `see(phase, step, from, to, chunk, number)` for each message. `step` is an index in
  /// phases(); `number` is the scheme's step number.
  template <class See>
  void each(const See& see) const {
    for (int h = 0; h < holders(); ++h) {
      const ExchangeRow row = row_of(h);
      for (std::size_t p = 0; p < row.size(); ++p)
        for (const ShareMove& send : row[p].sends)
          see(p, step_index(p, send.step), h, send.peer, send.chunk, send.step);
    }
  }

 private:
  ExchangeRow row_of(int holder) const;
  std::size_t step_index(std::size_t phase, int step) const;

  const ExchangeScheme& scheme_;
  ExchangeShape shape_;
  bool back_;
  std::vector<std::vector<int>> numbers_;        // numbers of the steps of each phase, ascending
  std::vector<std::vector<std::size_t>> index_;  // by phase and step: index in phases_
  std::vector<std::vector<ExchangeStep>> phases_;
};

/// The messages on the routes, measured in pieces of a mean-sized chunk.
struct ExchangeLoad {
  std::vector<std::vector<std::vector<double>>> pieces;  // by phase, step and sending holder
  std::vector<double> sent, arrived;                     // by holder
  std::vector<double>
      copies;  // by holder, seconds per byte of a piece: into and out of shared memory
};

/// The load of exchanging a bucket's gradients, or of returning its weights.
ExchangeLoad gradient_load(const ExchangeRoutes& there, const Costs& costs,
                           const BucketCosts& bucket);
ExchangeLoad gradient_load(const Costs& costs, const BucketCosts& bucket);
ExchangeLoad weight_load(const ExchangeRoutes& back, const Costs& costs, const BucketCosts& bucket);

}  // namespace concertina
