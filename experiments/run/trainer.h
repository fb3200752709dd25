// The trainer trains, evaluates and generates; it has a job, an assignment, a state and an engine.
// Invariants: the job never changes; the state outlives every engine; changing the assignment keeps
// every bit of what is trained.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "experiments/config/config.h"
#include "models/lr_schedule.h"
#include "models/model.h"
#include "parallel/comm/communicator.h"
#include "parallel/comm/watchdog.h"
#include "parallel/generate/assign.h"
#include "parallel/policies/skip_plan.h"
#include "parallel/runtime/step_engine.h"

namespace concertina {

/// Returns a factory for stages of `model` on `backend`; both must outlive the stages.
StageFactory stage_factory(const Model& model, Backend& backend);

/// A sample that some rank could not read: a data error, thrown on all ranks. Everything that is
/// trained is as it was after the last step.
class UnreadData : public Error {
 public:
  explicit UnreadData(const Error& error) : Error(error) {}
};

/// The costs of changing the assignment.
struct Adoption {
  double seconds = 0;           // on this rank, since all ranks were ready
  double move_seconds = 0;      // the part of `seconds` spent moving the state
  std::size_t bytes = 0;        // total between ranks
  std::size_t extra_bytes = 0;  // maximum over ranks, beyond larger states
};

class Trainer {
 public:
  /// Decides what is trained and how the ranks of `world` share the work; allocates no tensors yet.
  /// All arguments must outlive this object. Throws Error{bad_input} like assignment_of(), which
  /// also describes `launch`. Collective.
  Trainer(const RunConfig& config, Backend& backend, Communicator& world,
          Watchdog* watchdog = nullptr, const std::string& launch = {});

  /// Returns the memory of this rank, in bytes.
  RankMemory memory() const { return engine_->memory(); }
  /// Allocates the memory and connects the ranks. Required by everything below. Collective.
  void start();
  /// Initializes the weights from model_seed() and sets the optimizer states to zero.
  void initialize();
  /// Must be called after other code has written the state.
  void refresh();
  /// Sets the progress of the loaded state: `steps` steps are done, with `updates` updates.
  void resume(std::int64_t steps, std::int64_t updates) { ahead_ = steps - updates, done_ = steps; }
  /// Sets the step at which the learning-rate schedule ends; see lr_steps().
  void set_lr_steps(std::int64_t steps);

  /// Sets the cache of frozen outputs that steps read, which must outlive them; null: no cache.
  void reuse(FrozenOutputs* frozen) { frozen_outputs_ = frozen; }

  /// Makes steps skip the weight gradients of these groups of units in turn; no groups: none.
  void skip(std::vector<SkipGroup> groups);

  /// Trains step `step`, counted from 1, with one update. If the assignment has k batches per step,
  /// does the work of steps [step, step + k) at the learning rate of the first. Returns the same
  /// result on every rank, including spare ranks, which wait for the others. Throws Error{failure}
  /// if the step computed wrong numbers. Collective.
  StepResult step(std::int64_t step, BatchSource& source);
  /// The same, but if the numbers are wrong, returns a result with a fault and changes nothing: the
  /// step can be retried or skipped.
  StepResult try_step(std::int64_t step, BatchSource& source);
  /// Throws a rank's error from reading its data in the last step or evaluate(). Collective.
  [[noreturn]] void throw_unread();
  /// Called after a try_step() with a fault: counts the step as done, without an update.
  void pass_over(std::int64_t step);
  /// Restores the config's assignment with no steps done; the state must then be loaded or
  /// initialized. Collective.
  void start_over();
  /// The number of steps done, and by how much it exceeds the number of updates.
  std::int64_t done() const { return done_; }
  std::int64_t ahead() const { return ahead_; }
  /// Sums of squared gradients per bucket in the last step, on every rank.
  const std::vector<double>& bucket_squares() const { return squares_; }
  /// Returns `mine` of all working ranks, concatenated, on every rank. Spare ranks contribute
  /// nothing and cause no delay. All working ranks must pass the same number of values. Collective.
  std::vector<double> gather_working(std::span<const double> mine);
  /// Called before step(). A spare rank, which only waits during the step, sends `value` to the
  /// first working rank; a working rank ignores it.
  void tell(double value);
  /// Called after step(). Returns the maximum of the values that spare ranks passed to tell() on
  /// the first working rank, and 0 elsewhere. Collective.
  double stop_requested();

