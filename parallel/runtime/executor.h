// Runs one rank's row of a Plan over its stages. Knows no schedule by name.
// Invariants: nothing is allocated after attach(); transfers make progress between any two units.
#pragma once

#include <functional>
#include <vector>

#include "core/arena.h"
#include "core/memory.h"
#include "parallel/runtime/gradient_exchange.h"
#include "parallel/runtime/local_stages.h"
#include "parallel/runtime/trace_recorder.h"
#include "parallel/runtime/transfers.h"
#include "parallel/runtime/unit_clock.h"

namespace concertina {

/// Losses of the rows of microbatches whose last stage is on this rank.
class RowLosses {
 public:
  /// `stages` are this rank's.
  RowLosses(const std::vector<LocalStage>& stages, int microbatches);

  /// Memory needed by attach(), in bytes.
  std::size_t bytes() const { return align_up(slots_ * rows_ * sizeof(float)); }
  /// `arena` is in `memory`, which must outlive this object.
  void attach(Arena& arena, Memory& memory);

  /// Discards the losses of the previous step.
  void begin();
  /// Copies Stage::row_loss() of a microbatch without waiting.
  void keep(int microbatch, View rows);
  /// Waits for the kernels issued so far.
  void read();
  /// The losses by microbatch, after read(); 0 for microbatches that were not kept.
  const std::vector<double>& sums() const { return sums_; }

 private:
  View rows_of(int microbatch, View all) const {
    return all.slice(slot_[static_cast<std::size_t>(microbatch)] * rows_, rows_);
  }

  std::size_t slots_ = 0, rows_ = 0;  // microbatches whose last stage is here, and rows of each
  std::vector<std::size_t> slot_;     // by microbatch
  std::vector<int> kept_;             // microbatches
  std::vector<double> sums_;
  View all_;
  Memory* memory_ = nullptr;
  std::vector<std::byte> host_;
};

class Executor {
 public:
  /// `stages[s]` is stage s of the layout, null if on another rank. `clock` times the stages'
  /// kernels. All references must outlive the executor.
  Executor(const Layout& layout, const Plan& plan, const std::vector<Stage*>& stages, int rank,
           int microbatches, KernelClock& clock);
  Executor(const Executor&) = delete;  // referenced by its stages
  Executor& operator=(const Executor&) = delete;

  /// Memory needed by attach(), in bytes, by purpose.
  std::size_t saved_bytes() const { return stages_.saved_bytes(); }
  std::size_t boundary_bytes() const { return stages_.boundary_bytes(); }
  std::size_t loss_bytes() const { return losses_.bytes(); }
  /// `arena` is in `memory`, which must outlive the executor.
  void attach(Arena& arena, Memory& memory) {
    stages_.attach(arena);
    losses_.attach(arena, memory);
  }
  /// Collective.
  void connect(Communicator& world, GradientExchange& exchange, Watchdog* watchdog);
  /// A training step is begin_step(), run(), end_step(); records in between belong to that step.
  void begin_step(std::int64_t step);
  /// Calls `update` at the row's STEP, when all gradients have been reduced.
  void run(const StepInput& input, const std::function<void()>& update);
  /// Waits for the step's kernels.
  void end_step();
  /// Runs forward passes of microbatches [0, count) on the pipelines that own them. Calls `see`
  /// with the logits of each microbatch on the rank of its last stage; losses() returns the losses.
  void evaluate(const StepInput& input, int count, const std::function<void(int, View)>& see);

  const std::vector<Action>& row() const { return row_; }
  /// The times of the last step's actions, in row order.
  const std::vector<ActionTime>& times() const { return recorder_.last().actions; }
  TraceRecorder& recorder() { return recorder_; }
  const TraceRecorder& recorder() const { return recorder_; }
  /// The times of the units of this rank's stages.
  UnitClock& unit_clock() { return unit_clock_; }
  const UnitClock& unit_clock() const { return unit_clock_; }
  /// Summed loss by microbatch, after STEP and evaluate(); 0 if the last stage is on another rank.
  const std::vector<double>& losses() const { return losses_.sums(); }
  /// Peak number of slots in use, in the form of plan_memory()'s prediction.
  RowMemory measured() const { return stages_.measured(); }

 private:
  struct Pass {  // a compute action in progress, unit by unit
    Action action;
    LocalStage* stage = nullptr;
    MicrobatchIo io;
    FrozenOutputs* frozen = nullptr;  // set for an F that begins with frozen units of the model
    int restored = 0;                 // units that need not run
    int done = 0;                     // units completed
    int units() const {
      const Stage& s = *stage->stage;
      return s.last_unit() -
             (action.kind == Kind::F ? s.first_unit() + restored : s.first_trained());
    }
  };

  void note_memory() {
    if (recorder_.detailed()) recorder_.memory(stages_.use());
  }
  void await(const Action& action);
  Pass begin_pass(const Action& action, const StepInput& input);
  void advance(Pass& pass);
  void end_pass(const Pass& pass);
  void compute(std::size_t position, const StepInput& input);
  void compute_pair(std::size_t position, const StepInput& input);
  void evaluate_one(const LocalStage& stage, int microbatch, const StepInput& input,
                    const std::function<void(int, View)>& see);

  const Layout layout_;
  const std::vector<Action> row_;
  const RowMemory memory_;
  TraceRecorder recorder_;
  Transfers transfers_;
  LocalStages stages_;
  GradientExchange* exchange_ = nullptr;
  Watchdog* watchdog_ = nullptr;
  UnitClock unit_clock_;
  RowLosses losses_;
};

}  // namespace concertina
