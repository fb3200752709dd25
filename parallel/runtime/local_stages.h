// The stages of one rank, with the buffers and messages of each microbatch.
// Invariant: buffers have exactly the lifetimes of parallel/plan/plan_memory.h, so memory use
// equals the prediction.
#pragma once

#include <cstdint>
#include <vector>

#include "core/arena.h"
#include "core/model/frozen_outputs.h"
#include "core/model/stage.h"
#include "parallel/plan/plan_index.h"
#include "parallel/plan/plan_memory.h"
#include "parallel/runtime/buffer_pool.h"
#include "parallel/runtime/step_batch.h"
#include "parallel/runtime/transfers.h"

namespace concertina {

/// The input of a step's passes.
struct StepInput {
  const StepBatch* batch = nullptr;  // null: no unit reads input
  float loss_scale = 1;
  std::uint64_t seed = 0;  // see MicrobatchIo
  std::int64_t step = 0;
  FrozenOutputs* frozen = nullptr;  // queried in training; null: all frozen units run
};

/// The memory of one microbatch on one stage.
struct Activations {
  void *saved = nullptr, *grads = nullptr;
  View input, output, input_grad, output_grad;
  Work receive_f, receive_b, send_f;
};

struct LocalStage {
  int id = 0;  // numbered as in the layout
  StageInfo info;
  Stage* stage = nullptr;
  BufferPool saved, grads;
  std::vector<Activations> activations;  // by microbatch
};

class LocalStages {
 public:
  /// `memory` is for the rank's row. `stages[s]` is stage s of the layout, null if on another rank.
  /// All references must outlive this object.
  LocalStages(const Layout& layout, const RowMemory& memory, const std::vector<Stage*>& stages,
              int microbatches, Transfers& transfers);

  /// Memory needed by attach(), in bytes, by purpose.
  std::size_t saved_bytes() const;  // saved activations, and gradients between I and W
  std::size_t boundary_bytes() const;
  void attach(Arena& arena);

  std::vector<LocalStage>& all() { return stages_; }  // ascending
  LocalStage& of(int stage) {
    return stages_[static_cast<std::size_t>(index_[static_cast<std::size_t>(stage)])];
  }
  /// A stage's view of the microbatch of `action` (F, B, I, W) between begin() and end().
  MicrobatchIo io(const Action& action, const StepInput& input);

  /// Waits until the input and output buffers of `action` (F, B, I, W) are available.
  void begin(const Action& action);
  /// Releases what no later action reads.
  void end(const Action& action);
  /// Releases everything. Replaces end() after an F without a gradient.
  void discard(const Action& forward);
  /// Starts a SEND or RECV.
  void start_transfer(const Action& action);

  /// Peak number of slots in use, in the form of plan_memory()'s prediction.
  RowMemory measured() const;
  MemoryUse use() const;

 private:
  Activations& activations(int stage, int microbatch) {
    return of(stage).activations[static_cast<std::size_t>(microbatch)];
  }
  Activations& activations(const Action& action) {
    return activations(action.stage, action.microbatch);
  }
  void begin_forward(const Action& action);
  void begin_backward(const Action& action);
  void end_forward(const Action& action);
  void end_backward(const Action& action);
  View boundary(void* memory) const {
    return {memory, boundary_bytes_ / size_of(boundary_type_), boundary_type_};
  }

  const RowMemory memory_;
  Transfers& transfers_;
  std::vector<LocalStage> stages_;  // ascending
  std::vector<int> index_;          // stage -> index in stages_, or -1
  std::size_t boundary_bytes_ = 0;
  DType boundary_type_ = DType::f32;
  BufferPool inputs_, outputs_, output_grads_;
};

}  // namespace concertina
