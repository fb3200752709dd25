// Units [first, last) of a model as a Stage.
// Invariants: all sizes are known after construction, before any memory is attached. Actions do not
// allocate, and keep state only in the caller's memory. Saved and gradient memory each consist of
// the units' own parts and one activation for every unit but the last. Frozen units save nothing:
// they share one scratch buffer and run in inference mode, so their output depends on the sample
// alone. Recomputed units use that buffer in F.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/model/stage.h"
#include "models/model.h"
#include "models/units/unit.h"

namespace concertina {

/// Returns the maximum number of words in the key of a pass with `parameters` parameters.
constexpr std::size_t pass_key_words(std::size_t parameters) {
  return 33 + 4 * parameters;
}

/// Replaces the contents of `words`. `gradients` is empty except for Pass::weight.
void write_pass_key(const Unit& unit, Pass pass, const UnitIo& io,
                    std::span<const UnitGradient> gradients, std::vector<std::uint64_t>& words);

class ModelStage final : public Stage {
 public:
  /// `buckets` must be make_buckets(model.spec(), frozen_units). Creates the operators of the units
  /// on `backend`.
  ModelStage(Backend& backend, const Model& model, std::span<const Bucket> buckets, int first,
             int last, int frozen_units = 0);

  std::size_t packed_bytes() const override;
  /// Returns the indices of the buckets with this stage's parameters, ascending.
  const std::vector<int>& buckets() const { return held_; }
  void attach(std::span<const View> weights, void* packed) override;

  void observe(UnitObserver* observer) override { observer_ = observer; }
  void skip(SkippedBuckets skipped) override { skipped_ = skipped; }
  StageMemory memory() const override { return memory_; }
  int first_unit() const override { return first_; }
  int last_unit() const override { return first_ + static_cast<int>(slots_.size()); }
  int first_trained() const override { return first_ + static_cast<int>(frozen_); }
  void forward_unit(int unit, const MicrobatchIo& io) override;
  void backward_unit(int unit, const MicrobatchIo& io, GradientSink& sink) override;
  void backward_input_unit(int unit, const MicrobatchIo& io) override;
  void backward_weight_unit(int unit, const MicrobatchIo& io, GradientSink& sink) override;
  View frozen_output(int unit, const MicrobatchIo& io) const override {
    return output_of(slot_of(unit), io);
  }
  View row_loss(const MicrobatchIo& io) const override;
  View logits(const MicrobatchIo& io) const override;
  void set_workspace(void* workspace, void* forward) override {
    workspace_ = workspace;
    forward_scratch_ = forward;
  }
  void refresh() override {
    for (std::size_t i = 0; i < slots_.size(); ++i) pack(i);
  }
  void refresh_trained() override;

 private:
  /// A parameter of a unit: elements [offset, offset + count) of a bucket.
  struct Place {
    int bucket = 0;
    std::size_t offset = 0, count = 0;
  };
  /// A unit and the byte offsets of its part of each memory.
  struct Slot {
    std::unique_ptr<Unit> unit;
    std::string name;
    std::vector<int> reads;  // indices in MicrobatchIo::fields
    std::vector<Place> parameters;
    std::vector<int> buckets;  // buckets of `parameters`, ascending
    std::vector<int> trained;  // the unfrozen ones among `buckets`
    bool repacks = false;      // a bucket in `trained` contains weights that the unit packs
    bool recompute = false;    // see UnitSpec
    std::size_t saved = 0, output = 0, grads = 0, output_grad = 0, cache = 0;
    std::size_t again = 0;  // where `saved` is recomputed, relative to the unit's grads
  };
  /// Location of the gradients between units: none for F; separate memory per unit if I and W are
  /// split; the workspace, shared by all units, for B.
  enum class Grads { none, separate, shared };

  std::size_t slot_of(int unit) const { return static_cast<std::size_t>(unit - first_); }
  Slot make_slot(Backend& backend, const Model& model, std::span<const Bucket> buckets,
                 const std::vector<Field>& fields, int unit);
  void place_memory();
  bool frozen(std::size_t slot) const { return slot < frozen_; }
  bool recomputes(std::size_t slot) const { return !frozen(slot) && slots_[slot].recompute; }
  /// Returns the number of buffers for activations between frozen units.
  std::size_t frozen_edges() const { return std::min<std::size_t>(2, frozen_ - (frozen_ > 0)); }
  View activation(void* at) const;
  void* saved_of(std::size_t slot, const MicrobatchIo& io) const;
  View output_of(std::size_t slot, const MicrobatchIo& io) const;
  View output_grad_of(std::size_t slot, const MicrobatchIo& io, Grads grads) const;
  UnitIo unit_io(std::size_t slot, const MicrobatchIo& io, Grads grads) const;
  /// Issues a pass of a unit through `issue`, or replays its recording if the backend records.
  template <class F>
  void run(std::size_t slot, Pass pass, const UnitIo& io, std::span<const UnitGradient> gradients,
           const F& issue);
  void input_gradient(std::size_t slot, const UnitIo& io);
  void pack(std::size_t slot);
  void done(std::size_t slot, Pass pass) {
    if (observer_ != nullptr) observer_->unit_done(first_ + static_cast<int>(slot), pass);
  }
  void weight_gradient(std::size_t slot, const MicrobatchIo& io, const UnitIo& unit_io,
                       GradientSink& sink);

  Backend& backend_;
  int first_;
  std::int64_t samples_;    // per microbatch
  std::size_t frozen_ = 0;  // number of frozen slots
  std::vector<Slot> slots_;
  std::vector<int> held_;
  StageMemory memory_;
  std::size_t shared_grads_ = 0;  // bytes of the workspace for the `grads` of one unit
  void* workspace_ = nullptr;
  /// Edges between frozen units, followed by the memory of one unit that saves nothing.
  void* forward_scratch_ = nullptr;
  void* pack_scratch_ = nullptr;  // after the packed weights
  UnitObserver* observer_ = nullptr;
  SkippedBuckets skipped_;
  std::vector<UnitGradient> gradients_;  // for one unit; reused to avoid allocation
  std::vector<std::uint64_t> key_;       // for one pass; also reused
};

}  // namespace concertina
