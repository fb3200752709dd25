#include "io/quality/near_duplicates.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <unordered_map>

#include "core/rng.h"
#include "io/datasets/content_hash.h"

namespace concertina {
namespace {

constexpr std::size_t kShingle = 5;  // bytes
constexpr std::size_t kBands = 16, kRows = 4, kHashes = kBands * kRows;
// A text is compared with the first ones of its bucket alone: what they do not resemble is hardly
// alike among itself, and the time stays in bounds.
constexpr std::size_t kMostCompared = 32;

using Shingles = std::vector<std::uint32_t>;           // hashes, ascending, each once
using Signature = std::array<std::uint32_t, kHashes>;  // the least of each permutation

/// Multipliers (odd) and addends of permutations of 32 bits.
struct Permutations {
  std::array<std::uint32_t, kHashes> multiply, add;

  Permutations() {
    const Rng rng(0, Purpose::shuffle);
    for (std::uint32_t i = 0; i < kHashes; ++i) {
      const auto words = rng.words(i, 0, 0, 0);
      multiply[i] = words[0] | 1;
      add[i] = words[1];
    }
  }
};

Shingles shingles_of(std::string_view text) {
  Shingles shingles;
  for (std::size_t i = 0; i == 0 || i + kShingle <= text.size(); ++i)
    shingles.push_back(static_cast<std::uint32_t>(content_hash(text.substr(i, kShingle))));
  std::ranges::sort(shingles);
  shingles.erase(std::unique(shingles.begin(), shingles.end()), shingles.end());
  return shingles;
}

Signature signature_of(const Shingles& shingles) {
  static const Permutations kPermutations;
  Signature least;
  least.fill(std::numeric_limits<std::uint32_t>::max());
  for (const std::uint32_t shingle : shingles)
    for (std::size_t i = 0; i < kHashes; ++i) {
      // The low bits of a product follow from the low bits of its factors: mix the high ones in.
      std::uint32_t hash = shingle * kPermutations.multiply[i] + kPermutations.add[i];
      hash ^= hash >> 15;
      hash *= 0x2c1b3c6dU;
      least[i] = std::min(least[i], hash);
    }
  return least;
}

double similarity_of(const Shingles& a, const Shingles& b) {
  std::size_t both = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    both += a[i] == b[j] ? 1 : 0;
    const bool forward = a[i] <= b[j];
    j += b[j] <= a[i] ? 1 : 0;
    i += forward ? 1 : 0;
  }
  return static_cast<double>(both) / static_cast<double>(a.size() + b.size() - both);
}

/// What stands for the texts so far, by band and its hashes.
class Buckets {
 public:
  /// The texts that share a band with `signature`, ascending, each once.
  std::vector<std::size_t> candidates(const Signature& signature) const {
    std::vector<std::size_t> found;
    for (std::size_t band = 0; band < kBands; ++band)
      if (const auto bucket = of_[band].find(key(signature, band)); bucket != of_[band].end())
        found.insert(found.end(), bucket->second.begin(), bucket->second.end());
    std::ranges::sort(found);
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }
  void add(std::size_t item, const Signature& signature) {
    for (std::size_t band = 0; band < kBands; ++band) {
      std::vector<std::size_t>& bucket = of_[band][key(signature, band)];
      if (bucket.size() < kMostCompared) bucket.push_back(item);
    }
  }

 private:
  static std::uint64_t key(const Signature& signature, std::size_t band) {
    return content_hash(std::as_bytes(std::span(signature).subspan(band * kRows, kRows)));
  }
  std::array<std::unordered_map<std::uint64_t, std::vector<std::size_t>>, kBands> of_;
};

}  // namespace

std::vector<NearDuplicate> near_duplicates(std::span<const std::string_view> texts, double least) {
  std::vector<NearDuplicate> found;
  Buckets buckets;
  for (std::size_t item = 0; item < texts.size(); ++item) {
    const Shingles own = shingles_of(texts[item]);
    const Signature signature = signature_of(own);
    NearDuplicate best{.item = item};
    for (const std::size_t other : buckets.candidates(signature)) {
      const double similarity = similarity_of(own, shingles_of(texts[other]));
      if (similarity >= least && similarity > best.similarity) best = {item, other, similarity};
    }
    if (best.similarity > 0)
      found.push_back(best);
    else
      buckets.add(item, signature);
  }
  return found;
}

}  // namespace concertina
