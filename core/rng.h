// Counter-based random numbers (Philox4x32-10, Salmon et al., SC'11; library: Random123).
// Invariant: a value depends on (seed, purpose, step, sample, unit, element) alone, never on
// rank, thread, layout or order of calls.
#pragma once

#include <array>
#include <cstdint>

namespace concertina {

/// The purpose of a stream of random numbers; part of the key, so streams never meet.
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

/// The place of a microbatch among all random numbers of a run.
struct RandomAt {
  std::uint64_t seed = 0;
  std::uint32_t step = 0;    // of the run
  std::uint32_t sample = 0;  // the microbatch's first, in the step's batch
  std::uint32_t unit = 0;    // of the model
  bool operator==(const RandomAt&) const = default;
};

class Rng {
 public:
  Rng(std::uint64_t seed, Purpose purpose) : seed_(seed), purpose_(purpose) {}

  /// The key of Philox4x32-10, for kernels that make words themselves.
  std::array<std::uint32_t, 2> key() const;

  /// Four independent uniform 32-bit words at one counter.
  std::array<std::uint32_t, 4> words(std::uint32_t step, std::uint32_t sample, std::uint32_t unit,
                                     std::uint32_t element) const;
  /// Uniform in [0, 1), 24 bits.
  float uniform(std::uint32_t step, std::uint32_t sample, std::uint32_t unit,
                std::uint32_t element) const;
  /// Standard normal (Box-Muller on words 0 and 1).
  float normal(std::uint32_t step, std::uint32_t sample, std::uint32_t unit,
               std::uint32_t element) const;

 private:
  std::uint64_t seed_;
  Purpose purpose_;
};

/// Element e of a sample is dropped where word e % 4 of Rng{seed, purpose}.words(step, sample,
/// unit, e / 4) is below threshold(). Purpose::dropout is that of activations, whose elements are T
/// C; Purpose::attention_dropout that of attention's probabilities (AttentionShape::mask_row()).
struct DropoutMask {
  double share = 0;  // of what is dropped, [0, 1)
  RandomAt at;
  std::int64_t sample_elements = 0;  // at most 2^34

  std::uint32_t threshold() const { return static_cast<std::uint32_t>(share * 0x1p32); }
  /// The factor of what is kept, so that the expectation stays.
  float scale() const { return static_cast<float>(1 / (1 - share)); }
};

}  // namespace concertina
