// Counter-based random numbers (Philox4x32-10, Salmon et al., SC'11; library: Random123).
// Invariant: a value depends only on (seed, purpose, step, sample, unit, element), not on rank,
// thread, layout or call order.
#pragma once

#include <array>
#include <cstdint>

namespace concertina {

/// The purpose of a random stream. It is part of the key, so streams never overlap.
enum class Purpose : std::uint32_t {
  init = 1,
  shuffle = 2,
  offset = 3,
  sample = 4,
  dropout = 5,
  skip = 6,
  augment = 7,
  mask = 8,
  split = 9,
  attention_dropout = 10
};

/// The position of a microbatch in the random streams of a run.
struct RandomAt {
  std::uint64_t seed = 0;
  std::uint32_t step = 0;    // in the run
  std::uint32_t sample = 0;  // index of the microbatch's first sample in the step's batch
  std::uint32_t unit = 0;    // in the model
  bool operator==(const RandomAt&) const = default;
};

class Rng {
 public:
  Rng(std::uint64_t seed, Purpose purpose) : seed_(seed), purpose_(purpose) {}

  /// Returns the key of Philox4x32-10, for kernels that generate words themselves.
  std::array<std::uint32_t, 2> key() const;

  /// Returns four independent uniform 32-bit words for one counter.
  std::array<std::uint32_t, 4> words(std::uint32_t step, std::uint32_t sample, std::uint32_t unit,
                                     std::uint32_t element) const;
  /// Returns a uniform value in [0, 1) with 24 bits.
  float uniform(std::uint32_t step, std::uint32_t sample, std::uint32_t unit,
                std::uint32_t element) const;
  /// Returns a standard normal value (Box-Muller on words 0 and 1).
  float normal(std::uint32_t step, std::uint32_t sample, std::uint32_t unit,
               std::uint32_t element) const;

 private:
  std::uint64_t seed_;
  Purpose purpose_;
};

/// Element e of a sample is dropped if word e % 4 of Rng{seed, purpose}.words(step, sample, unit, e
/// / 4) is below threshold(). Purpose::dropout is for activations, with T C elements per sample;
/// Purpose::attention_dropout for attention probabilities (AttentionShape::mask_row()).
struct DropoutMask {
  double share = 0;  // dropped fraction, [0, 1)
  RandomAt at;
  std::int64_t sample_elements = 0;  // at most 2^34

  std::uint32_t threshold() const { return static_cast<std::uint32_t>(share * 0x1p32); }
  /// Returns the factor for kept elements, which preserves the expectation.
  float scale() const { return static_cast<float>(1 / (1 - share)); }
};

}  // namespace concertina
