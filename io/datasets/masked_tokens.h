// Samples for masked language models, derived from another dataset (Devlin et al., 2019, 3.1).
// Invariant: the masked tokens are a pure function of (seed, epoch, sample). They differ between
// epochs of training and are fixed in held-out splits.
#pragma once

#include <memory>

#include "io/datasets/dataset.h"

namespace concertina {

/// Wraps `dataset`, which must have tokens; adds types and lengths if it lacks them, and targets
/// [T]: the original token where it is chosen, otherwise kIgnored. Of the chosen tokens, 80% are
/// replaced with the mask, 10% with a random non-mark token, and 10% are unchanged. Sentence marks
/// and padding are never chosen. `tokenizer` has the special-token ids; null: bytes. Throws
/// Error{bad_input} if there are no tokens or a sample has fewer than masked_count() non-marks.
std::shared_ptr<const Dataset> masked_tokens(std::shared_ptr<const Dataset> dataset,
                                             std::shared_ptr<const Tokenizer> tokenizer);

}  // namespace concertina
