#include "experiments/run/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "core/clock.h"
#include "core/error.h"
#include "core/memory.h"
#include "experiments/machine/gather.h"
#include "experiments/run/planning.h"
#include "models/model_stage.h"
#include "parallel/comm/tensor_communicator.h"
#include "parallel/runtime/redistribute.h"

namespace concertina {
namespace {

/// Waits on a rank that no other rank waits for within a step: polls rarely, which may lengthen the
/// wait by a quarter.
void wait_at_rest(Work work) {
  for (const double start = now(); !work.test();) {
    const double pause = std::clamp((now() - start) / 4, 1e-5, 1e-2);
    std::this_thread::sleep_for(std::chrono::duration<double>(pause));
  }
}

}  // namespace

StageFactory stage_factory(const Model& model, Backend& backend) {
  return [&](const Assignment& assignment, const StagePlacement& stage) {
    return std::make_unique<ModelStage>(backend, model, assignment.buckets, stage.first_unit,
                                        stage.last_unit, assignment.frozen_units());
  };
}

Trainer::Trainer(const RunConfig& config, Backend& backend, Communicator& world, Watchdog* watchdog,
                 const std::string& launch)
    : config_(config),
      backend_(backend),
      world_(world),
      watchdog_(watchdog),
      model_(model_of(config)),
      job_(job_of(config)),
      optimizer_(optimizer_of(config)),
      lr_(lr_schedule_of(config, lr_steps(config))),
      hosts_(host_of_ranks(world)),
      asked_(request_of(config, world.size(), hosts_)),
      assignment_(
          std::make_unique<Assignment>(assignment_of(config, job_, world.size(), launch, hosts_))),
      engine_(make_engine()) {}

std::unique_ptr<StepEngine> Trainer::make_engine() {
  const double start = now();
  auto engine = std::make_unique<StepEngine>(job_, *assignment_, world_.rank(),
                                             stage_factory(*model_, backend_), *optimizer_,
                                             config_.optimizer.clip, backend_);
  build_seconds_ = now() - start;
  return engine;
}

void Trainer::refresh() {
  const double start = now();
  engine_->refresh();
  pack_seconds_ = now() - start;
}

void Trainer::start() {
  state_ = std::make_unique<State>(*assignment_, world_.rank(), state_kinds(job_, *optimizer_),
                                   backend_.memory());
  tensors_ = tensor_communicator(world_, backend_.memory(), config_.parallel.transport);
  start_engine();
}

void Trainer::start_engine(Arena arena) {
  const double start = now();
  engine_->start(*state_, {world_, tensors()}, watchdog_, std::move(arena));
  build_seconds_ += now() - start;
  engine_peak_ = std::max(engine_peak_, state_->bytes() + engine_->arena().used());
  squares_.assign(assignment_->buckets.size(), 0);
}

void Trainer::initialize() {
  const std::vector<View>& weights = state_->weights();
  for (std::size_t b = 0; b < weights.size(); ++b) {
    if (weights[b].empty()) continue;
    HostMirror mirror(backend_.memory(), weights[b]);
    beat();
    concertina::initialize(assignment_->buckets[b], model_seed(config_), 0,
                           {mirror.host().f32(), mirror.host().count});
    mirror.upload();
    for (std::size_t k = 0; k < state_->kinds().size(); ++k) {
      HostMirror kind(backend_.memory(), state_->part(b, k));
      std::fill_n(kind.host().f32(), kind.host().count, 0.0F);
      kind.upload();
    }
  }
  std::ranges::fill(state_->missed(), 0);
  refresh();
}

void Trainer::set_lr_steps(std::int64_t steps) {
  lr_ = lr_schedule_of(config_, steps);
}

void Trainer::skip(std::vector<SkipGroup> groups) {
  skips_ = SkipTurns(job_.model, std::move(groups), job_.seed);
}

StepResult Trainer::step(std::int64_t step, BatchSource& source) {
  StepResult result = try_step(step, source);
  if (result.fault == StepFault::Kind::none) return result;
  if (result.fault == StepFault::Kind::data) throw_unread();
  const StepFault& fault = engine_->fault();  // a spare rank only knows that there is one
  if (fault.kind == StepFault::Kind::not_finite)
    throw_failure(fault.what, fault.where, kDivergedAdvice);
  throw_failure(fmt::format("step {} computed wrong numbers", step),
                fmt::format("rank {}", world_.rank()));
}

void Trainer::throw_unread() {
  try {
    together(world_, [this] {
      if (engine_->unread()) throw *engine_->unread();
    });
  } catch (const Error& error) {
    throw UnreadData(error);
  }
  CONCERTINA_CHECK(false, "no rank reports data that it could not read");
}

void Trainer::pass_over(std::int64_t step) {
  done_ = step + assignment_->batches - 1;
  ahead_ += assignment_->batches;
}

void Trainer::start_over() {
  if (adopted_)
    adopt(request_of(config_, world_.size(), hosts_),
          assignment_of(config_, job_, world_.size(), {}, hosts_));
  adopted_ = false;
  skips_ = {};
  resume(0, 0);
}

StepResult Trainer::try_step(std::int64_t step, BatchSource& source) {
  const std::int64_t update = step - ahead_;
  engine_->skip(skips_.of_step(update));
  StepResult result = engine_->train(step, update, lr_.rate(step), source, frozen_outputs_);
  if (engine_->works()) squares_ = engine_->bucket_squares();
  if (std::ssize(assignment_->working) < world_.size()) {
    shared_ = {result.loss, result.grad_norm, result.lr, static_cast<double>(result.fault)};
    const auto kept = static_cast<std::ptrdiff_t>(shared_.size());
    shared_.insert(shared_.end(), squares_.begin(), squares_.end());
    share_with_spares(shared_);
    squares_.assign(shared_.begin() + kept, shared_.end());
    result = {.loss = shared_[0],
              .grad_norm = shared_[1],
              .lr = shared_[2],
              .fault = static_cast<StepFault::Kind>(static_cast<int>(shared_[3]))};
  }
  if (result.fault != StepFault::Kind::none) return result;
  for (std::size_t b = 0; b < assignment_->buckets.size(); ++b)
    if (std::int64_t& missed = state_->missed()[b]; assignment_->buckets[b].frozen)
      missed = job_.keeps_frozen_state ? missed + 1 : update;
  done_ = step + assignment_->batches - 1;
  ahead_ += assignment_->batches - 1;
  return result;
}

/// Sends the first working rank's values to all spare ranks.
void Trainer::share_with_spares(std::span<double> values) {
  const Bytes bytes = std::as_writable_bytes(values);
  const int first = assignment_->working.front();
  if (!engine_->works()) {
    const Watchdog::Patience patience(watchdog_, "spare: waiting for the working ranks");
    wait_at_rest(world_.irecv(bytes, first));
  }
  if (world_.rank() != first) return;
  for (int rank = 0; rank < world_.size(); ++rank)
    if (!assignment_->works(rank)) spare_sends_.push_back(world_.isend(bytes, rank));
  for (Work& send : spare_sends_) send.wait();
  spare_sends_.clear();
}

void Trainer::tell(double value) {
  if (engine_->works()) return;
  telling_ = value;
  report_ = world_.isend(std::as_bytes(std::span(&telling_, 1)), assignment_->working.front());
}

double Trainer::stop_requested() {
  report_.wait();
  double largest = 0;
  if (world_.rank() != assignment_->working.front()) return largest;
  for (int rank = 0; rank < world_.size(); ++rank) {
    if (assignment_->works(rank)) continue;
    world_.irecv(std::as_writable_bytes(std::span(&heard_, 1)), rank).wait();
    largest = std::max(largest, heard_);
  }
  return largest;
}

std::vector<double> Trainer::gather_working(std::span<const double> mine) {
  std::vector<double> all(mine.size() * assignment_->working.size());
  if (engine_->works()) all = gather_values(engine_->working(), mine);
  if (std::ssize(assignment_->working) < world_.size()) share_with_spares(all);
  return all;
}

MovePlan Trainer::plan_adoption(const Assignment& next) {
  return plan_moves(*assignment_, next, state_->kinds().size(), hosts(),
                    config_.parallel.move_memory.bytes);
}

Adoption Trainer::adopt(Assignment next) {
  CONCERTINA_CHECK(next.world == world_.size(), "an assignment for {} ranks in a run with {}",
                   next.world, world_.size());
  const Watchdog::Patience patience(watchdog_, "changing the assignment");
  world_.barrier();
  const double start = now();
  adopted_ = true;
  auto coming = std::make_unique<const Assignment>(std::move(next));
  const std::size_t kinds = state_->kinds().size();
  const MovePlan plan = plan_adoption(*coming);
  // Frees the engine's memory first. If nothing moves, the next engine fits in the same arena.
  Arena arena;
  if (std::ranges::all_of(plan.rounds, [](const MoveRound& one) { return one.moves.empty(); }))
    arena = engine_->release_arena();
  engine_.reset();
  const double moving = now();
  redistribute(*state_, *coming, plan, tensors());
  const double moved = now();
  assignment_ = std::move(coming);
  engine_ = make_engine();
  start_engine(std::move(arena));
  refresh();
  backend_.synchronize();
  return {.seconds = now() - start,
          .move_seconds = moved - moving,
          .bytes = plan.bytes(kinds),
          .extra_bytes = *std::ranges::max_element(plan.extra_bytes)};
}

Adoption Trainer::adopt(Request asked, Assignment next) {
  const Adoption adoption = adopt(std::move(next));
  asked_ = std::move(asked);
  return adoption;
}

Request Trainer::asked_with_frozen(int units) const {
  Request request = asked_;
  request.frozen_units = units;
  if (!request.file) request.layout = assignment_->layout;
  request.spare = world_.size() - static_cast<int>(assignment_->working.size());
  return request;
}

const std::vector<double>& Trainer::evaluate(std::int64_t batch, int count, BatchSource& source,
                                             const std::function<void(int, View)>& see) {
  engine_->evaluate(batch, count, source, see);
  return engine_->executor().losses();
}

std::size_t Trainer::peak_bytes() const {
  return std::max(engine_peak_, state_ == nullptr ? 0 : state_->peak());
}

}  // namespace concertina
