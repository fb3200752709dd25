// Short documents packed into samples, several in each, that know nothing of each other.
// Invariants: each token with one before it in its document is a target once in an epoch; which
// documents share a sample follows from their lengths and order alone, so samples come again.
//
// Dimensions: T tokens of a sample.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "io/datasets/windows.h"

namespace concertina {

/// Tokens [begin, begin + length] of the text, of which the last is a target alone.
struct PackedPiece {
  std::uint64_t begin = 0;
  std::uint32_t length = 0;  // at least 1, at most T
};

/// Samples of one split: sample s has pieces [first[s], first[s + 1]), in this order.
struct PackedPieces {
  std::vector<PackedPiece> pieces{};
  std::vector<std::uint64_t> first{0};
  std::vector<std::uint64_t> targets{0};  // before each sample

  std::uint64_t samples() const { return first.size() - 1; }
};

/// `bounds`: ascending places where documents begin; the last is the end. A document longer than T
/// is cut into pieces of T, and the rest of it is one more. Each piece goes into the first sample
/// that has room for it (first fit, in the order of the text). O(n log n) for n pieces.
PackedPieces pack_documents(std::span<const std::uint64_t> bounds, std::int64_t tokens);

/// Fields tokens, targets and starts: documents are packed, and tokens of one see no other's.
/// `bounds`: of all splits' documents, as of pack_documents(); where a split ends within a
/// document, it ends with the one before it. Takes 16 bytes per document of the splits and 16 per
/// sample. Input errors: no document of two tokens to train on, or in a split that is asked for.
std::unique_ptr<Dataset> packed_dataset(const DataOptions& options, WindowedTokens parts,
                                        std::vector<std::uint64_t> bounds);

}  // namespace concertina
