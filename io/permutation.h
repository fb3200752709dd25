// A pseudo-random permutation of [0, n) that is computed, not stored: O(1) memory, any element at
// any time. Balanced Feistel network over Philox (core/rng.h) with cycle walking: Black and
// Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002.
#pragma once

#include <cstdint>

namespace concertina {

class Permutation {
 public:
  /// 1 <= n <= 2^62. Equal (seed, epoch, n) give equal permutations.
  Permutation(std::uint64_t seed, std::uint64_t epoch, std::uint64_t n);

  std::uint64_t size() const { return n_; }
  /// The image of `index` in [0, n); a bijection.
  std::uint64_t operator()(std::uint64_t index) const;

 private:
  /// A bijection of [0, 2^(2 * half_bits_)).
  std::uint64_t encrypt(std::uint64_t value) const;

  std::uint64_t seed_, epoch_, n_;
  int half_bits_ = 1;
};

}  // namespace concertina
