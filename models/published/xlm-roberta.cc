// The XLMRoberta... classes of transformers.
#include "models/published/bert_like.h"

namespace concertina::published {

HuggingFace xlm_roberta() {
  return roberta_like("XLMRoberta");
}

}  // namespace concertina::published
