// All that depends on an assignment: one rank's stages, memory, gradients and updates, put together
// around the state of that rank. Cheap to destroy and make again: only the state outlives it.
// Invariants: all memory is one arena whose parts are known before it is reserved (what `plan`
// prints is what a run takes); the pieces know each other only through core/ interfaces.
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

/// The memory of a rank by purpose, in bytes: of its state and of its engine.
struct RankMemory {
  struct Purpose {
    std::string name;
    std::size_t bytes = 0;
  };
  std::vector<Purpose> parts;
  std::size_t total() const;
};

/// Makes a stage of an assignment with its operators, without memory.
using StageFactory =
    std::function<std::unique_ptr<Stage>(const Assignment&, const StagePlacement&)>;

/// How messages pass between the ranks of a run.
struct Communicators {
  Communicator& world;    // of host memory
  Communicator& tensors;  // of tensors; may be `world`
};

/// Seconds of one rank in a step.
struct StepSeconds {
  double load = 0;     // of the batch
  double norm = 0;     // sums of squares of gradients
  double update = 0;   // of its own parts
  double refresh = 0;  // packing of weights
  double post = 0;     // one SEND or RECV; 0 if it has none
};

class StepEngine {
 public:
  /// Makes the rank's stages and operators; takes no memory for tensors yet. All outlive it.
  /// `backend` has no operators of others.
  StepEngine(const Job& job, const Assignment& assignment, int rank, const StageFactory& make_stage,
             const Optimizer& optimizer, double clip, Backend& backend);
  ~StepEngine();
  StepEngine(const StepEngine&) = delete;
  StepEngine& operator=(const StepEngine&) = delete;

  RankMemory memory() const;
  /// Reserves the arena and connects with the other ranks. `state` is of the same assignment; it
  /// and `ranks` outlive the engine. `arena`: of an engine before, which is used again if it can
  /// be. Collective over the world.
  void start(State& state, Communicators ranks, Watchdog* watchdog, Arena arena = {});
  /// The memory of this engine, which only ends after that.
  Arena release_arena() { return std::move(arena_); }
  /// The weights were written from outside: packs them all. Training packs again what it changes.
  void refresh();

  /// Steps from now on make no gradients of these buckets, whose weights and optimizer state stay.
  /// The same on all ranks; the flags outlive the steps.
  void skip(SkippedBuckets skipped);

  /// Trains step `step`, which counts from 1, at rate `lr`; with several batches per step, the
  /// steps from `step` on at once. `update_number` counts the optimizer's updates from 1. Where the
  /// result has a fault, weights and optimizer state are what they were, and it can be tried again.
  /// Collective over the working ranks; a spare rank has nothing to do and returns nothing of use.
  /// `frozen`: may know what frozen units make of the samples.
  StepResult train(std::int64_t step, std::int64_t update_number, double lr, BatchSource& source,
                   FrozenOutputs* frozen = nullptr);
  /// Forward passes over the first `count` microbatches from batch `batch` on, of at most as many
  /// batches as a step has; losses() has their sums.
  /// `see` gets the logits [R,V] on the ranks of the last stages.
  void evaluate(std::int64_t batch, int count, BatchSource& source,
                const std::function<void(int microbatch, View logits)>& see = {});

  /// What was wrong with the last step, on a working rank.
  const StepFault& fault() const { return update_.fault(); }
  /// Why this rank could not read its part of the last batch, which was then blank, so that this
  /// rank met the others as ever; nothing: it could.
  const std::optional<Error>& unread() const { return unread_; }
  /// After a fault, StateCheck::repair(), and packs all weights. Collective over the working ranks.
  std::vector<std::string> repair();
  StateCheck& state_check() { return update_.check(); }
  const StateCheck& state_check() const { return update_.check(); }

  /// Whether this rank holds a stage.
  bool works() const { return works_; }
  /// The ranks that work, as Assignment::working_index() counts them. Not on a spare rank.
  Communicator& working() const { return *working_; }
  /// The sums of squares of the last step's gradients, by bucket.
  const std::vector<double>& bucket_squares() const { return update_.bucket_squares(); }
  /// Means over typical steps of what is no unit's.
  StepSeconds seconds() const;
  /// Elements of this rank's parts that train.
  std::size_t trained_elements() const { return update_.elements(); }
  const Executor& executor() const { return executor_; }
  Executor& executor() { return executor_; }
  /// Stage s of the layout, null if it is on another rank.
  Stage* stage(int s) { return stages_[static_cast<std::size_t>(s)].get(); }
  const Stage* stage(int s) const { return stages_[static_cast<std::size_t>(s)].get(); }
  const Arena& arena() const { return arena_; }

 private:
  using Stages = std::vector<std::unique_ptr<Stage>>;  // by stage of the layout, null elsewhere

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
  std::unique_ptr<Communicator> working_group_;  // where some ranks are spare
  Communicator* working_ = nullptr;
  std::unique_ptr<Groups> groups_;
  Watchdog* watchdog_ = nullptr;
  StepHistory steps_;                           // load, norm, update, refresh, post
  double refresh_start_ = 0, refresh_end_ = 0;  // marks
};

}  // namespace concertina
