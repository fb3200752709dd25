// The Llama... classes of transformers, for all Llama versions, TinyLlama, and SmolLM 1 and 2.
#include "models/published/llama_like.h"

namespace concertina::published {

HuggingFace llama() {
  return llama_like("Llama");
}

}  // namespace concertina::published
