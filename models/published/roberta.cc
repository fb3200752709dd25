// The Roberta... classes of transformers.
#include "models/published/bert_like.h"

namespace concertina::published {

HuggingFace roberta() {
  return roberta_like("Roberta");
}

}  // namespace concertina::published
