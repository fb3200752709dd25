#include "experiments/run/rank_engine.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "core/clock.h"
#include "core/error.h"
#include "models/initialize.h"
#include "parallel/comm/tensor_communicator.h"

namespace concertina {
namespace {

std::vector<std::unique_ptr<ModelStage>> make_stages(const RunPlan& run, int rank,
                                                     Backend& backend) {
  std::vector<std::unique_ptr<ModelStage>> stages(
      static_cast<std::size_t>(run.layout.stage_count()));
  for (int s = 0; s < run.layout.stage_count(); ++s) {
    const StagePlacement& at = run.layout.stage(s);
    if (at.rank == rank)
      stages[static_cast<std::size_t>(s)] = std::make_unique<ModelStage>(
          backend, *run.model, run.buckets, at.first_unit, at.last_unit, run.layout.frozen_units);
  }
  return stages;
}

std::vector<Stage*> pointers(const std::vector<std::unique_ptr<ModelStage>>& stages) {
  std::vector<Stage*> result;
  for (const auto& stage : stages) result.push_back(stage.get());
  return result;
}

constexpr std::size_t kMarks = 6;  // of a step, by the update and the packing of weights

std::size_t rows_bytes(const RunPlan& run) {
  return align_up(static_cast<std::size_t>(run.microbatches * run.rows()) * sizeof(std::int32_t));
}

}  // namespace

std::size_t RankMemory::total() const {
  return std::accumulate(parts.begin(), parts.end(), std::size_t{0},
                         [](std::size_t sum, const Part& part) { return sum + part.bytes; });
}

RankEngine::RankEngine(const RunPlan& run, const RunConfig& config, int rank, Backend& backend)
    : run_(run),
      config_(config),
      rank_(rank),
      backend_(backend),
      stages_(make_stages(run, rank, backend)),
      exchange_(run.buckets, run.owners, run.layout, run.plan, rank, run.microbatches, run.leaves),
      update_(run, config, rank),
      executor_(run.layout, run.plan, pointers(stages_), rank, run.microbatches, backend.clock()),
      steps_(5) {
  backend.clock().reserve(kMarks);
}

RankMemory RankEngine::memory() const {
  std::size_t weights = 0, packed = 0, workspace = 0, frozen = 0;
  for (std::size_t b = 0; b < run_.buckets.size(); ++b)
    if (run_.owners[b].index_of(rank_) >= 0)
      weights += align_up(run_.buckets[b].elements * sizeof(float));
  for (const auto& stage : stages_) {
    if (stage == nullptr) continue;
    packed += align_up(stage->packed_bytes());
    workspace = std::max(workspace, stage->memory().workspace_bytes);
    frozen = std::max(frozen, stage->memory().frozen_bytes);
  }
  return {
      {{"weights", weights},
       {"packed weights", packed},
       {"optimizer state", update_.state_bytes()},
       {"gradients", exchange_.sum_bytes()},
       {"gradients received", exchange_.staging_bytes()},
       {"activations", executor_.saved_bytes()},
       {"stage boundaries", executor_.boundary_bytes()},
       {"workspace", align_up(workspace) + align_up(frozen) + align_up(backend_.workspace_bytes())},
       {"tokens", 2 * rows_bytes(run_)},
       {"losses", executor_.loss_bytes()}}};
}

void RankEngine::start(Communicator& world, Watchdog* watchdog) {
  world_ = &world;
  watchdog_ = watchdog;
  const RankMemory memory = this->memory();
  arena_.reserve(memory.total(), backend_.memory());
  weights_.resize(run_.buckets.size());
  for (std::size_t b = 0; b < run_.buckets.size(); ++b)
    if (run_.owners[b].index_of(rank_) >= 0)
      weights_[b] = arena_.take(run_.buckets[b].elements, DType::f32, "weights");
  std::size_t workspace = 0, frozen = 0;
  for (const auto& stage : stages_) {
    if (stage == nullptr) continue;
    stage->attach(weights_, arena_.take(stage->packed_bytes(), "packed weights"));
    workspace = std::max(workspace, stage->memory().workspace_bytes);
    frozen = std::max(frozen, stage->memory().frozen_bytes);
  }
  void* scratch = arena_.take(workspace, "stage workspace");
  void* frozen_scratch = arena_.take(frozen, "scratch of frozen units");
  for (const auto& stage : stages_)
    if (stage != nullptr) stage->set_workspace(scratch, frozen_scratch);
  backend_.set_workspace(arena_.take(backend_.workspace_bytes(), "kernel workspace"));
  update_.attach(arena_, weights_);
  exchange_.attach(arena_);
  executor_.attach(arena_, backend_.memory());
  const auto rows = static_cast<std::size_t>(run_.microbatches * run_.rows());
  input_.tokens = arena_.take(rows, DType::i32, "tokens");
  input_.targets = arena_.take(rows, DType::i32, "targets");
  tokens_ = HostMirror(backend_.memory(), input_.tokens);
  target_rows_ = HostMirror(backend_.memory(), input_.targets);
  CONCERTINA_CHECK(arena_.used() == memory.total(), "{} bytes taken of {} planned", arena_.used(),
                   memory.total());

  std::vector<std::vector<int>> holders;
  for (std::size_t b = 0; b < run_.buckets.size(); ++b)
    if (!run_.buckets[b].frozen) holders.push_back(run_.owners[b].ranks);
  tensors_ = tensor_communicator(world, backend_.memory(), config_.parallel.transport);
  Communicator& tensors = tensors_ != nullptr ? *tensors_ : world;
  groups_ = std::make_unique<Groups>(tensors, holders);
  exchange_.connect(*groups_, backend_);
  update_.connect(world, *groups_, backend_, watchdog);
  executor_.connect(tensors, exchange_, watchdog);
  executor_.on_step([this] {
    summary_ = update_.apply(step_, exchange_, executor_.losses(), targets_, executor_.recorder());
    refresh_trained();
  });
}

void RankEngine::initialize() {
  for (std::size_t b = 0; b < weights_.size(); ++b) {
    if (weights_[b].empty()) continue;
    HostMirror weights(backend_.memory(), weights_[b]);
    if (watchdog_ != nullptr) watchdog_->beat();
    concertina::initialize(run_.buckets[b], model_seed(config_), 0,
                           {weights.host().f32(), weights.host().count});
    weights.upload();
  }
  refresh();
}

void RankEngine::refresh() {
  for (const auto& stage : stages_)
    if (stage != nullptr) stage->refresh();
}

void RankEngine::refresh_trained() {
  refresh_start_ = backend_.clock().mark();
  executor_.unit_clock().start();
  for (const auto& stage : stages_)
    if (stage != nullptr) stage->refresh_trained();
  refresh_end_ = backend_.clock().mark();
}

/// Only what this rank's first and last stages read.
void RankEngine::load(std::int64_t batch, int count, BatchSource& source) {
  const auto rows = static_cast<std::size_t>(run_.rows());
  for (const Pipeline& pipeline : run_.layout.pipelines) {
    const bool first = pipeline.stages.front().rank == rank_;
    const bool last = pipeline.stages.back().rank == rank_;
    const int end = std::min(pipeline.last_microbatch, count);
    const int n = end - pipeline.first_microbatch;
    if ((!first && !last) || n <= 0) continue;
    const std::size_t from = static_cast<std::size_t>(pipeline.first_microbatch) * rows;
    const std::size_t length = static_cast<std::size_t>(n) * rows;
    const auto part = [&](bool wanted, View all) {
      return wanted ? all.slice(from, length) : View{};
    };
    source.load(batch, pipeline.first_microbatch * run_.samples, n * run_.samples,
                part(first, tokens_.host()), part(last, target_rows_.host()));
    if (first) tokens_.upload(from, length);
    if (last) target_rows_.upload(from, length);
  }
}

StepSummary RankEngine::train(std::int64_t step, BatchSource& source) {
  step_ = step;
  executor_.begin_step(step);
  targets_ = static_cast<double>(source.valid_targets(step - 1, run_.microbatches * run_.samples));
  CONCERTINA_CHECK(targets_ > 0, "step {} has no target to learn from", step);
  const double start = now();
  load(step - 1, run_.microbatches, source);
  const double load_seconds = now() - start;
  input_.loss_scale = static_cast<float>(1.0 / targets_);
  input_.seed = static_cast<std::uint64_t>(config_.run.seed);
  input_.step = step;
  executor_.run(input_);
  executor_.end_step();
  record_step(load_seconds);
  return summary_;
}

void RankEngine::record_step(double load_seconds) {
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

RankCosts RankEngine::step_costs() const {
  const std::vector<double> means = steps_.typical();
  return {means[0], means[1], means[2], means[3]};
}

double RankEngine::post_seconds() const {
  return steps_.typical()[4];
}

double RankEngine::evaluate(std::int64_t batch, int count, BatchSource& source,
                            const std::function<void(int, View)>& see) {
  load(batch, count, source);
  executor_.evaluate(input_, count, see);
  double sum = 0;
  for (const double loss : executor_.losses()) sum += loss;
  return sum;
}

}  // namespace concertina
