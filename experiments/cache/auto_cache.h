// Reuses the outputs of frozen units that were computed for each sample in an earlier epoch
// (PipeTransformer's AutoCache, He et al., ICML 2021). Invariants: training gives the same bits as
// without the cache, whatever happens to the cache files; all ranks agree on whether the cache is
// used; steps allocate nothing, except for the first step after a change.
//
// An entry belongs to one frontier: units [0, n) with certain weights. When more units are frozen,
// old entries are read, the units above their frontier run, and the output replaces the entry.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/model/frozen_outputs.h"
#include "experiments/cache/cache_room.h"
#include "experiments/cache/slot_plan.h"
#include "experiments/run/trainer.h"
#include "io/activation_cache.h"
#include "io/cache_key.h"
#include "io/datasets/source.h"

namespace concertina {

/// The cached outputs that a step may rely on, for predictions.
struct CacheOutlook {
  bool on = false;
  int units = 0;            // [0, units) are skipped for a cached sample
  double read_seconds = 0;  // per sample; 0: unknown
  double share = 0;         // fraction of fully cached microbatches once the cache is full
};

class AutoCache final : public FrozenOutputs {
 public:
  struct Options {
    std::shared_ptr<const Dataset> dataset;
    std::string numerics;  // whatever determines the bits besides the model and its weights
    /// If set, called with each decision made after step `step`, for events.jsonl.
    std::function<void(std::int64_t step, nlohmann::ordered_json details)> decided;
  };

  /// Creates the files and measures their speed. `trainer` must have been started and must outlive
  /// this object, which it queries from now on. Requires uses_cache(). Collective.
  AutoCache(Trainer& trainer, const Options& options);
  ~AutoCache() override;
  AutoCache(const AutoCache&) = delete;
  AutoCache& operator=(const AutoCache&) = delete;

  /// Handles changes to the assignment. Called on every rank before each step, or before the first
  /// of several steps that are executed together. Collective.
  void before_step(std::int64_t step);

  CacheOutlook outlook() const;
  /// Seconds per byte to read an entry; 0 if unknown.
  double read_s_per_byte() const { return read_seconds_ / static_cast<double>(room_.entry_bytes); }
  /// Usage since the start of the launch. Collective.
  CacheUse use();
  const CacheRoom& room() const { return room_; }

  int restore(const Stage& stage, const MicrobatchIo& io) override;
  int kept_units() const override { return on_ && !prefixes_.empty() ? prefixes_[0].units : 0; }
  void keep(const MicrobatchIo& io, View output) override;

  /// Steps after a change before unit times are measured again.
  static constexpr std::int64_t kMeasured = 4;

 private:
  /// Units [0, units) with their current weights.
  struct Prefix {
    int units = 0;
    Sha256Digest digest{};
  };
  static constexpr std::size_t kPrefixes = 8;
  /// A sample of a step.
  struct StepSample {
    std::uint64_t number = 0;              // unique over all views
    std::int64_t before = -1, after = -1;  // its slot before this step, and from then on; -1: none
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
  const std::string& hash_of(std::size_t bucket);
  Sha256Digest digest(int units);
  int place_of(const StepSample& sample);
  bool read(const Prefix& prefix, std::size_t first, View output);
  /// The index of the first sample of a microbatch.
  std::size_t first_of(int microbatch) const {
    return static_cast<std::size_t>(microbatch) * per_microbatch_;
  }

  Trainer& trainer_;
  const std::function<void(std::int64_t, nlohmann::ordered_json)> decided_;
  TrainingSource source_;
  const CacheRoom room_;
  const std::size_t per_microbatch_;  // samples
  std::unique_ptr<ActivationCache> store_;
  std::optional<SlotPlan> slots_;  // nullopt: slot = sample number
  const std::string numerics_;
  std::vector<std::string> hashes_;                 // of each bucket's weights; empty: unknown
  double own_read_seconds_ = 0, read_seconds_ = 0;  // per sample: this rank, all ranks
  std::vector<double> unit_forward_;  // per unit, seconds per microbatch; 0: not measured yet

  // See sample_places.h.
  int tried_ = 0;      // units tried on this rank
  bool alike_ = true;  // false if any rank found a difference
  bool reported_ = false;

  // These depend on the current assignment.
  Layout layout_;
  int units_ = 0;
  bool on_ = false;
  std::int64_t decide_at_ = 0;     // step
  std::vector<int> lengths_;       // numbers of units of prefixes, newest first, distinct
  std::vector<Prefix> prefixes_;   // whose entries are valid; on ranks that begin a pipeline
  std::vector<int> microbatches_;  // that begin on this rank

  // The samples of the current step, indexed by their position in the step's batches.
  std::int64_t step_ = -1, next_step_ = -1;
  std::vector<StepSample> samples_, next_;
  std::vector<std::uint64_t> wanted_;       // slots
  std::vector<int> places_;                 // index into prefixes_ of each sample's entry; -1: none
  std::vector<std::byte> staging_;          // used if tensors are not on the host
  std::uint64_t moved_ = 0, computed_ = 0;  // samples
};

}  // namespace concertina
