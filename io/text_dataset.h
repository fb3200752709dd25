// Training and validation samples of a text (core/batch.h).
// Invariants: which tokens a sample holds is a pure function of (text, seed, step, place in the
// batch); an epoch visits each of its sequences once; no validation byte is ever trained on.
//
// Dimensions: T tokens of a sample, B samples of a batch, N bytes of the training part.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/batch.h"
#include "io/corpus.h"
#include "io/permutation.h"

namespace concertina {

/// How an epoch cuts the training part into samples: each from another random offset, so that every
/// cut is seen, or all from the start, so that the same samples come again.
inline constexpr std::string_view kWindowsNames[] = {"shifted", "fixed"};

struct TextOptions {
  std::vector<std::string> text;       // files or globs, joined in this order (data.text)
  std::string tokenizer = "bytes";     // data.tokenizer
  double validation = 0.1;             // share of the text, its tail, in [0, 1) (data.validation)
  std::int64_t tokens_per_sample = 0;  // T (model.context)
  std::string windows = "shifted";     // of kWindowsNames (data.windows)
};

/// A text cut into a training part and a validation part, each contiguous.
class TextDataset {
 public:
  /// Input errors as of Corpus; unknown tokenizer or windows; a share outside [0, 1); a part too
  /// short.
  explicit TextDataset(const TextOptions& options);

  const Corpus& corpus() const { return corpus_; }
  std::int64_t tokens_per_sample() const { return tokens_; }
  /// What its samples have: text_fields().
  std::span<const Field> fields() const { return fields_; }
  std::int64_t vocabulary() const;
  bool fixed_windows() const { return fixed_windows_; }
  /// Training samples of an epoch; shifted windows have one less in some.
  std::int64_t samples_per_epoch() const {
    return (static_cast<std::int64_t>(train_bytes_) - 1) / tokens_;
  }
  /// Bytes [0, train_bytes) train, the next validation_bytes validate.
  std::uint64_t train_bytes() const { return train_bytes_; }
  std::uint64_t validation_bytes() const { return corpus_.size() - train_bytes_; }
  /// Bytes of the validation part that a loss can be computed of: all but the first.
  std::int64_t validation_targets() const {
    return validation_bytes() == 0 ? 0 : static_cast<std::int64_t>(validation_bytes() - 1);
  }
  /// Some lines for a person: files, sizes, samples an epoch, how the text begins.
  std::string summary() const;

 private:
  Corpus corpus_;
  std::int64_t tokens_ = 0;
  std::vector<Field> fields_;
  bool fixed_windows_ = false;
  std::uint64_t train_bytes_ = 0;
};

/// Sample k of step s is sequence number s * B + k of an endless row of epochs. Epoch e cuts the
/// training part into floor((N - 1 - offset_e) / T) sequences from a random offset_e in [0, T) on
/// and takes them in a random order; with fixed windows offset_e is 0, and the last (N - 1) mod T
/// targets are never trained on. Not for several threads at once.
class TrainingSource final : public BatchSource {
 public:
  TrainingSource(std::shared_ptr<const TextDataset> dataset, std::uint64_t seed,
                 std::int64_t global_batch);

  std::span<const Field> fields() const override { return dataset_->fields(); }
  void load(std::int64_t step, std::int64_t first, std::int64_t count,
            std::span<const View> views) override;
  std::int64_t valid_targets(std::int64_t /*step*/, std::int64_t samples) const override {
    return samples * dataset_->tokens_per_sample();
  }

  /// Where sample `index` = s * B + k lies: tokens are bytes [begin, begin + T), targets the same
  /// shifted by one.
  struct Place {
    std::uint64_t epoch = 0, begin = 0;
  };
  Place place(std::uint64_t index);
  /// Whole epochs of which all samples are in the first `steps` steps.
  std::int64_t epochs_done(std::int64_t steps) {
    return static_cast<std::int64_t>(
        place(static_cast<std::uint64_t>(steps * global_batch_)).epoch);
  }

  /// How far a run is before a step: `done` of the `samples` of epoch `epoch`; done < samples.
  struct Position {
    std::uint64_t epoch = 0, done = 0, samples = 0;
  };
  Position position(std::int64_t step);
  /// The first step that begins in epoch `epoch` or later. An epoch may end within a step: the rest
  /// of that step's samples are of the next one. Takes time in proportion to `epoch`.
  std::int64_t first_step(std::uint64_t epoch) const;

  /// The same number for the same text in every epoch, in [0, samples_per_epoch()): which sample
  /// stands at `place` in [0, B) of the batch of `step`. Only with fixed windows.
  std::uint64_t sample(std::int64_t step, std::int64_t place);
  /// Only with fixed windows; others have one less in some epochs.
  std::uint64_t samples_per_epoch() const;

 private:
  struct Epoch {
    std::uint64_t number = 0, first = 0, offset = 0;  // `first`: index of its first sample
    Permutation order;
  };
  Epoch make_epoch(std::uint64_t number, std::uint64_t first) const;
  /// Sets `epoch_` to the one of sample `index`.
  void seek(std::uint64_t index);
  std::uint64_t index_of(std::int64_t step, std::int64_t place) const;

  std::shared_ptr<const TextDataset> dataset_;
  std::uint64_t seed_;
  std::int64_t global_batch_;
  Epoch epoch_;  // of the last sample asked for
};

/// The start of the validation part in order, cut into windows of T targets: `step` is the number
/// of a batch of `batch` windows. Each byte but the first is a target once; what is left over in
/// the last batch has token 0 and target -1 (ignored). Which targets these are follows from the
/// text and `most` alone, whatever T and `batch` are.
class ValidationSource final : public BatchSource {
 public:
  /// The first `most` targets; 0: all.
  ValidationSource(std::shared_ptr<const TextDataset> dataset, std::int64_t batch,
                   std::int64_t most = 0);

  /// Targets in all; 0 if there is no validation part.
  std::int64_t targets() const { return targets_; }
  std::int64_t batches() const;
  /// The targets of batch `step` that count.
  std::int64_t valid_targets(std::int64_t step, std::int64_t samples) const override;

  std::span<const Field> fields() const override { return dataset_->fields(); }
  void load(std::int64_t step, std::int64_t first, std::int64_t count,
            std::span<const View> views) override;

 private:
  std::shared_ptr<const TextDataset> dataset_;
  std::int64_t batch_, targets_;
};

}  // namespace concertina
