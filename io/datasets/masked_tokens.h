// Samples for masked language models, made of those of another dataset (Devlin et al., 2019, 3.1).
// Invariant: which tokens are masked is a pure function of (seed, epoch, sample): others in each
// epoch of training, the same each time in held-out splits.
#pragma once

#include <memory>

#include "io/datasets/dataset.h"

namespace concertina {

/// `dataset`, which has tokens, with types and lengths where it lacks them, and with targets [T]:
/// the token as it was where it was chosen, else kIgnored. Of those chosen, 80% are read as the
/// mask, 10% as any token that is no mark, 10% as they are. Marks of sentences and padding are
/// never chosen. `tokenizer`: for the ids of marks; null: bytes. Input errors: no tokens; fewer
/// than masked_count() of a sample are no marks.
std::shared_ptr<const Dataset> masked_tokens(std::shared_ptr<const Dataset> dataset,
                                             std::shared_ptr<const Tokenizer> tokenizer);

}  // namespace concertina
