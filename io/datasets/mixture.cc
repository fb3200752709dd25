#include "io/datasets/mixture.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/rng.h"
#include "io/datasets/split_files.h"

namespace concertina {
namespace {

/// Returns the weights after checking them.
std::vector<double> weights_of(std::span<const MixSource> sources) {
  if (sources.size() > MixOrder::kMostSources)
    throw_input(fmt::format("too many sources: {}", sources.size()), "data.weights",
                fmt::format("use at most {}", MixOrder::kMostSources));
  std::vector<double> weights;
  for (const MixSource& source : sources) weights.push_back(source.weight);
  const double largest = *std::ranges::max_element(weights);
  for (const MixSource& source : sources)
    if (!(source.weight > 0) || source.weight < 1e-4 * largest / 10)
      throw_input(fmt::format("the weight {} of {} is not above 1/100,000 of the largest",
                              source.weight, source.name),
                  "data.weights", "increase the weight, or remove the source");
  return weights;
}

void check_fields(std::span<const MixSource> sources) {
  for (const MixSource& source : sources) {
    const std::span<const Field> fields = source.dataset->fields(),
                                 first = sources[0].dataset->fields();
    if (field_index(*source.dataset, "targets") < 0)
      throw_input(fmt::format("{} has labels, but only text can be mixed by weight", source.name),
                  "data.weights", "use a language model (model.task), or remove data.weights");
    if (!std::ranges::equal(fields, first))
      throw_input(fmt::format("{} and {} have different fields", sources[0].name, source.name),
                  "data.weights", "use sources of the same kind");
  }
}

}  // namespace

Mixture::Mixture(std::vector<MixSource> sources)
    : sources_(std::move(sources)), order_(weights_of(sources_)) {
  check_fields(sources_);
  std::vector<std::string> files;
  for (const MixSource& source : sources_)
    for (const std::string& file : source.dataset->corpus().files()) files.push_back(file);
  corpus_ = std::make_shared<const Corpus>(files, "data.files", /*joined=*/true);
  for (const Split split : kAllSplits) {
    std::vector<std::uint64_t>& first = first_[static_cast<std::size_t>(split)];
    first.push_back(0);
    for (const MixSource& source : sources_)
      first.push_back(first.back() + source.dataset->samples(split));
  }
}

std::uint64_t Mixture::first(Split split, std::size_t source) const {
  return first_[static_cast<std::size_t>(split)][source];
}

std::uint64_t Mixture::seed_of(std::uint64_t seed, std::size_t source) {
  if (source == 0) return seed;
  const auto words = Rng(seed, Purpose::shuffle)
                         .words(0, 0, ~std::uint32_t{0}, static_cast<std::uint32_t>(source));
  return std::uint64_t{words[0]} << 32 | words[1];
}

std::size_t Mixture::find(Split split, std::uint64_t& sample) const {
  const std::vector<std::uint64_t>& first = first_[static_cast<std::size_t>(split)];
  const auto after = std::upper_bound(first.begin(), first.end() - 1, sample);
  const auto source = static_cast<std::size_t>(after - first.begin()) - 1;
  sample -= first[source];
  return source;
}

std::int64_t Mixture::vocabulary() const {
  std::int64_t most = 0;
  for (const MixSource& source : sources_) most = std::max(most, source.dataset->vocabulary());
  return most;
}

std::int64_t Mixture::targets_before(Split split, std::uint64_t sample) const {
  const std::size_t source = find(split, sample);
  std::int64_t targets = sources_[source].dataset->targets_before(split, sample);
  for (std::size_t s = 0; s < source; ++s) targets += sources_[s].dataset->targets(split);
  return targets;
}

void Mixture::write(const SampleAt& at, std::span<const View> views) const {
  SampleAt within = at;
  const std::size_t source = find(at.split, within.sample);
  if (at.split == Split::train) within.seed = seed_of(at.seed, source);
  sources_[source].dataset->write(within, views);
}

void Mixture::verify(const std::function<void()>& progress) const {
  for (const MixSource& source : sources_) source.dataset->verify(progress);
}

std::string Mixture::summary() const {
  std::string text;
  for (std::size_t s = 0; s < sources_.size(); ++s)
    text += fmt::format("source      {}: weight {} of {}\n{}", sources_[s].name, order_.parts()[s],
                        order_.period(), sources_[s].dataset->summary());
  return text;
}

std::vector<std::string> Mixture::notes(std::uint64_t samples) const {
  std::vector<std::string> lines;
  for (std::size_t s = 0; s < sources_.size(); ++s) {
    const std::uint64_t drawn = order_.before(samples, s);
    const auto own = static_cast<double>(sources_[s].dataset->samples(Split::train));
    lines.push_back(fmt::format(
        "{}: {:.4g}% of the samples, {} of {}: {:.2f} epochs of its {}", sources_[s].name,
        100 * static_cast<double>(order_.parts()[s]) / static_cast<double>(order_.period()), drawn,
        samples, static_cast<double>(drawn) / own, own));
    std::vector<std::string> own_lines = sources_[s].dataset->notes(drawn);
    if (const Splits* const splits = sources_[s].dataset->splits())
      for (std::string& line : split_lines(*splits, {})) own_lines.push_back(std::move(line));
    for (const std::string& line : own_lines)
      lines.push_back(fmt::format("{}: {}", sources_[s].name, line));
  }
  return lines;
}

const Mixture* mixture_of(const Dataset& dataset) {
  return dynamic_cast<const Mixture*>(&dataset);
}

}  // namespace concertina
