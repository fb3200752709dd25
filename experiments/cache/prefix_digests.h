// Digests of the leading frozen units of a model with their weights (io/cache_key.h).
// Invariant: equal digests mean units that make the same of the same sample.
#pragma once

#include <string>
#include <vector>

#include "experiments/run/trainer.h"
#include "io/cache_key.h"

namespace concertina {

class PrefixDigests {
 public:
  /// `numerics`: what decides bits besides model and weights. `trainer` outlives it.
  PrefixDigests(const Trainer& trainer, std::string numerics);

  /// After each change of the assignment, on every rank, before another step: forgets the weights
  /// that train now.
  void follow();
  /// The digest of units [0, units), all frozen, whose weights this rank has. What was hashed
  /// before is as it was while it stays frozen, so most calls hash little.
  Sha256Digest digest(int units);

 private:
  const std::string& hash_of(std::size_t bucket);

  const Trainer& trainer_;
  const std::string numerics_;
  std::vector<std::string> hashes_;  // by bucket: of its weights; empty: not known
};

}  // namespace concertina
