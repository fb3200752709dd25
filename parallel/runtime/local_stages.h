// The stages of one rank, and the buffers and messages of each microbatch on them.
// Invariant: buffers live exactly as parallel/plan/plan_memory.h says, so memory is what the plan
// predicts.
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
  const StepBatch* batch = nullptr;  // null: no unit reads anything
  float loss_scale = 1;
  std::uint64_t seed = 0;  // see MicrobatchIo
  std::int64_t step = 0;
  FrozenOutputs* frozen = nullptr;  // asked in training; null: all frozen units run
};

/// The memory of one microbatch on one stage.
struct Activations {
  void *saved = nullptr, *grads = nullptr;
  View input, output, input_grad, output_grad;
  Work receive_f, receive_b, send_f;
};

struct LocalStage {
  int id = 0;  // in the layout
  StageInfo info;
  Stage* stage = nullptr;
  BufferPool saved, grads;
  std::vector<Activations> activations;  // by microbatch
};

class LocalStages {
 public:
  /// `memory`: of the rank's row. `stages[s]`: stage s of the layout, null on other ranks. All
  /// references outlive it.
  LocalStages(const Layout& layout, const RowMemory& memory, const std::vector<Stage*>& stages,
              int microbatches, Transfers& transfers);

  /// Bytes of attach(), by what they hold.
  std::size_t saved_bytes() const;  // saved activations, and gradients between I and W
  std::size_t boundary_bytes() const;
  void attach(Arena& arena);

  std::vector<LocalStage>& all() { return stages_; }  // ascending stage
  LocalStage& of(int stage) {
    return stages_[static_cast<std::size_t>(index_[static_cast<std::size_t>(stage)])];
  }
  /// The view that a stage has of the microbatch of `action` (F, B, I, W) between begin() and
  /// end().
  MicrobatchIo io(const Action& action, const StepInput& input);

  /// Until `action` (F, B, I, W) can start: what it reads is there, and what it writes into.
  void begin(const Action& action);
  /// Gives back what no later action reads.
  void end(const Action& action);
  /// In place of end(), after an F that no gradient follows: gives back all.
  void discard(const Action& forward);
  /// SEND or RECV.
  void start_transfer(const Action& action);

  /// Most slots in use at once so far, in the shape of plan_memory's prediction.
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
  std::vector<LocalStage> stages_;  // ascending stage
  std::vector<int> index_;          // stage -> index in stages_, -1
  std::size_t boundary_bytes_ = 0;
  DType boundary_type_ = DType::f32;
  BufferPool inputs_, outputs_, output_grads_;
};

}  // namespace concertina
