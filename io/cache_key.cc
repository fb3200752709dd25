#include "io/cache_key.h"

#include <fmt/format.h>

namespace concertina {

Sha256Digest prefix_digest(std::string_view model, std::string_view numerics,
                           std::span<const std::string> tensors) {
  Sha256 hash;
  // The lengths make the concatenation unambiguous.
  const auto add = [&](std::string_view text) {
    hash.update(fmt::format("{}:", text.size()));
    hash.update(text);
  };
  add("concertina activations 1");
  add(model);
  add(numerics);
  for (const std::string& tensor : tensors) add(tensor);
  return hash.digest();
}

}  // namespace concertina
