#include "experiments/adopt/weight_drift.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "core/error.h"
#include "experiments/machine/gather.h"

namespace concertina {
namespace {

__extension__ typedef __int128 Wide;

/// Bits that a block's sum has after it was made an integer: 2^35 of them still fit.
constexpr int kBits = 90;

/// Sums of squares of one block.
struct BlockSquares {
  int layer = 0;
  double change = 0, weight = 0;
};

std::size_t reference_kind(const State& state) {
  const auto found = std::find(state.kinds().begin(), state.kinds().end(), kReference);
  CONCERTINA_CHECK(found != state.kinds().end(), "the state has no snapshot of the weights");
  return static_cast<std::size_t>(found - state.kinds().begin());
}

/// `see(bucket, block, view of the weights, view of the snapshot)` of the own parts that train.
template <class See>
void each_block(const State& state, const See& see) {
  const std::size_t kind = reference_kind(state);
  const Assignment& assignment = state.assignment();
  for (std::size_t b = 0; b < assignment.buckets.size(); ++b) {
    const Part* part = own_state(assignment, b, state.rank());
    if (part == nullptr || assignment.buckets[b].frozen) continue;
    for (std::size_t i = part->first_block; i < part->last_block; ++i) {
      const Block block = block_at(assignment.buckets[b], i);
      see(b, state.weights()[b].slice(block.offset, block.count),
          state.part(b, kind).slice(block.offset - part->begin, block.count));
    }
  }
}

std::vector<BlockSquares> own_squares(const State& state, std::span<const int> layer_of_bucket) {
  std::vector<BlockSquares> blocks;
  std::vector<std::byte> weight_copy, reference_copy;
  each_block(state, [&](std::size_t bucket, View weights, View reference) {
    if (layer_of_bucket[bucket] < 0) return;
    const float* w = host_view(state.memory(), weights, weight_copy).f32();
    const float* r = host_view(state.memory(), reference, reference_copy).f32();
    BlockSquares& sums = blocks.emplace_back(BlockSquares{layer_of_bucket[bucket]});
    for (std::size_t e = 0; e < weights.count; ++e) {
      const double weight = w[e], change = weight - static_cast<double>(r[e]);
      sums.change += change * change;
      sums.weight += weight * weight;
    }
  });
  return blocks;
}

double finite_or_infinite(double sum) {
  return std::isfinite(sum) ? sum : std::numeric_limits<double>::infinity();
}

/// The largest of all blocks' sums on any rank; infinite if one is not finite. Collective.
double largest_sum(Communicator& world, const std::vector<BlockSquares>& blocks) {
  double most = 0;
  for (const BlockSquares& one : blocks)
    most = std::max({most, finite_or_infinite(one.change), finite_or_infinite(one.weight)});
  for (const double other : gather_values(world, std::span(&most, 1))) most = std::max(most, other);
  return most;
}

/// The power of two that makes a number of up to `most` one below 2^kBits.
int exponent_for(double most) {
  int exponent = 0;
  std::frexp(most, &exponent);
  return kBits - exponent;
}

Wide to_integer(double value, int exponent) {
  return static_cast<Wide>(std::ldexp(value, exponent));
}

}  // namespace

void take_reference(Trainer& trainer) {
  State& state = trainer.state();
  each_block(state, [&](std::size_t, View weights, View reference) {
    state.memory().copy(weights.data, reference.data, weights.bytes());
  });
}

std::vector<double> weight_drift(Trainer& trainer, std::span<const int> layer_of_bucket,
                                 std::size_t layers) {
  Communicator& world = trainer.world();
  const std::vector<BlockSquares> blocks = own_squares(trainer.state(), layer_of_bucket);
  const double most = largest_sum(world, blocks);
  if (!std::isfinite(most))
    return std::vector<double>(layers, std::numeric_limits<double>::quiet_NaN());
  const int exponent = exponent_for(most);
  using Pair = std::array<Wide, 2>;  // change, weight
  std::vector<Pair> mine(layers);
  for (const BlockSquares& one : blocks) {
    Pair& sum = mine[static_cast<std::size_t>(one.layer)];
    sum[0] += to_integer(one.change, exponent);
    sum[1] += to_integer(one.weight, exponent);
  }
  const auto size = static_cast<std::size_t>(world.size());
  std::vector<Pair> all(size * layers);
  std::vector<Bytes> places;
  for (std::size_t rank = 0; rank < size; ++rank)
    places.push_back(std::as_writable_bytes(std::span(all).subspan(rank * layers, layers)));
  world.all_gather(std::as_bytes(std::span(mine)), places).wait();
  std::vector<double> drift(layers);
  for (std::size_t layer = 0; layer < layers; ++layer) {
    Pair sum{};
    for (std::size_t rank = 0; rank < size; ++rank)
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += all[rank * layers + layer][i];
    if (sum[1] > 0)
      drift[layer] = std::sqrt(static_cast<double>(sum[0]) / static_cast<double>(sum[1]));
  }
  return drift;
}

}  // namespace concertina
