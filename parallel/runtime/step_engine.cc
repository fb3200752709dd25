#include "parallel/runtime/step_engine.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "core/clock.h"
#include "core/error.h"
#include "core/failpoint.h"

namespace concertina {
namespace {

std::vector<std::unique_ptr<Stage>> make_stages(const Assignment& assignment, int rank,
                                                const StageFactory& make) {
  const std::vector<StagePlacement> placements = assignment.layout.stages();
  std::vector<std::unique_ptr<Stage>> stages(placements.size());
  for (std::size_t s = 0; s < stages.size(); ++s)
    if (placements[s].rank == rank) stages[s] = make(assignment, placements[s]);
  return stages;
}

std::vector<Stage*> pointers(const std::vector<std::unique_ptr<Stage>>& stages) {
  std::vector<Stage*> result;
  for (const auto& stage : stages) result.push_back(stage.get());
  return result;
}

constexpr std::size_t kMarks = 6;  // used per step by the update and the packing of weights

/// Scratch shared by the stages of a rank and its update, which follows all of them.
struct Scratch {
  std::size_t workspace = 0, forward = 0;
};

Scratch scratch_of(const std::vector<std::unique_ptr<Stage>>& stages, const Update& update) {
  Scratch most{.workspace = update.scratch_bytes()};
  for (const auto& stage : stages) {
    if (stage == nullptr) continue;
    most.workspace = std::max(most.workspace, stage->memory().workspace_bytes);
    most.forward = std::max(most.forward, stage->memory().forward_bytes);
  }
  return most;
}

}  // namespace

std::size_t RankMemory::total() const {
  return std::accumulate(parts.begin(), parts.end(), std::size_t{0},
                         [](std::size_t sum, const Purpose& one) { return sum + one.bytes; });
}

StepEngine::StepEngine(const Job& job, const Assignment& assignment, int rank,
                       const StageFactory& make_stage, const Optimizer& optimizer, double clip,
                       Backend& backend)
    : job_(job),
      assignment_(assignment),
      rank_(rank),
      kinds_(state_kinds(job, optimizer).size()),
      backend_(backend),
      works_(assignment.works(rank)),
      stages_(make_stages(assignment, rank, make_stage)),
      exchange_(job, assignment, rank),
      update_(job, assignment, rank, optimizer, clip, backend),
      executor_(assignment.layout, assignment.plan, pointers(stages_), rank,
                assignment.microbatches(job), backend.clock()),
      batch_(job, assignment.layout, rank, assignment.batches),
      steps_(5) {
  backend.clock().reserve(kMarks);
}

StepEngine::~StepEngine() {
  backend_.forget_operators();
}

RankMemory StepEngine::memory() const {
  const StateBytes state = state_bytes(assignment_, rank_, kinds_);
  const Scratch scratch = scratch_of(stages_, update_);
  std::size_t packed = 0;
  for (const auto& stage : stages_)
    if (stage != nullptr) packed += align_up(stage->packed_bytes());
  return {{{"weights", state.weights},
           {"packed weights", packed},
           {"optimizer state", state.optimizer},
           {"gradients", exchange_.sum_bytes()},
           {"gradients received", exchange_.staging_bytes()},
           {"activations", executor_.saved_bytes()},
           {"stage boundaries", executor_.boundary_bytes()},
           {"workspace", align_up(scratch.workspace) + align_up(scratch.forward) +
                             align_up(backend_.workspace_bytes())},
           {"batch", batch_.bytes()},
           {"losses", executor_.loss_bytes()}}};
}

void StepEngine::start(State& state, Communicators ranks, Watchdog* watchdog, Arena arena) {
  watchdog_ = watchdog;
  arena_ = std::move(arena);
  attach(state);
  connect(state, ranks);
}

void StepEngine::attach(State& state) {
  const std::size_t planned = memory().total() - state_bytes(assignment_, rank_, kinds_).total();
  if (!arena_.renew(planned)) {
    arena_ = Arena();  // first, because memory may not suffice for both
    arena_.reserve(planned, backend_.memory());
  }
  for (const auto& stage : stages_)
    if (stage != nullptr)
      stage->attach(state.weights(), arena_.take(stage->packed_bytes(), "packed weights"));
  const Scratch scratch = scratch_of(stages_, update_);
  void* workspace = arena_.take(scratch.workspace, "stage workspace");
  void* forward = arena_.take(scratch.forward, "scratch of forward passes");
  for (const auto& stage : stages_)
    if (stage != nullptr) stage->set_workspace(workspace, forward);
  update_.set_scratch(workspace);
  backend_.set_workspace(arena_.take(backend_.workspace_bytes(), "kernel workspace"));
  exchange_.attach(arena_);
  executor_.attach(arena_, backend_.memory());
  batch_.attach(arena_, backend_.memory());
  CONCERTINA_CHECK(arena_.used() == planned, "{} bytes taken of {} planned", arena_.used(),
                   planned);
}

void StepEngine::connect(State& state, Communicators ranks) {
  if (std::ssize(assignment_.working) < ranks.world.size())
    working_group_ = ranks.world.split(works_ ? 0 : 1, rank_);
  working_ = working_group_ != nullptr ? working_group_.get() : &ranks.world;
  groups_ = std::make_unique<Groups>(ranks.tensors, assignment_);
  exchange_.connect(*groups_, backend_);
  executor_.connect(ranks.tensors, exchange_, watchdog_);
  if (works_) update_.connect(state, *working_, *groups_, watchdog_);
}

void StepEngine::refresh() {
  update_.check().forget();
  pack();
}

std::vector<std::string> StepEngine::repair() {
  std::vector<std::string> names = update_.check().repair(update_.fault());
  pack();
  return names;
}

void StepEngine::pack() {
  for (const auto& stage : stages_)
    if (stage != nullptr) stage->refresh();
}

void StepEngine::refresh_trained() {
  refresh_start_ = backend_.clock().mark();
  executor_.unit_clock().start();
  for (const auto& stage : stages_)
    if (stage != nullptr) stage->refresh_trained();
  refresh_end_ = backend_.clock().mark();
}

void StepEngine::skip(SkippedBuckets skipped) {
  for (const auto& stage : stages_)
    if (stage != nullptr) stage->skip(skipped);
  exchange_.skip(skipped);
  update_.skip(skipped);
}

/// Number of targets of one step that starts with batch `batch`.
double StepEngine::valid_targets(std::int64_t batch, const BatchSource& source) const {
  std::int64_t targets = 0;
  for (int b = 0; b < assignment_.batches; ++b)
    targets += source.valid_targets(batch + b, job_.batch());
  return static_cast<double>(targets);
}

StepResult StepEngine::train(std::int64_t step, std::int64_t update_number, double lr,
                             BatchSource& source, FrozenOutputs* frozen) {
  executor_.begin_step(step);
  if (!works_) return executor_.end_step(), StepResult{};  // an empty record
  update_.check().begin(step);
  const double targets = valid_targets(step - 1, source);
  CONCERTINA_CHECK(targets > 0, "step {} has no target", step);
  const double start = now();
  load("unread", step - 1, assignment_.microbatches(job_), source);
  const double load_seconds = now() - start;
  StepResult result;
  const auto update = [&] {
    result = update_.apply({.step = step,
                            .number = update_number,
                            .lr = lr,
                            .targets = targets,
                            .unread = unread_.has_value()},
                           exchange_, executor_.losses(), executor_.recorder());
    refresh_trained();
  };
  executor_.run({.batch = &batch_,
                 .loss_scale = static_cast<float>(1.0 / targets),
                 .seed = job_.seed,
                 .step = step,
                 .frozen = frozen},
                std::ref(update));  // by reference, so std::function does not allocate
  executor_.end_step();
  record_step(load_seconds);
  return result;
}

void StepEngine::load(const char* fault, std::int64_t batch, int count, BatchSource& source) {
  unread_.reset();
  try {
    if (failpoint(fault, {{"step", batch + 1}, {"rank", rank_}}))
      throw_input("a sample cannot be read", fmt::format("rank {}", rank_), "no such failpoint");
    batch_.load(batch, count, source);
  } catch (const Error& error) {
    unread_ = error;
    batch_.blank();
  }
}

void StepEngine::evaluate(std::int64_t batch, int count, BatchSource& source,
                          const std::function<void(int, View)>& see) {
  load("unread-held-out", batch, count, source);
  executor_.evaluate({.batch = &batch_, .seed = job_.seed}, count, see);
}

void StepEngine::record_step(double load_seconds) {
  double post = 0;
  int posts = 0;
  for (std::size_t i = 0; i < executor_.row().size(); ++i) {
    if (!is_transfer(executor_.row()[i].kind)) continue;
    post += executor_.times()[i].end - executor_.times()[i].start;
    ++posts;
  }
  const UpdateTimes update = update_.times();
  const KernelClock& clock = backend_.clock();
  const double refresh = clock.time(refresh_end_) - clock.time(refresh_start_);
  steps_.record(std::array{load_seconds, update.norm, update.update, refresh,
                           posts > 0 ? post / posts : 0.0});
}

StepSeconds StepEngine::seconds() const {
  const std::vector<double> means = steps_.typical();
  return {means[0], means[1], means[2], means[3], means[4]};
}

}  // namespace concertina
