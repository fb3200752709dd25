#include "experiments/cache/prefix_digests.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/index.h"

namespace concertina {
namespace {

/// The properties that distinguish prefixes with the same weights in different models.
std::string text_of_units(const ModelSpec& model, int units) {
  std::string text = fmt::format("{} x {} tokens, {}", model.samples, model.tokens_per_sample,
                                 name_of(model.activation));
  for (int u = 0; u < units; ++u) {
    text += "\n" + model.units[at(u)].name;
    for (const ParameterSpec& parameter : model.units[at(u)].parameters)
      text += fmt::format(" {}[{}]", parameter.name, fmt::join(parameter.shape, ","));
  }
  return text;
}

}  // namespace

PrefixDigests::PrefixDigests(const Trainer& trainer, std::string numerics)
    : trainer_(trainer),
      numerics_(std::move(numerics)),
      hashes_(trainer.assignment().buckets.size()) {}

void PrefixDigests::follow() {
  const std::vector<Bucket>& buckets = trainer_.assignment().buckets;
  hashes_.resize(buckets.size());
  for (std::size_t b = 0; b < buckets.size(); ++b)
    if (!buckets[b].frozen) hashes_[b].clear();
}

const std::string& PrefixDigests::hash_of(std::size_t bucket) {
  if (!hashes_[bucket].empty()) return hashes_[bucket];
  const Bucket& one = trainer_.assignment().buckets[bucket];
  CONCERTINA_CHECK(one.frozen, "{} trains", one.name);
  std::vector<std::byte> scratch;
  const View weights =
      host_view(trainer_.tensor_memory(), trainer_.state().weights()[bucket], scratch);
  CONCERTINA_CHECK(!weights.empty(), "no weights of {}", one.name);
  hashes_[bucket] =
      sha256_hex(std::span(static_cast<const std::byte*>(weights.data), weights.bytes()));
  trainer_.beat();
  return hashes_[bucket];
}

Sha256Digest PrefixDigests::digest(int units) {
  const std::vector<Bucket>& buckets = trainer_.assignment().buckets;
  std::vector<std::string> tensors;
  for (std::size_t b = 0; b < buckets.size(); ++b)
    if (buckets[b].uses.front() < units) tensors.push_back(buckets[b].name + " " + hash_of(b));
  return prefix_digest(text_of_units(trainer_.job().model, units), numerics_, tensors);
}

}  // namespace concertina
