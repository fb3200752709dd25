// Short documents packed into samples, several per sample, without attention between documents.
// Invariants: each token with a predecessor in its document is a target once per epoch. The packing
// depends only on the lengths and order of documents, so samples repeat.
//
// Dimensions: T tokens per sample.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "io/datasets/windows.h"

namespace concertina {

/// Tokens [begin, begin + length] of the text; the last one is only a target.
struct PackedPiece {
  std::uint64_t begin = 0;
  std::uint32_t length = 0;  // at least 1, at most T
};

/// The samples of one split: sample s has pieces [first[s], first[s + 1]), in this order.
struct PackedPieces {
  std::vector<PackedPiece> pieces{};
  std::vector<std::uint64_t> first{0};
  std::vector<std::uint64_t> targets{0};  // before each sample

  std::uint64_t samples() const { return first.size() - 1; }
};

/// `bounds` are the ascending starts of documents, followed by the end. Documents longer than T are
/// split into pieces of T tokens and a remainder. Each piece is put into the first sample with
/// enough space (first fit, in text order). O(n log n) for n pieces.
PackedPieces pack_documents(std::span<const std::uint64_t> bounds, std::int64_t tokens);

/// Returns a dataset with the fields tokens, targets and starts: documents are packed, and
/// attention is limited to a document. `bounds` covers all splits, as for pack_documents(); only
/// documents entirely within a split are used. Uses 16 bytes per document and 16 per sample. Throws
/// Error{bad_input} if training or a requested split has no document of at least two tokens.
std::unique_ptr<Dataset> packed_dataset(const DataOptions& options, WindowedTokens parts,
                                        std::vector<std::uint64_t> bounds);

}  // namespace concertina
