// Several sources of samples as one dataset, sampled by weight (data.weights). Invariant: sample n
// of a run is a pure function of the sources, the weights, the seed and n. Each source is shuffled
// separately, and no sample repeats before all samples of its source have been drawn.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io/datasets/dataset.h"
#include "io/datasets/mix_order.h"

namespace concertina {

struct MixSource {
  std::string name;  // for logs and metrics
  std::shared_ptr<const Dataset> dataset;
  double weight = 0;
};

/// Numbers the samples of a split across sources: sample i of source s is number first(split, s) +
/// i. In training, SampleAt::epoch is the epoch of the source. An epoch of the mixture has as many
/// samples as all sources together.
class Mixture final : public FileDataset {
 public:
  /// Throws Error{bad_input} if sources have different fields or samples other than text, or a
  /// weight is invalid.
  explicit Mixture(std::vector<MixSource> sources);

  std::span<const MixSource> sources() const { return sources_; }
  const MixOrder& order() const { return order_; }
  std::uint64_t first(Split split, std::size_t source) const;
  /// Returns the seed of a source: sources of equal size must not be shuffled identically.
  static std::uint64_t seed_of(std::uint64_t seed, std::size_t source);

  std::span<const Field> fields() const override { return sources_[0].dataset->fields(); }
  std::int64_t vocabulary() const override;
  std::uint64_t samples(Split split) const override { return first(split, sources_.size()); }
  std::int64_t targets_before(Split split, std::uint64_t sample) const override;
  void write(const SampleAt& at, std::span<const View> views) const override;
  bool repeats() const override { return false; }
  const Corpus& corpus() const override { return *corpus_; }
  void verify(const std::function<void()>& progress) const override;
  std::string summary() const override;
  std::vector<std::string> notes(std::uint64_t samples) const override;

 private:
  /// Returns the source of a sample, and replaces `sample` with its number within that source.
  std::size_t find(Split split, std::uint64_t& sample) const;

  std::vector<MixSource> sources_;
  MixOrder order_;
  std::array<std::vector<std::uint64_t>, 3> first_;  // per split: first of each source; total
  std::shared_ptr<const Corpus> corpus_;             // of all sources
};

/// Returns null if `dataset` is not a mixture.
const Mixture* mixture_of(const Dataset& dataset);

}  // namespace concertina
