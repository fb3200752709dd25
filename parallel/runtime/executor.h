// Runs one rank's row of a Plan over its stages. Knows no schedule by name.
// Invariants: buffers live exactly as parallel/plan/plan_memory.h says, so memory is what the plan
// predicts; nothing is allocated after attach(); a wait yields the core and feeds the watchdog;
// transfers make progress between any two units that run.
#pragma once

#include <functional>
#include <vector>

#include "core/stage.h"
#include "parallel/comm/communicator.h"
#include "parallel/comm/watchdog.h"
#include "parallel/plan/plan_graph.h"
#include "parallel/plan/plan_memory.h"
#include "parallel/plan/schedule.h"
#include "parallel/runtime/gradient_exchange.h"
#include "parallel/runtime/trace_recorder.h"
#include "parallel/runtime/unit_clock.h"

namespace concertina {

/// Tokens and targets [M x R] of the step's microbatches; a rank without a first (last) stage
/// leaves tokens (targets) empty.
struct StepInput {
  View tokens, targets;
  float loss_scale = 1;
};

/// Equal buffers that are handed out one at a time.
class BufferPool {
 public:
  void attach(Arena& arena, int count, std::size_t bytes, const char* name);
  void* take();
  void give(void* buffer) { free_.push_back(buffer); }
  bool empty() const { return free_.empty(); }
  int peak() const { return peak_; }
  int in_use() const { return count_ - static_cast<int>(free_.size()); }
  std::size_t bytes_in_use() const { return static_cast<std::size_t>(in_use()) * bytes_; }

 private:
  std::vector<void*> free_;
  int count_ = 0, peak_ = 0;
  std::size_t bytes_ = 0;  // of one, as the arena counts it
};

class Executor {
 public:
  /// `stages[s]`: stage s of the layout, null on other ranks. All references outlive the executor.
  Executor(const Layout& layout, const Plan& plan, std::vector<Stage*> stages, int rank,
           int microbatches);
  Executor(const Executor&) = delete;  // its stages tell it what their units do
  Executor& operator=(const Executor&) = delete;

  /// Bytes of attach(), by what they hold.
  std::size_t saved_bytes() const;  // saved activations, and gradients between I and W
  std::size_t boundary_bytes() const;
  void attach(Arena& arena);
  void connect(Communicator& world, GradientExchange& exchange, Watchdog* watchdog);
  /// Runs at the row's STEP.
  void on_step(std::function<void()> update) { update_ = std::move(update); }

  /// One training step, within the recorder's begin_step() and end_step().
  void run(const StepInput& input);
  /// Forward passes only, of microbatches [0, count), by the pipelines that own them; `see` gets
  /// each one's logits on the rank of its last stage, and losses() their losses.
  void evaluate(const StepInput& input, int count, const std::function<void(int, View)>& see);

  const std::vector<Action>& row() const { return row_; }
  /// Of the last step, in the row's order.
  const std::vector<ActionTime>& times() const { return recorder_.last().actions; }
  TraceRecorder& recorder() { return recorder_; }
  const TraceRecorder& recorder() const { return recorder_; }
  /// What the units of this rank's stages take.
  UnitClock& unit_clock() { return unit_clock_; }
  const UnitClock& unit_clock() const { return unit_clock_; }
  /// Summed losses of the microbatches whose last stage is here (others 0).
  const std::vector<double>& losses() const { return losses_; }
  /// Most slots in use at once so far, in the shape of plan_memory's prediction.
  RowMemory measured() const;

 private:
  /// Buffers and transfers of one microbatch on one stage.
  struct State {
    void *saved = nullptr, *grads = nullptr;
    View input, output, input_grad, output_grad;
    Work receive_f, receive_b, send_f;
  };
  struct Local {  // a stage on this rank
    int id = 0;   // in the layout
    StageInfo info;
    Stage* stage = nullptr;
    BufferPool saved, grads;
    std::vector<State> states;  // by microbatch
  };
  struct Pass {  // a compute action under way, unit by unit
    Action action;
    Local* stage = nullptr;
    MicrobatchIo io;
    int done = 0;        // units
    double seconds = 0;  // of these
    int units() const {
      const Stage& s = *stage->stage;
      return s.last_unit() - (action.kind == Kind::F ? s.first_unit() : s.first_trained());
    }
  };
  struct Sent {
    Work work;
    void* buffer = nullptr;
    Action action;
    bool over = false;  // as far as was seen
  };
  /// Messages that nothing answers: a buffer is free once its message is known to be over.
  struct Outbox {
    BufferPool buffers;
    std::vector<Sent> sends;  // at most kSendBuffers, oldest first
  };
  struct OpenTransfer {
    Work* work = nullptr;
    Action action;
  };

  Local& local(int stage);
  State& state(int stage, int microbatch) {
    return local(stage).states[static_cast<std::size_t>(microbatch)];
  }
  View boundary(BufferPool& pool) const {
    return {pool.take(), boundary_bytes_ / size_of(boundary_type_), boundary_type_};
  }
  MicrobatchIo io(const Local& stage, int microbatch, const StepInput& input) const;
  void wait(Work& work, WaitFor what, const Action& transfer);
  int peer_of(const Action& transfer) const;
  void note_memory();
  void await_input(const Action& action);
  void await_output_grad(const Action& action);
  void start_transfer(const Action& action);
  void start_forward(Local& stage, int microbatch);
  void end_forward(Local& stage, int microbatch);
  void start_backward(Local& stage, const Action& action);
  void end_backward(Local& stage, const Action& action);
  void start_send(Outbox& outbox, View message, const Action& action);
  void reclaim_oldest(Outbox& outbox);
  void take_send_buffer(Outbox& outbox, View& message);
  void await(const Action& action);
  Pass begin_pass(const Action& action, const StepInput& input);
  void advance(Pass& pass);
  void end_pass(const Pass& pass);
  void compute(std::size_t position, const StepInput& input);
  void compute_pair(std::size_t position, const StepInput& input);
  void progress();
  void evaluate_one(Local& stage, int microbatch, const StepInput& input,
                    const std::function<void(int, View)>& see);

  const Layout layout_;
  std::vector<Action> row_;
  std::vector<Local> locals_;  // ascending stage
  std::vector<int> local_of_;  // stage -> index in locals_, -1
  RowMemory memory_;
  std::size_t boundary_bytes_ = 0;
  DType boundary_type_ = DType::f32;
  BufferPool inputs_, outputs_, output_grads_;
  Outbox input_grads_, frozen_outputs_;
  std::vector<OpenTransfer> open_;  // that nothing has waited for yet, but those of outboxes
  Communicator* world_ = nullptr;
  GradientExchange* exchange_ = nullptr;
  Watchdog* watchdog_ = nullptr;
  std::function<void()> update_;
  TraceRecorder recorder_;
  UnitClock unit_clock_;
  std::vector<double> losses_;
};

}  // namespace concertina
