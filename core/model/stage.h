// A stage, which the executor runs: one contiguous range of units on one rank.
// Invariants: a stage owns no activation memory (the executor provides slots, sized by the plan),
// and is independent of ranks, schedules and transfers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/tensor.h"

namespace concertina {

/// Bytes that a stage needs, per microbatch unless noted.
struct StageMemory {
  std::size_t saved_bytes = 0;      // F -> B, or F -> W if I and W are separate
  std::size_t grad_bytes = 0;       // I -> W; not used by B
  std::size_t boundary_bytes = 0;   // [R,C], per edge: stage input, output and their gradients
  std::size_t workspace_bytes = 0;  // once: scratch of one B
  std::size_t forward_bytes = 0;    // once: scratch of one F, for units that save nothing
  DType activation = DType::f32;    // element type at boundaries
  std::size_t loss_rows = 0;        // size of row_loss(); 0 unless this is the last stage
  std::size_t cache_bytes = 0;      // once: keys and values of earlier tokens, in a decoder
};

/// A microbatch as seen by a stage. Views that the stage does not use are empty. Fields and input
/// do not change from F to B or W, and output_grad does not change from I to W. A fully frozen
/// stage has no `saved`. If the first unit is frozen, the input may be released after F. If no
/// earlier stage trains, there is no `input_grad`.
struct MicrobatchIo {
  int microbatch = 0;            // global index in the step
  std::span<const View> fields;  // its samples' values of fields_of(model), if units read them
  View input, output;            // [R,C]; input is empty in the first stage, output in the last
  View input_grad, output_grad;  // [R,C], likewise
  void* saved = nullptr;         // StageMemory::saved_bytes, from F to B or W
  void* grads = nullptr;         // StageMemory::grad_bytes, from I to W
  void* cache = nullptr;         // StageMemory::cache_bytes, from F to the next F
  float loss_scale = 1;          // 1 / number of valid targets in the global batch
  bool training = true;          // false: no backward pass; the last stage keeps its logits
  std::uint64_t seed = 0;        // with the step, determines random numbers
  std::int64_t step = 0;
};

/// The destination of the gradient of one use of a bucket for one microbatch.
struct GradientTarget {
  View gradient;            // Bucket::elements, fp32
  bool accumulate = false;  // false: overwrite every element of every tensor
};

/// Receives gradients in the canonical order of leaves (parallel/runtime/gradient_tree.h).
class GradientSink {
 public:
  virtual ~GradientSink() = default;
  /// `bucket` is an index in make_buckets(); `use` is the unit that contributes.
  virtual GradientTarget begin(int bucket, int use, int microbatch) = 0;
  virtual void end(int bucket, int use, int microbatch) = 0;
};

/// The passes of a unit. B consists of `input`, then `weight`.
enum class Pass { forward, input, weight, pack };
inline constexpr int kPasses = 4;
inline constexpr std::array<std::string_view, kPasses> kPassNames{"forward", "input gradient",
                                                                  "weight gradient", "packing"};

/// Called after every pass of a unit, which lets a rank check the clock and its transfers within an
/// action.
class UnitObserver {
 public:
  virtual ~UnitObserver() = default;
  virtual void unit_done(int unit, Pass pass) = 0;  // `unit` is an index in the model
};

/// The buckets whose gradients a step does not compute; each contains only one unit's tensors. A
/// view of one flag per bucket; if it is empty, no bucket is skipped.
class SkippedBuckets {
 public:
  SkippedBuckets() = default;
  explicit SkippedBuckets(std::span<const char> flags) : flags_(flags) {}
  bool operator[](std::size_t bucket) const { return !flags_.empty() && flags_[bucket] != 0; }

 private:
  std::span<const char> flags_;
};

class Stage {
 public:
  virtual ~Stage() = default;
  /// `observer` must outlive the stage's actions. A stage without units never calls it.
  virtual void observe(UnitObserver* /*observer*/) {}
  virtual StageMemory memory() const = 0;
  /// The stage runs units [first_unit(), last_unit()) of the model.
  virtual int first_unit() const = 0;
  virtual int last_unit() const = 0;
  /// Returns the first unit that is not frozen, or last_unit() if all are frozen.
  virtual int first_trained() const { return first_unit(); }
  /// Skips the gradients of these buckets in B and W from now on. The flags must outlive the stage.
  virtual void skip(SkippedBuckets /*skipped*/) {}

  /// Runs one unit of a pass. F takes units in ascending order; B (I and W of each unit), I and W
  /// take the trained ones in descending order. Between two units of a pass, units of other
  /// microbatches' passes may run, on this stage or another one, provided that at most one of these
  /// passes is a B and one an F.
  virtual void forward_unit(int unit, const MicrobatchIo& io) = 0;
  virtual void backward_unit(int unit, const MicrobatchIo& io, GradientSink& sink) = 0;
  virtual void backward_input_unit(int unit, const MicrobatchIo& io) = 0;
  virtual void backward_weight_unit(int unit, const MicrobatchIo& io, GradientSink& sink) = 0;

  /// Whole passes.
  void forward(const MicrobatchIo& io) {
    for (int unit = first_unit(); unit < last_unit(); ++unit) forward_unit(unit, io);
  }
  void backward(const MicrobatchIo& io, GradientSink& sink) {
    for (int unit = last_unit(); unit-- > first_trained();) backward_unit(unit, io, sink);
  }
  void backward_input(const MicrobatchIo& io) {
    for (int unit = last_unit(); unit-- > first_trained();) backward_input_unit(unit, io);
  }
  void backward_weight(const MicrobatchIo& io, GradientSink& sink) {
    for (int unit = last_unit(); unit-- > first_trained();) backward_weight_unit(unit, io, sink);
  }

  /// Returns where F stores the output [R,C] of a frozen unit until the next unit has run.
  virtual View frozen_output(int /*unit*/, const MicrobatchIo& /*io*/) const { return {}; }

  /// Last stage, from forward until B or W: returns the loss of each row, [R] fp32, which is 0 if
  /// its target is not valid.
  virtual View row_loss(const MicrobatchIo& io) const = 0;
  /// Last stage, after forward with training == false: returns the logits [R,V].
  virtual View logits(const MicrobatchIo& io) const = 0;

  /// Returns the bytes of the packed weights of all units.
  virtual std::size_t packed_bytes() const { return 0; }
  /// `weights[b]` holds all elements of bucket b (make_buckets()) in fp32, or is empty if the stage
  /// does not use it. The views and `packed` must stay valid while the stage is in use. Call
  /// refresh() before the first action.
  virtual void attach(std::span<const View> /*weights*/, void* /*packed*/) {}

  /// Sets memory of StageMemory::workspace_bytes and forward_bytes before the first action. Stages
  /// of one rank may share it: at any time, it serves at most one B, and one F through units that
  /// save nothing; its contents are not needed afterwards.
  virtual void set_workspace(void* workspace, void* forward) = 0;

  /// Packs all weights after they have been written.
  virtual void refresh() = 0;
  /// Packs the weights that train. Called once per step, after an update.
  virtual void refresh_trained() { refresh(); }
};

}  // namespace concertina
