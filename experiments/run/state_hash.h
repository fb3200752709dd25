// A SHA-256 of everything that was trained, to compare two runs bit for bit.
#pragma once

#include <string>
#include <vector>

#include "experiments/run/trainer.h"

namespace concertina {

/// SHA-256 over the SHA-256 of each block of the canonical grid (weights, then each optimizer
/// state), with buckets and blocks in order: the same in any layout. Collective; 64 bytes per block
/// (16 KiB of weights) are sent to rank 0, and the hash to every rank.
std::string state_sha256(Trainer& trainer);

/// Such a hash for each bucket, in order. Collective; the same on every rank.
std::vector<std::string> bucket_sha256(Trainer& trainer);

}  // namespace concertina
