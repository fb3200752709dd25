// The samples of a dataset as one batch per step (core/model/batch.h). Invariants: the content of a
// step is a pure function of (dataset, seed, step). An epoch visits each of its samples once. Only
// the train split is used for training.
//
// Dimensions: B samples per batch.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "io/datasets/mixture.h"

namespace concertina {

/// A pseudo-random permutation of [0, n) that is computed, not stored: O(1) memory and random
/// access. Balanced Feistel network over Philox (core/rng.h) with cycle walking: Black and Rogaway,
/// "Ciphers with Arbitrary Finite Domains", CT-RSA 2002.
class Permutation {
 public:
  /// Requires 1 <= n <= 2^62. Equal (seed, epoch, n) give equal permutations.
  Permutation(std::uint64_t seed, std::uint64_t epoch, std::uint64_t n);

  std::uint64_t size() const { return n_; }
  /// Returns the image of `index` in [0, n); a bijection.
  std::uint64_t operator()(std::uint64_t index) const;

 private:
  /// A bijection of [0, 2^(2 * half_bits_)).
  std::uint64_t encrypt(std::uint64_t value) const;

  std::uint64_t seed_, epoch_, n_;
  int half_bits_ = 1;
};

/// The samples of a dataset as an endless sequence of epochs, each in a random order. Not
/// thread-safe.
class EpochRow {
 public:
  EpochRow(std::shared_ptr<const Dataset> dataset, std::uint64_t seed);

  struct Epoch {
    std::uint64_t number = 0, first = 0;  // `first`: index of its first sample
    Permutation order;
  };
  /// Returns the epoch of the sample with this index. Takes time in proportion to the number of
  /// epochs between this one and the last one returned, or the start if that is nearer.
  const Epoch& at(std::uint64_t index);
  Epoch make_epoch(std::uint64_t number, std::uint64_t first) const;

 private:
  std::shared_ptr<const Dataset> dataset_;
  std::uint64_t seed_;
  Epoch epoch_;  // of the last requested sample
};

/// Sample k of step s is number s * B + k of an EpochRow; for a mixture (io/datasets/mixture.h),
/// the next sample in the row of the drawn source. Not thread-safe.
class TrainingSource final : public BatchSource {
 public:
  TrainingSource(std::shared_ptr<const Dataset> dataset, std::uint64_t seed,
                 std::int64_t global_batch);

  std::span<const Field> fields() const override { return dataset_->fields(); }
  void load(std::int64_t step, std::int64_t first, std::int64_t count,
            std::span<const View> views) override;
  std::int64_t valid_targets(std::int64_t step, std::int64_t samples) const override;

  /// The epoch and sample at `index` = s * B + k; for a mixture, the epoch is the drawn source's.
  struct Place {
    std::uint64_t epoch = 0, sample = 0;
  };
  Place place(std::uint64_t index) const;
  /// Returns the number of epochs that are completely within the first `steps` steps.
  std::int64_t epochs_done(std::int64_t steps) const {
    return static_cast<std::int64_t>(position(steps).epoch);
  }

  /// The progress before a step: `done` of the `samples` of epoch `epoch`; done < samples.
  struct Position {
    std::uint64_t epoch = 0, done = 0, samples = 0;
  };
  Position position(std::int64_t step) const;
  /// Returns the first step that begins in epoch `epoch` or later. If an epoch ends within a step,
  /// the rest of the step belongs to the next epoch. The time is proportional to `epoch`.
  std::int64_t first_step(std::uint64_t epoch) const;

  /// Returns the order of the samples of an epoch. Not valid for mixtures.
  Permutation order(std::uint64_t epoch) const { return rows_[0].make_epoch(epoch, 0).order; }

  /// Returns the sample at `place` in [0, B) of the batch of `step` as a number in [0,
  /// samples_of_views()) that is the same in every epoch for the same sample and view. Requires
  /// dataset.repeats().
  std::uint64_t sample(std::int64_t step, std::int64_t place) const;
  /// Requires dataset.repeats().
  std::uint64_t samples_per_epoch() const;
  /// Returns the number of samples in as many epochs as there are views.
  std::uint64_t samples_of_views() const { return dataset_->views() * samples_per_epoch(); }

 private:
  std::uint64_t index_of(std::int64_t step, std::int64_t place) const;

  std::shared_ptr<const Dataset> dataset_;
  const Mixture* mixture_;  // null if the dataset is not a mixture
  std::uint64_t seed_;
  std::int64_t global_batch_;
  mutable std::vector<EpochRow> rows_;  // of the dataset, or of each source of a mixture
  std::vector<View> row_;               // of one sample
};

/// The first samples of a held-out split, in order; `step` is a batch's index. The remainder of the
/// last batch is blank (blank_sample()). The targets depend only on the dataset and `most`, not on
/// `batch`.
class ValidationSource final : public BatchSource {
 public:
  /// Uses the first `most` targets; 0: all.
  ValidationSource(std::shared_ptr<const Dataset> dataset, std::int64_t batch,
                   std::int64_t most = 0, Split split = Split::validation);

  /// Returns the total number of targets; 0 if the split does not exist.
  std::int64_t targets() const { return targets_; }
  std::int64_t batches() const { return samples_ / batch_ + (samples_ % batch_ != 0); }
  /// Returns the number of samples of batch `step` that are not blank.
  std::int64_t samples(std::int64_t step) const;
  /// Returns the number of counted targets in the first `samples` samples of batch `step`.
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
