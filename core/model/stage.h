// A stage, which the executor runs: one contiguous range of units on one rank.
// Invariants: a stage owns no activation memory (slots come from the executor, sized by the plan)
// and knows nothing of ranks, schedules or transfers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/tensor.h"

namespace concertina {

/// Bytes that a stage needs, a microbatch each (boundary: an edge between two stages each).
struct StageMemory {
  std::size_t saved_bytes = 0;      // F -> B, or F -> W where I and W are separate
  std::size_t grad_bytes = 0;       // I -> W; B needs none
  std::size_t boundary_bytes = 0;   // [R,C]: stage input, output and their gradients
  std::size_t workspace_bytes = 0;  // once, whatever the microbatches: scratch of one B
  std::size_t forward_bytes = 0;    // likewise: scratch of one F, of units that save nothing
  DType activation = DType::f32;    // of what crosses a boundary
  std::size_t loss_rows = 0;        // of row_loss(); none where the stage does not end the model
};

/// One microbatch as a stage sees it. Views that a stage has no use for are empty. Fields and input
/// stay as they are from F to B or W, output_grad from I to W. A fully frozen stage has
/// no `saved`. If its first unit is frozen, its input may be released after F. A stage below which
/// nothing trains has no `input_grad`.
struct MicrobatchIo {
  int microbatch = 0;            // global index in the step
  std::span<const View> fields;  // fields_of() the model, for its samples: those that a unit reads
  View input, output;            // [R,C]; input is empty at the first stage, output at the last
  View input_grad, output_grad;  // [R,C], likewise
  void* saved = nullptr;         // StageMemory::saved_bytes, from F to B or W
  void* grads = nullptr;         // StageMemory::grad_bytes, from I to W
  float loss_scale = 1;          // 1 / valid targets of the global batch
  bool training = true;          // false: no gradient follows; the last stage keeps its logits
  std::uint64_t seed = 0;        // of the run, and the step: what random numbers follow from
  std::int64_t step = 0;
};

/// Where the gradient of one use of a bucket goes for one microbatch.
struct GradientTarget {
  View gradient;            // Bucket::elements, fp32
  bool accumulate = false;  // false: overwrite every element of every tensor
};

/// Receives gradients in the canonical order's leaves (parallel/runtime/gradient_tree.h).
class GradientSink {
 public:
  virtual ~GradientSink() = default;
  /// `bucket`: index in make_buckets(); `use`: the unit that contributes.
  virtual GradientTarget begin(int bucket, int use, int microbatch) = 0;
  virtual void end(int bucket, int use, int microbatch) = 0;
};

/// The passes of a unit. B is input, then weight.
enum class Pass { forward, input, weight, pack };
inline constexpr int kPasses = 4;
inline constexpr std::array<std::string_view, kPasses> kPassNames{"forward", "input gradient",
                                                                  "weight gradient", "packing"};

/// Told after every pass of a unit: the places inside an action where a rank can look at the clock
/// and at its transfers.
class UnitObserver {
 public:
  virtual ~UnitObserver() = default;
  virtual void unit_done(int unit, Pass pass) = 0;  // unit: of the model
};

/// Buckets whose gradients a step does not compute: each is all that its one use holds. A view of
/// one flag per bucket; without flags no bucket is skipped.
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
  /// `observer` outlives the stage's actions; a stage that knows no units tells it nothing.
  virtual void observe(UnitObserver* /*observer*/) {}
  virtual StageMemory memory() const = 0;
  /// Units [first, last) of the model.
  virtual int first_unit() const = 0;
  virtual int last_unit() const = 0;
  /// Units below it are frozen: they only run forward. last_unit() if all are.
  virtual int first_trained() const { return first_unit(); }
  /// Leaves the gradients of these buckets out of B and W from now on. The flags outlive the stage.
  virtual void skip(SkippedBuckets /*skipped*/) {}

  /// One unit of a pass. F takes units in ascending order, B (I and W of each unit), I and W those
  /// that train, in descending order. Between two units of a pass, units of passes of other
  /// microbatches may run, on this stage or another one, as long as at most one of these passes is
  /// a B and one an F.
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

  /// Where F leaves the output of a frozen unit, [R,C], until the next unit has run.
  virtual View frozen_output(int /*unit*/, const MicrobatchIo& /*io*/) const { return {}; }

  /// Last stage, from forward until B or W: the loss of each row, [R] fp32, 0 where its target is
  /// not valid.
  virtual View row_loss(const MicrobatchIo& io) const = 0;
  /// Last stage, after forward with training == false: [R,V].
  virtual View logits(const MicrobatchIo& io) const = 0;

  /// Bytes for the packed weights of all units.
  virtual std::size_t packed_bytes() const { return 0; }
  /// `weights[b]`: all elements of bucket b (make_buckets()), fp32; empty where the stage does not
  /// hold it. The views and `packed` stay valid while the stage is used. Call refresh() before the
  /// first action.
  virtual void attach(std::span<const View> /*weights*/, void* /*packed*/) {}

  /// Memory of StageMemory::workspace_bytes and of forward_bytes, before the first action. Stages
  /// of one rank may share it: one B alone, and one F through units that save nothing, keep
  /// something there from unit to unit, and nothing outlives them.
  virtual void set_workspace(void* workspace, void* forward) = 0;

  /// All weights were written: pack them.
  virtual void refresh() = 0;
  /// Packs the weights that train: once per step, after an update.
  virtual void refresh_trained() { refresh(); }
};

}  // namespace concertina
