#include "io/permutation.h"

#include "core/error.h"
#include "core/rng.h"

namespace concertina {

namespace {
// Four rounds make a Feistel network a pseudo-random permutation (Luby and Rackoff, 1988); two
// more, because small domains have small halves.
constexpr std::uint32_t kRounds = 6;
}  // namespace

Permutation::Permutation(std::uint64_t seed, std::uint64_t epoch, std::uint64_t n)
    : seed_(seed), epoch_(epoch), n_(n) {
  CONCERTINA_CHECK(n >= 1 && n <= (std::uint64_t{1} << 62), "permutation of {} elements", n);
  while ((std::uint64_t{1} << (2 * half_bits_)) < n) ++half_bits_;
}

std::uint64_t Permutation::encrypt(std::uint64_t value) const {
  const Rng rng(seed_, Purpose::shuffle);
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = value >> half_bits_, right = value & mask;
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    const auto word =
        rng.words(static_cast<std::uint32_t>(epoch_), static_cast<std::uint32_t>(epoch_ >> 32),
                  round, static_cast<std::uint32_t>(right))[0];
    const std::uint64_t next = left ^ (word & mask);
    left = right;
    right = next;
  }
  return left << half_bits_ | right;
}

std::uint64_t Permutation::operator()(std::uint64_t index) const {
  CONCERTINA_CHECK(index < n_, "index {} of {}", index, n_);
  // The domain is less than 4n, so this takes fewer than four turns on average, and it ends: the
  // cycle that holds `index` comes back to it.
  std::uint64_t value = encrypt(index);
  while (value >= n_) value = encrypt(value);
  return value;
}

}  // namespace concertina
