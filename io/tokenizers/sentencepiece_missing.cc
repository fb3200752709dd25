#include "core/error.h"
#include "io/tokenizers/sentencepiece_library.h"

namespace concertina {

bool has_sentencepiece() {
  return false;
}

std::unique_ptr<Tokenizer> open_sentencepiece_model(const std::string& path,
                                                    const DeclaredTokens& /*said*/) {
  throw_input("this program was built without libsentencepiece", path,
              "install libsentencepiece-dev and rebuild, or use a tokenizer.json");
}

}  // namespace concertina
