// Magnitude pruning (Han et al. 2015) of the matrices of hidden layers, on export.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "experiments/config/config.h"
#include "io/checkpoint/checkpoint_reader.h"

namespace concertina {

struct ZeroCount {
  std::string tensor;
  std::int64_t zeros = 0, elements = 0;
};

/// Reads merged weights, with the smallest of them set to zero.
class PrunedWeights {
 public:
  /// Prunes the `share` of weights with the smallest magnitudes: of each matrix, or with `global`,
  /// of all matrices together, which are then all in memory at once.
  PrunedWeights(CheckpointReader& reader, const RunConfig& config, double share, bool global);

  void read(const std::string& tensor, std::span<float> out);
  /// The matrices of hidden layers read so far.
  const std::vector<ZeroCount>& counts() const { return counts_; }

 private:
  CheckpointReader& reader_;
  std::map<std::string, float> limits_;  // by matrix: magnitudes up to this become zero
  std::vector<ZeroCount> counts_;
};

}  // namespace concertina
