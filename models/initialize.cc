#include "models/initialize.h"

#include <algorithm>

#include "core/rng.h"

namespace concertina {
namespace {

float element(const BucketTensor& tensor, const Rng& rng, std::size_t index) {
  switch (tensor.init.kind) {
    case Init::Kind::zeros:
      return 0;
    case Init::Kind::ones:
      return 1;
    case Init::Kind::normal:
      break;
  }
  return tensor.init.std * rng.normal(static_cast<std::uint32_t>(index >> 32),
                                      static_cast<std::uint32_t>(tensor.parameter),
                                      static_cast<std::uint32_t>(tensor.unit),
                                      static_cast<std::uint32_t>(index));
}

}  // namespace

void initialize(const Bucket& bucket, std::uint64_t seed, std::size_t begin, std::span<float> out) {
  const Rng rng(seed, Purpose::init);
  const std::size_t end = begin + out.size();
  std::fill(out.begin(), out.end(), 0.0F);
  for (const BucketTensor& tensor : bucket.tensors) {
    const std::size_t from = std::max(begin, tensor.offset);
    const std::size_t to = std::min(end, tensor.offset + tensor.count);
    for (std::size_t at = from; at < to; ++at)
      out[at - begin] = element(tensor, rng, at - tensor.offset);
  }
}

}  // namespace concertina
