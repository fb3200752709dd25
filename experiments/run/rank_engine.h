// One rank of a run: its stages, memory, gradients and updates, put together.
// Invariants: all memory is one arena whose parts are known before it is reserved (what `plan`
// prints is what a run takes); the pieces know each other only through core/ interfaces.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/arena.h"
#include "core/batch_source.h"
#include "experiments/run/run_plan.h"
#include "experiments/run/update.h"
#include "models/model_stage.h"
#include "parallel/runtime/executor.h"
#include "parallel/simulate/costs.h"

namespace concertina {

/// What a rank's memory is for, in bytes.
struct RankMemory {
  struct Part {
    std::string name;
    std::size_t bytes = 0;
  };
  std::vector<Part> parts;
  std::size_t total() const;
};

class RankEngine {
 public:
  /// Makes the rank's stages and operators; takes no memory for tensors yet.
  RankEngine(const RunPlan& run, const RunConfig& config, int rank, Backend& backend);

  RankMemory memory() const;
  /// Reserves the arena and connects with the other ranks (collective over `world`).
  void start(Communicator& world, Watchdog* watchdog = nullptr);
  /// The learning rate reaches its end at step `steps`; see lr_steps().
  void set_lr_steps(std::int64_t steps) { update_.set_lr_steps(steps); }
  /// Of start(); may be null.
  Watchdog* watchdog() const { return watchdog_; }
  /// Initial weights by model_seed(); states are zero.
  void initialize();
  /// The weights were written from outside: packs them all. Training packs again what it changes.
  void refresh();

  /// Trains one step; `step` counts from 1.
  StepSummary train(std::int64_t step, BatchSource& source);
  /// Forward passes over the first `count` microbatches of batch `batch`. The sum of losses of
  /// this rank's last stages; `see` gets their logits [R,V].
  double evaluate(std::int64_t batch, int count, BatchSource& source,
                  const std::function<void(int microbatch, View logits)>& see = {});

  /// All of bucket b, or empty; in the order of RunPlan::buckets.
  const std::vector<View>& weights() const { return weights_; }
  /// Means over typical steps of what is neither a unit's nor a transfer's: seconds of this rank.
  RankCosts step_costs() const;
  /// Of a SEND or RECV of this rank, likewise; 0 if it has none.
  double post_seconds() const;
  const Update& update() const { return update_; }
  const Executor& executor() const { return executor_; }
  Executor& executor() { return executor_; }
  /// Stage s of the layout, null if it is on another rank.
  const Stage* stage(int s) const { return stages_[static_cast<std::size_t>(s)].get(); }
  const Arena& arena() const { return arena_; }
  Communicator& world() { return *world_; }
  /// Where weights and states are.
  Memory& tensor_memory() const { return backend_.memory(); }
  const RunPlan& run() const { return run_; }

 private:
  void refresh_trained();
  void record_step(double load_seconds);
  void load(std::int64_t batch, int count, BatchSource& source);

  const RunPlan& run_;
  const RunConfig& config_;
  int rank_;
  Backend& backend_;
  std::vector<std::unique_ptr<ModelStage>> stages_;  // by stage of the layout, null elsewhere
  GradientExchange exchange_;
  Update update_;
  Executor executor_;
  Arena arena_;
  std::vector<View> weights_;
  StepInput input_;
  HostMirror tokens_, target_rows_;
  std::unique_ptr<Communicator> tensors_;  // where the world cannot reach them
  std::unique_ptr<Groups> groups_;
  Communicator* world_ = nullptr;
  Watchdog* watchdog_ = nullptr;
  std::int64_t step_ = 0;
  double targets_ = 1;
  StepSummary summary_;
  StepHistory steps_;                           // load, norm, update, refresh, post
  double refresh_start_ = 0, refresh_end_ = 0;  // marks
};

}  // namespace concertina
