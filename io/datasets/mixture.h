// Several sources of samples as one dataset, each drawn by its weight (data.weights).
// Invariant: sample n of a run is a pure function of the sources, the weights, the seed and n; a
// source is shuffled by itself, and each of its samples comes once before any comes again.
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
  std::string name;  // for logs and figures
  std::shared_ptr<const Dataset> dataset;
  double weight = 0;
};

/// Samples of a split are numbered through the sources: sample i of source s is number first(split,
/// s) + i. In training, SampleAt::epoch is that of the source. An epoch of all is as many samples
/// as the sources have together.
class Mixture final : public FileDataset {
 public:
  /// Input errors: sources of different fields, or of other samples than texts; what is wrong with
  /// a weight.
  explicit Mixture(std::vector<MixSource> sources);

  std::span<const MixSource> sources() const { return sources_; }
  const MixOrder& order() const { return order_; }
  std::uint64_t first(Split split, std::size_t source) const;
  /// The seed of a source: sources of one size would else have one order.
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
  /// The source of a sample, which becomes the number within it.
  std::size_t find(Split split, std::uint64_t& sample) const;

  std::vector<MixSource> sources_;
  MixOrder order_;
  std::array<std::vector<std::uint64_t>, 3> first_;  // of each split, by source; the last: in all
  std::shared_ptr<const Corpus> corpus_;             // of all sources
};

/// Null: `dataset` is no mixture.
const Mixture* mixture_of(const Dataset& dataset);

}  // namespace concertina
