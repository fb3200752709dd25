// The trainer: it trains, evaluates and generates, the one composition of job, assignment, state
// and engine. Invariants: the job never changes; the state outlives every engine; a change of the
// assignment leaves every bit of what is trained as it was.
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

/// Makes stages of `model` on `backend`; both outlive what it makes.
StageFactory stage_factory(const Model& model, Backend& backend);

/// A sample that some rank could not read: an error of data, thrown on all ranks. Nothing that is
/// trained has changed since the last step.
class UnreadData : public Error {
 public:
  explicit UnreadData(const Error& error) : Error(error) {}
};

/// The times of a change of the assignment.
struct Adoption {
  double seconds = 0;           // of this rank, from when all were ready
  double move_seconds = 0;      // of these, for the state
  std::size_t bytes = 0;        // between ranks, in all
  std::size_t extra_bytes = 0;  // of the rank that took most besides its larger state
};

class Trainer {
 public:
  /// Decides what is trained and how the ranks of `world` share it; takes no memory for tensors
  /// yet. All outlive it. Throws bad input as assignment_of() does, which also says what `launch`
  /// is. Collective.
  Trainer(const RunConfig& config, Backend& backend, Communicator& world,
          Watchdog* watchdog = nullptr, const std::string& launch = {});

  /// Returns the memory of this rank, in bytes.
  RankMemory memory() const { return engine_->memory(); }
  /// Takes the memory and connects with the other ranks. All below comes after it. Collective.
  void start();
  /// Initial weights by model_seed(); optimizer states are zero.
  void initialize();
  /// The state was written from outside.
  void refresh();
  /// The state is of a run of which `steps` steps are done, in `updates` updates.
  void resume(std::int64_t steps, std::int64_t updates) { ahead_ = steps - updates, done_ = steps; }
  /// The learning rate reaches its end at step `steps`; see lr_steps().
  void set_lr_steps(std::int64_t steps);

  /// Sets the cache of frozen outputs that steps read; it outlives them. Null: none.
  void reuse(FrozenOutputs* frozen) { frozen_outputs_ = frozen; }

  /// Makes steps leave out weight gradients of these units by turns; no groups: of none.
  void skip(std::vector<SkipGroup> groups);

  /// Trains step `step`, which counts from 1, with one update; where the assignment has k batches
  /// per step, the work of steps [step, step + k) at the learning rate of the first. Every rank
  /// returns the same, also a spare one, which waits for the others. Throws a failure where the
  /// numbers of the step are wrong. Collective.
  StepResult step(std::int64_t step, BatchSource& source);
  /// The same, but where the numbers are wrong it returns a result with a fault, and nothing has
  /// changed: the step may be tried again, or passed over.
  StepResult try_step(std::int64_t step, BatchSource& source);
  /// After a step or evaluate() in which a rank could not read its data: throws why. Collective.
  [[noreturn]] void throw_unread();
  /// After a try_step() with a fault: the step is done, without an update.
  void pass_over(std::int64_t step);
  /// The assignment is again the one of the config, and no step is done; the state is to be loaded
  /// or made. Collective.
  void start_over();
  /// Steps that are done, and how many of them more than updates.
  std::int64_t done() const { return done_; }
  std::int64_t ahead() const { return ahead_; }
  /// Sums of squares of the gradients of each bucket in the last step, on every rank.
  const std::vector<double>& bucket_squares() const { return squares_; }
  /// `mine` of every working rank, one after the other, on every rank. A spare rank has nothing to
  /// give, and keeps nobody waiting. As many values on each working rank. Collective.
  std::vector<double> gather_working(std::span<const double> mine);
  /// Before step(): what a spare rank, which only waits there, has for the others; nothing on a
  /// working rank.
  void tell(double value);
  /// After step(), collective: the largest value that a spare rank told, on the first working rank;
  /// else 0.
  double told();

  /// Forward passes over the first `count` microbatches from batch `batch` on. The summed loss of
  /// each microbatch, 0 where its last stage is on another rank; `see` gets the logits [R,V] on the
  /// rank of the last stage.
  const std::vector<double>& evaluate(
      std::int64_t batch, int count, BatchSource& source,
      const std::function<void(int microbatch, View logits)>& see = {});

  /// Goes on as `next` says, an assignment of the same job to the same world: moves the state
  /// within parallel.move_memory and rebuilds the rest. What is trained keeps every bit.
  /// Collective; between two steps.
  Adoption adopt(Assignment next);
  /// The same, where `next` is assign(job, asked): from then on asked() is this.
  Adoption adopt(Request asked, Assignment next);
  /// Seconds that this rank took to make its engine, to connect it and to pack its weights, the
  /// last time.
  double build_seconds() const { return build_seconds_ + pack_seconds_; }
  /// Returns the data that adopt() would move.
  MovePlan plan_adoption(const Assignment& next);

  /// The request of the present assignment: at first, the config's.
  const Request& asked() const { return asked_; }
  /// The same for the layout and schedule of now with other units frozen.
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
  /// The host of each rank, counted from 0.
  const std::vector<int>& hosts() const { return hosts_; }
  /// May be null.
  Watchdog* watchdog() const { return watchdog_; }
  const Backend& backend() const { return backend_; }
  /// Where weights and optimizer states are, and what moves them between all ranks.
  Memory& tensor_memory() const { return backend_.memory(); }
  Communicator& tensors() { return tensors_ != nullptr ? *tensors_ : world_; }
  /// The most bytes of tensors on this rank at once so far.
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
  bool adopted_ = false;  // another assignment than the config's
  SkipTurns skips_;
  const std::vector<int> hosts_;
  Request asked_;
  std::unique_ptr<const Assignment> assignment_;
  std::unique_ptr<Communicator> tensors_;  // where the world cannot reach them
  std::unique_ptr<State> state_;
  std::unique_ptr<StepEngine> engine_;
  std::vector<double> squares_, shared_;  // of a step; what spare ranks are told of it
  std::vector<Work> spare_sends_;
  double telling_ = 0, heard_ = 0;  // by a spare rank, from it
  Work tell_;
  double build_seconds_ = 0, pack_seconds_ = 0;
  std::size_t engine_peak_ = 0;  // state and engine, of any assignment so far
};

}  // namespace concertina
