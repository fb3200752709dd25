// Texts that are nearly the same.
// Invariant: pure; the same texts give the same answer, whatever the machine.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace concertina {

/// Text `item` is as an earlier one, `of`, but for a little: `similarity` is the share of shingles
/// that either has which both have (Jaccard's index), in [0, 1].
struct NearDuplicate {
  std::size_t item = 0, of = 0;
  double similarity = 0;
};

/// The texts that are as similar as `least` or more to an earlier one that is none of them itself,
/// each once, in order. Shingles are runs of 5 bytes, or the whole of a shorter text. Candidates
/// are found by MinHash (Broder, "On the resemblance and containment of documents", 1997) in 16
/// bands of 4 hashes: of pairs at 0.8 one in 5,000 is missed, at 0.6 one in 10. A candidate's
/// shingles are compared themselves. Time is in proportion to the bytes, but where many texts are
/// alike.
std::vector<NearDuplicate> near_duplicates(std::span<const std::string_view> texts, double least);

}  // namespace concertina
