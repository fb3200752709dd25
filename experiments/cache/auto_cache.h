// Reuse of what frozen units made of each sample in an earlier epoch (AutoCache of PipeTransformer,
// He et al., ICML 2021): training steps read it in place of computing it.
// Invariants: the bits of training are those without it, whatever happens to its files; all ranks
// decide alike whether it is used; nothing is allocated in a step, but for one after a change.
//
// An entry is of one frontier: units [0, n) with these weights. When more units are frozen, entries
// of the old frontier are read, the units above it run, and the output goes in their place.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/model/frozen_outputs.h"
#include "experiments/cache/cache_room.h"
#include "experiments/cache/prefix_digests.h"
#include "experiments/cache/slot_plan.h"
#include "experiments/run/trainer.h"
#include "io/activation_cache.h"
#include "io/datasets/source.h"

namespace concertina {

/// The cached outputs that a step may count on, for predictions.
struct CacheOutlook {
  bool on = false;
  int units = 0;            // [0, units) need not run for a sample that is there
  double read_seconds = 0;  // per sample; 0: not known
  double share = 0;         // of microbatches all of whose samples are there, once it is full
};

class AutoCache final : public FrozenOutputs {
 public:
  struct Options {
    std::shared_ptr<const Dataset> dataset;
    std::string numerics;  // what decides bits besides model and weights
    /// Gets each decision, on the ranks that have one, as a line of events.jsonl after step `step`.
    std::function<void(std::int64_t step, nlohmann::ordered_json details)> decided;
  };

  /// Makes the files and measures them; `trainer`, which has started and outlives this, asks it
  /// from now on. Needs uses_cache(). Collective.
  AutoCache(Trainer& trainer, Options options);
  ~AutoCache() override;
  AutoCache(const AutoCache&) = delete;
  AutoCache& operator=(const AutoCache&) = delete;

  /// Before each step, or the first of those that are done at once, on every rank: sees what has
  /// changed. Collective.
  void before_step(std::int64_t step);

  CacheOutlook outlook() const;
  /// Seconds of a read of an entry; 0: not known.
  double read_s_per_byte() const { return read_seconds_ / static_cast<double>(room_.entry_bytes); }
  /// Since the start of the launch. Collective.
  CacheUse use();
  const CacheRoom& room() const { return room_; }

  int restore(const Stage& stage, const MicrobatchIo& io) override;
  int kept_units() const override { return on_ && !prefixes_.empty() ? prefixes_[0].units : 0; }
  void keep(const MicrobatchIo& io, View output) override;

  /// Steps after a change until what units take is taken from the steps since.
  static constexpr std::int64_t kMeasured = 4;

 private:
  /// Units [0, units) with the weights of now.
  struct Prefix {
    int units = 0;
    Sha256Digest digest{};
  };
  static constexpr std::size_t kPrefixes = 8;
  /// A sample of a step.
  struct StepSample {
    std::uint64_t number = 0;              // over all views
    std::int64_t before = -1, after = -1;  // its slot until this step, and from it on; -1: none
  };

  void open_files();
  void follow(std::int64_t step);
  void make_room(int batches);
  void try_places();
  void decide(std::int64_t step);
  void gather_times();
  double forward_seconds() const;
  void make_slot_plan();
  void list_samples(std::int64_t step, std::vector<StepSample>& samples);
  int place_of(const StepSample& sample);
  bool read(const Prefix& prefix, std::size_t first, View output);
  /// The samples of a microbatch: this many from here.
  std::size_t first_of(int microbatch) const {
    return static_cast<std::size_t>(microbatch) * per_microbatch_;
  }

  Trainer& trainer_;
  const std::function<void(std::int64_t, nlohmann::ordered_json)> decided_;
  TrainingSource source_;
  const CacheRoom room_;
  const std::size_t per_microbatch_;  // samples
  std::unique_ptr<ActivationCache> store_;
  std::optional<SlotPlan> slots_;  // none: each sample has the slot of its number
  PrefixDigests digests_;
  double own_read_seconds_ = 0, read_seconds_ = 0;  // per sample: of this rank, of all
  std::vector<double> unit_forward_;  // by unit, seconds per microbatch; 0: not measured yet

  // See sample_places.h.
  int tried_ = 0;      // units, on this rank
  bool alike_ = true;  // as far as any rank knows
  bool told_ = false;

  // These follow from the present assignment.
  Layout layout_;
  int units_ = 0;
  bool on_ = false;
  std::int64_t decide_at_ = 0;     // step
  std::vector<int> lengths_;       // of prefixes, the newest first, each once
  std::vector<Prefix> prefixes_;   // that entries may have now; on ranks that begin a pipeline
  std::vector<int> microbatches_;  // that begin here

  // The samples of the present step, each by its place in the batches of the step.
  std::int64_t step_ = -1, next_step_ = -1;
  std::vector<StepSample> samples_, next_;
  std::vector<std::uint64_t> wanted_;       // slots
  std::vector<int> places_;                 // in prefixes_, of each sample's entry; -1: it has none
  std::vector<std::byte> staging_;          // where tensors are not on the host
  std::uint64_t moved_ = 0, computed_ = 0;  // samples
};

}  // namespace concertina
