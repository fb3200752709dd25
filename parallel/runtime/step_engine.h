// Everything that depends on an assignment: one rank's stages, memory, gradients and updates, built
// around the state of that rank. Cheap to destroy and rebuild: only the state outlives it.
// Invariants: all memory is one arena whose size is known before it is reserved (what `plan` prints
// is what a run uses); the components know each other only through core/ interfaces.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/arena.h"
#include "core/error.h"
#include "core/model/batch.h"
#include "parallel/runtime/executor.h"
#include "parallel/runtime/step_batch.h"
#include "parallel/runtime/update.h"

namespace concertina {

/// Memory of a rank in bytes, by purpose, for its state and its engine.
struct RankMemory {
  struct Purpose {
    std::string name;
    std::size_t bytes = 0;
  };
  std::vector<Purpose> parts;
  std::size_t total() const;
};

/// Creates a stage of an assignment with its operators, without memory.
using StageFactory =
    std::function<std::unique_ptr<Stage>(const Assignment&, const StagePlacement&)>;

/// How messages pass between the ranks of a run.
struct Communicators {
  Communicator& world;    // passes host memory
  Communicator& tensors;  // passes tensors; may be `world`
};

/// Durations on one rank in a step, in seconds.
struct StepSeconds {
  double load = 0;     // loading the batch
  double norm = 0;     // sums of squares of gradients
  double update = 0;   // updating its own parts
  double refresh = 0;  // packing of weights
  double post = 0;     // one SEND or RECV; 0 if the rank has none
};

class StepEngine {
 public:
  /// Creates the rank's stages and operators, without memory for tensors. All references must
  /// outlive the engine. `backend` must have no other operators.
  StepEngine(const Job& job, const Assignment& assignment, int rank, const StageFactory& make_stage,
             const Optimizer& optimizer, double clip, Backend& backend);
  ~StepEngine();
  StepEngine(const StepEngine&) = delete;
  StepEngine& operator=(const StepEngine&) = delete;

  RankMemory memory() const;
  /// Reserves the arena and connects to the other ranks. `state` has the same assignment; it and
  /// `ranks` must outlive the engine. `arena` comes from a previous engine and is reused if
  /// possible. Collective over the world.
  void start(State& state, Communicators ranks, Watchdog* watchdog, Arena arena = {});
  /// Releases the memory of this engine, which may then only be destroyed.
  Arena release_arena() { return std::move(arena_); }
  /// Packs all weights after other code has written them. Training packs what it changes.
  void refresh();

  /// From now on, steps compute no gradients for these buckets, and their weights and optimizer
  /// state stay unchanged. The flags must agree on all ranks and outlive the steps.
  void skip(SkippedBuckets skipped);

  /// Trains step `step` (from 1) at learning rate `lr`. With several batches per step, trains that
  /// many steps at once, starting with `step`. `update_number` counts the optimizer's updates from
  /// 1. If the result has a fault, weights and optimizer state are unchanged and the step can be
  /// retried. `frozen` may supply outputs of frozen units. Collective over the working ranks; on a
  /// spare rank the result is unspecified.
  StepResult train(std::int64_t step, std::int64_t update_number, double lr, BatchSource& source,
                   FrozenOutputs* frozen = nullptr);
  /// Runs forward passes over `count` microbatches, starting with batch `batch`, from at most as
  /// many batches as a step has; losses() returns the sums. Calls `see` with the logits [R,V] on
  /// the ranks of the last stages.
  void evaluate(std::int64_t batch, int count, BatchSource& source,
                const std::function<void(int microbatch, View logits)>& see = {});

  /// The fault in the last step, on a working rank.
  const StepFault& fault() const { return update_.fault(); }
  /// Why this rank could not read its part of the last batch; empty if it could. An unread part is
  /// blank, so that this rank can still finish the step.
  const std::optional<Error>& unread() const { return unread_; }
  /// Repairs the state after a fault, then packs all weights. Collective over the working ranks.
  std::vector<std::string> repair();
  StateCheck& state_check() { return update_.check(); }
  const StateCheck& state_check() const { return update_.check(); }

  /// Whether this rank has a stage.
  bool works() const { return works_; }
  /// The working ranks, numbered by Assignment::working_index(). Not valid on a spare rank.
  Communicator& working() const { return *working_; }
  /// Sums of squares of the last step's gradients, by bucket.
  const std::vector<double>& bucket_squares() const { return update_.bucket_squares(); }
  /// Mean durations, over typical steps, of the work outside units.
  StepSeconds seconds() const;
  /// Number of elements that train in this rank's parts.
  std::size_t trained_elements() const { return update_.elements(); }
  const Executor& executor() const { return executor_; }
  Executor& executor() { return executor_; }
  /// Stage s of the layout, null if on another rank.
  Stage* stage(int s) { return stages_[static_cast<std::size_t>(s)].get(); }
  const Stage* stage(int s) const { return stages_[static_cast<std::size_t>(s)].get(); }
  const Arena& arena() const { return arena_; }

 private:
  using Stages = std::vector<std::unique_ptr<Stage>>;  // by stage; null if on another rank

  void attach(State& state);
  void connect(State& state, Communicators ranks);
  void pack();
  void load(const char* fault, std::int64_t batch, int count, BatchSource& source);
  void refresh_trained();
  void record_step(double load_seconds);
  double valid_targets(std::int64_t batch, const BatchSource& source) const;

  std::optional<Error> unread_;
  const Job& job_;
  const Assignment& assignment_;
  const int rank_;
  const std::size_t kinds_;
  Backend& backend_;
  const bool works_;
  Stages stages_;
  GradientExchange exchange_;
  Update update_;
  Executor executor_;
  StepBatch batch_;
  Arena arena_;
  std::unique_ptr<Communicator> working_group_;  // only if some ranks are spare
  Communicator* working_ = nullptr;
  std::unique_ptr<Groups> groups_;
  Watchdog* watchdog_ = nullptr;
  StepHistory steps_;                           // load, norm, update, refresh, post
  double refresh_start_ = 0, refresh_end_ = 0;  // marks
};

}  // namespace concertina
