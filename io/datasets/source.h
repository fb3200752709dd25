// The samples of a dataset as the batches of steps (core/model/batch.h).
// Invariants: what a step holds is a pure function of (dataset, seed, step); an epoch visits each
// of its samples once; only the train split is trained on.
//
// Dimensions: B samples of a batch.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "io/datasets/mixture.h"

namespace concertina {

/// A pseudo-random permutation of [0, n) that is computed, not stored: O(1) memory, any element at
/// any time. Balanced Feistel network over Philox (core/rng.h) with cycle walking: Black and
/// Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002.
class Permutation {
 public:
  /// 1 <= n <= 2^62. Equal (seed, epoch, n) give equal permutations.
  Permutation(std::uint64_t seed, std::uint64_t epoch, std::uint64_t n);

  std::uint64_t size() const { return n_; }
  /// The image of `index` in [0, n); a bijection.
  std::uint64_t operator()(std::uint64_t index) const;

 private:
  /// A bijection of [0, 2^(2 * half_bits_)).
  std::uint64_t encrypt(std::uint64_t value) const;

  std::uint64_t seed_, epoch_, n_;
  int half_bits_ = 1;
};

/// The samples of a dataset as an endless row of epochs, each of which takes all its samples in a
/// random order. Not for several threads at once.
class EpochRow {
 public:
  EpochRow(std::shared_ptr<const Dataset> dataset, std::uint64_t seed);

  struct Epoch {
    std::uint64_t number = 0, first = 0;  // `first`: index of its first sample
    Permutation order;
  };
  /// The epoch of the sample with this index. Takes time in proportion to the epochs from the last
  /// one asked for, or from the first where that is nearer.
  const Epoch& at(std::uint64_t index);
  Epoch make_epoch(std::uint64_t number, std::uint64_t first) const;

 private:
  std::shared_ptr<const Dataset> dataset_;
  std::uint64_t seed_;
  Epoch epoch_;  // of the last sample asked for
};

/// Sample k of step s is number s * B + k of an EpochRow; of a mixture (io/datasets/mixture.h) it
/// is the next one in the row of the source that is drawn. Not for several threads at once.
class TrainingSource final : public BatchSource {
 public:
  TrainingSource(std::shared_ptr<const Dataset> dataset, std::uint64_t seed,
                 std::int64_t global_batch);

  std::span<const Field> fields() const override { return dataset_->fields(); }
  void load(std::int64_t step, std::int64_t first, std::int64_t count,
            std::span<const View> views) override;
  std::int64_t valid_targets(std::int64_t step, std::int64_t samples) const override;

  /// Which sample number `index` = s * B + k is, in which epoch; of a mixture that of its source.
  struct Place {
    std::uint64_t epoch = 0, sample = 0;
  };
  Place place(std::uint64_t index) const;
  /// Whole epochs of which all samples are in the first `steps` steps.
  std::int64_t epochs_done(std::int64_t steps) const {
    return static_cast<std::int64_t>(position(steps).epoch);
  }

  /// How far a run is before a step: `done` of the `samples` of epoch `epoch`; done < samples.
  struct Position {
    std::uint64_t epoch = 0, done = 0, samples = 0;
  };
  Position position(std::int64_t step) const;
  /// The first step that begins in epoch `epoch` or later. An epoch may end within a step: the rest
  /// of that step's samples are of the next one. Takes time in proportion to `epoch`.
  std::int64_t first_step(std::uint64_t epoch) const;

  /// The order of an epoch's samples; not of a mixture.
  Permutation order(std::uint64_t epoch) const { return rows_[0].make_epoch(epoch, 0).order; }

  /// Which sample stands at `place` in [0, B) of the batch of `step`: the same number for the same
  /// sample in the same view, whatever the epoch, in [0, samples_of_views()). Only where
  /// dataset.repeats().
  std::uint64_t sample(std::int64_t step, std::int64_t place) const;
  /// Only where dataset.repeats().
  std::uint64_t samples_per_epoch() const;
  /// The same, over as many epochs as there are views.
  std::uint64_t samples_of_views() const { return dataset_->views() * samples_per_epoch(); }

 private:
  std::uint64_t index_of(std::int64_t step, std::int64_t place) const;

  std::shared_ptr<const Dataset> dataset_;
  const Mixture* mixture_;  // null: the dataset is none
  std::uint64_t seed_;
  std::int64_t global_batch_;
  mutable std::vector<EpochRow> rows_;  // of the dataset, or of the sources of a mixture
  std::vector<View> row_;               // of one sample
};

/// The start of a held-out split in order: `step` is the number of a batch. What is left over in
/// the last batch is blank (blank_sample()). Which targets there are follows from the dataset and
/// `most` alone, whatever `batch` is.
class ValidationSource final : public BatchSource {
 public:
  /// The first `most` targets; 0: all.
  ValidationSource(std::shared_ptr<const Dataset> dataset, std::int64_t batch,
                   std::int64_t most = 0, Split split = Split::validation);

  /// Targets in all; 0 if there is no such split.
  std::int64_t targets() const { return targets_; }
  std::int64_t batches() const { return samples_ / batch_ + (samples_ % batch_ != 0); }
  /// The samples of batch `step` that are not blank.
  std::int64_t samples(std::int64_t step) const;
  /// The targets of batch `step` that count.
  std::int64_t valid_targets(std::int64_t step, std::int64_t samples) const override;

  std::span<const Field> fields() const override { return dataset_->fields(); }
  void load(std::int64_t step, std::int64_t first, std::int64_t count,
            std::span<const View> views) override;

 private:
  std::int64_t before(std::int64_t sample) const;

  std::shared_ptr<const Dataset> dataset_;
  std::int64_t batch_, targets_, samples_ = 0;
  Split split_;
  std::vector<View> row_;  // of one sample
};

}  // namespace concertina
