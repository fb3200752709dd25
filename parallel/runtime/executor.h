// Runs one rank's row of a Plan over its stages. Knows no schedule by name.
// Invariants: nothing is allocated after attach(); transfers make progress between any two units
// that run.
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

class RowLosses {
 public:
  /// `stages`: of this rank.
  RowLosses(const std::vector<LocalStage>& stages, int microbatches);

  /// The bytes that attach() takes.
  std::size_t bytes() const { return align_up(slots_ * rows_ * sizeof(float)); }
  /// `arena`: of `memory`, which outlives it.
  void attach(Arena& arena, Memory& memory);

  /// Forgets the last step's.
  void begin();
  /// Copies Stage::row_loss() of a microbatch, without a wait.
  void keep(int microbatch, View rows);
  /// Waits for the kernels issued so far.
  void read();
  /// The losses by microbatch, after read(); 0 for those that were not kept.
  const std::vector<double>& sums() const { return sums_; }

 private:
  View rows_of(int microbatch, View all) const {
    return all.slice(slot_[static_cast<std::size_t>(microbatch)] * rows_, rows_);
  }

  std::size_t slots_ = 0, rows_ = 0;  // microbatches with their last stage here, rows of each
  std::vector<std::size_t> slot_;     // by microbatch
  std::vector<int> kept_;             // microbatches
  std::vector<double> sums_;
  View all_;
  Memory* memory_ = nullptr;
  std::vector<std::byte> host_;
};

class Executor {
 public:
  /// `stages[s]`: stage s of the layout, null on other ranks. `clock`: of the stages' kernels. All
  /// references outlive the executor.
  Executor(const Layout& layout, const Plan& plan, const std::vector<Stage*>& stages, int rank,
           int microbatches, KernelClock& clock);
  Executor(const Executor&) = delete;  // its stages tell it what their units do
  Executor& operator=(const Executor&) = delete;

  /// Bytes of attach(), by what they hold.
  std::size_t saved_bytes() const { return stages_.saved_bytes(); }
  std::size_t boundary_bytes() const { return stages_.boundary_bytes(); }
  std::size_t loss_bytes() const { return losses_.bytes(); }
  /// `arena`: of `memory`, which outlives the executor.
  void attach(Arena& arena, Memory& memory) {
    stages_.attach(arena);
    losses_.attach(arena, memory);
  }
  /// Collective.
  void connect(Communicator& world, GradientExchange& exchange, Watchdog* watchdog);
  /// One training step is begin_step(), run(), end_step(): what is recorded in between is its own.
  void begin_step(std::int64_t step);
  /// Calls `update` at the row's STEP, where all gradients are reduced.
  void run(const StepInput& input, const std::function<void()>& update);
  /// Waits for the step's kernels.
  void end_step();
  /// Forward passes only, of microbatches [0, count), by the pipelines that own them; `see` gets
  /// each one's logits on the rank of its last stage, and losses() their losses.
  void evaluate(const StepInput& input, int count, const std::function<void(int, View)>& see);

  const std::vector<Action>& row() const { return row_; }
  /// The times of the last step's actions, in the order of this rank's row.
  const std::vector<ActionTime>& times() const { return recorder_.last().actions; }
  TraceRecorder& recorder() { return recorder_; }
  const TraceRecorder& recorder() const { return recorder_; }
  /// The times of the units of this rank's stages.
  UnitClock& unit_clock() { return unit_clock_; }
  const UnitClock& unit_clock() const { return unit_clock_; }
  /// At STEP and after evaluate(): summed losses of the microbatches whose last stage is here
  /// (others 0).
  const std::vector<double>& losses() const { return losses_.sums(); }
  /// Most slots in use at once so far, in the shape of plan_memory's prediction.
  RowMemory measured() const { return stages_.measured(); }

 private:
  struct Pass {  // a compute action under way, unit by unit
    Action action;
    LocalStage* stage = nullptr;
    MicrobatchIo io;
    FrozenOutputs* frozen = nullptr;  // of an F through frozen units from the model's first one
    int restored = 0;                 // units that need not run
    int done = 0;                     // units
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
