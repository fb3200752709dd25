#include "parallel/generate/building_block.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "parallel/generate/interleave.h"

namespace concertina {
namespace {

constexpr int kInterval = 6;

/// Start times of microbatch 0 on one rank: F of the first chunk, F and I of the second, I of the
/// first.
using Passes = std::array<int, 4>;

/// `turns` gives the steps between consecutive passes on the same rank, where the V turns.
Passes passes_of(int rank, int p, const BuildingBlock& block, const std::array<int, 3>& turns) {
  const int last = p - 1, up = last - rank;
  const int at_bottom = block.forward_down * last + turns[0];
  const int at_top = at_bottom + block.forward_up * last + turns[1];
  const int back = at_top + block.backward_up * last + turns[2];
  return {block.forward_down * rank, at_bottom + block.forward_up * up,
          at_top + block.backward_up * rank, back + block.backward_down * up};
}

bool apart(const Passes& passes) {
  for (std::size_t a = 0; a < passes.size(); ++a)
    for (std::size_t b = a + 1; b < passes.size(); ++b)
      if ((passes[a] - passes[b]) % kInterval == 0) return false;
  return true;
}

/// Finds the fewest steps at the turns for which no rank has two passes at the same time.
std::vector<Passes> place_block(int p, const BuildingBlock& block) {
  for (int sum = 3; sum <= 3 * kInterval; ++sum)
    for (int a = 1; a <= std::min(kInterval, sum - 2); ++a)
      for (int b = 1; b <= std::min(kInterval, sum - a - 1); ++b) {
        const int c = sum - a - b;
        std::vector<Passes> block_passes;
        for (int rank = 0; c <= kInterval && rank < p; ++rank) {
          block_passes.push_back(passes_of(rank, p, block, {a, b, c}));
          if (!apart(block_passes.back())) break;
        }
        if (static_cast<int>(block_passes.size()) == p && apart(block_passes.back()))
          return block_passes;
      }
  CONCERTINA_CHECK(false, "the passes of this building block always collide");
}

}  // namespace

Rows one_f_one_b(int stages, int microbatches, int lead, Kind backward) {
  Rows rows(stages);
  for (int stage = 0; stage < stages; ++stage) {
    const int ahead = std::min(microbatches, lead * (stages - 1 - stage));
    int forward = 0;
    while (forward < ahead) rows[stage].push_back({Kind::F, stage, forward++});
    for (int m = 0; m < microbatches; ++m) {
      if (forward < microbatches) rows[stage].push_back({Kind::F, stage, forward++});
      rows[stage].push_back({backward, stage, m});
    }
  }
  return rows;
}

Rows repeat_block(const PipelineShape& shape, const BuildingBlock& block) {
  const int p = shape.ranks;
  const std::vector<Passes> passes = place_block(p, block);
  Rows rows(p);
  for (int rank = 0; rank < p; ++rank) {
    const auto [first, second, second_back, first_back] = passes[rank];
    const int far = 2 * p - 1 - rank;
    std::vector<TimedAction> timed;
    for (int m = 0; m < shape.microbatches; ++m) {
      const double shift = kInterval * m;
      timed.push_back({first + shift, {Kind::F, rank, m}});
      timed.push_back({second + shift, {Kind::F, far, m}});
      timed.push_back({second_back + shift, {Kind::I, far, m}});
      timed.push_back({first_back + shift, {Kind::I, rank, m}});
    }
    rows[rank] = in_order(std::move(timed));
  }
  return rows;
}

}  // namespace concertina
