// Digests of a model's leading frozen units and their weights (io/cache_key.h). Invariant: units
// with equal digests compute the same output for the same sample.
#pragma once

#include <string>
#include <vector>

#include "experiments/run/trainer.h"
#include "io/cache_key.h"

namespace concertina {

class PrefixDigests {
 public:
  /// `numerics`: what determines the bits besides model and weights. `trainer` must outlive this.
  PrefixDigests(const Trainer& trainer, std::string numerics);

  /// Forgets the hashes of weights that are now trainable. Called on every rank after each change
  /// to the assignment, before the next step.
  void follow();
  /// The digest of units [0, units), which must all be frozen and on this rank. Weight hashes are
  /// reused while the weights stay frozen, so most calls hash little.
  Sha256Digest digest(int units);

 private:
  const std::string& hash_of(std::size_t bucket);

  const Trainer& trainer_;
  const std::string numerics_;
  std::vector<std::string> hashes_;  // of each bucket's weights; empty: unknown
};

}  // namespace concertina