  /// Runs forward passes over `count` microbatches, starting with batch `batch`. Returns the summed
  /// loss of each microbatch, or 0 for one whose last stage is on another rank. `see` receives the
  /// logits [R,V] on the rank of the last stage.
  const std::vector<double>& evaluate(
      std::int64_t batch, int count, BatchSource& source,
      const std::function<void(int microbatch, View logits)>& see = {});

  /// Continues with `next`, an assignment of the same job to the same world: moves the state, using
  /// at most parallel.move_memory, and rebuilds the rest. Keeps every bit of what is trained.
  /// Collective; may be called only between two steps.
  Adoption adopt(Assignment next);
  /// The same if `next` is assign(job, asked); asked() then returns this request.
  Adoption adopt(Request asked, Assignment next);
  /// Seconds that this rank last took to build and connect its engine and pack its weights.
  double build_seconds() const { return build_seconds_ + pack_seconds_; }
  /// Returns the data that adopt() would move.
  MovePlan plan_adoption(const Assignment& next);

  /// The request for the current assignment, initially the config's.
  const Request& asked() const { return asked_; }
  /// The same request with the current layout and schedule and another number of frozen units.
  Request asked_with_frozen(int units) const;

  const RunConfig& config() const { return config_; }
  const Model& model() const { return *model_; }
  const Job& job() const { return job_; }
  const Assignment& assignment() const { return *assignment_; }
  const Layout& layout() const { return assignment_->layout; }
  State& state() { return *state_; }
  const State& state() const { return *state_; }
  StepEngine& engine() { return *engine_; }
  const StepEngine& engine() const { return *engine_; }
  Communicator& world() { return world_; }
  /// The host index of each rank, counted from 0.
  const std::vector<int>& hosts() const { return hosts_; }
  /// May be null.
  /// Tells the watchdog, if any, that this rank makes progress.
  void beat() const {
    if (watchdog_ != nullptr) watchdog_->beat();
  }
  Watchdog* watchdog() const { return watchdog_; }
  const Backend& backend() const { return backend_; }
  /// The memory for weights and optimizer states, and the communicator that moves them.
  Memory& tensor_memory() const { return backend_.memory(); }
  Communicator& tensors() { return tensors_ != nullptr ? *tensors_ : world_; }
  /// The peak number of tensor bytes on this rank so far.
  std::size_t peak_bytes() const;

 private:
  std::unique_ptr<StepEngine> make_engine();
  void start_engine(Arena arena = {});
  void share_with_spares(std::span<double> values);

  const RunConfig& config_;
  Backend& backend_;
  Communicator& world_;
  Watchdog* watchdog_;
  FrozenOutputs* frozen_outputs_ = nullptr;
  std::unique_ptr<Model> model_;
  const Job job_;
  std::unique_ptr<Optimizer> optimizer_;
  LrSchedule lr_;
  std::int64_t done_ = 0, ahead_ = 0;
  bool adopted_ = false;  // the assignment differs from the config's
  SkipTurns skips_;
  const std::vector<int> hosts_;
  Request asked_;
  std::unique_ptr<const Assignment> assignment_;
  std::unique_ptr<Communicator> tensors_;  // if the world cannot access tensors
  std::unique_ptr<State> state_;
  std::unique_ptr<StepEngine> engine_;
  std::vector<double> squares_, shared_;  // of a step; the values sent to spare ranks
  std::vector<Work> spare_sends_;
  double telling_ = 0, heard_ = 0;  // sent by a spare rank; received from one
  Work report_;
  double build_seconds_ = 0, pack_seconds_ = 0;
  std::size_t engine_peak_ = 0;  // state and engine, over all assignments so far
};

}  // namespace concertina
