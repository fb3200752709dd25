// The Camembert... classes of transformers.
#include "models/published/bert_like.h"

namespace concertina::published {

HuggingFace camembert() {
  return roberta_like("Camembert");
}

}  // namespace concertina::published
