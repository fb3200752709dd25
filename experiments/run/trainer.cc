#include "experiments/run/trainer.h"

#include <algorithm>

#include "core/memory.h"
#include "experiments/run/planning.h"
#include "models/initialize.h"
#include "models/model_stage.h"
#include "models/optimizer.h"
#include "parallel/comm/tensor_communicator.h"

namespace concertina {
namespace {

LrSchedule lr_of(const RunConfig& config, std::int64_t steps) {
  return make_lr_schedule(config.lr.schedule,
                          {config.optimizer.lr, steps, config.lr.warmup, config.lr.min});
}

}  // namespace

StageFactory stage_factory(const Model& model, Backend& backend) {
  return [&](const Assignment& assignment, const StagePlacement& stage) {
    return std::make_unique<ModelStage>(backend, model, assignment.buckets, stage.first_unit,
                                        stage.last_unit, assignment.frozen_units());
  };
}

std::unique_ptr<Optimizer> optimizer_of(const RunConfig& config) {
  const OptimizerSection& o = config.optimizer;
  return make_optimizer(o.name, {o.betas[0], o.betas[1], o.eps, o.weight_decay});
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
      lr_(lr_of(config, lr_steps(config))),
      assignment_(std::make_unique<Assignment>(assignment_of(config, job_, world.size(), launch))),
      engine_(make_engine()) {}

std::unique_ptr<StepEngine> Trainer::make_engine() {
  return std::make_unique<StepEngine>(job_, *assignment_, world_.rank(),
                                      stage_factory(*model_, backend_), *optimizer_,
                                      config_.optimizer.clip, backend_);
}

void Trainer::start() {
  const std::vector<std::string_view> names = optimizer_->state_names();
  state_ = std::make_unique<State>(*assignment_, world_.rank(),
                                   std::vector<std::string>(names.begin(), names.end()),
                                   backend_.memory());
  tensors_ = tensor_communicator(world_, backend_.memory(), config_.parallel.transport);
  start_engine();
}

void Trainer::start_engine() {
  engine_->start(*state_, {world_, tensors_ != nullptr ? *tensors_ : world_}, watchdog_);
  peak_bytes_ = std::max(peak_bytes_, state_->bytes() + engine_->arena().peak());
}

void Trainer::initialize() {
  const std::vector<View>& weights = state_->weights();
  for (std::size_t b = 0; b < weights.size(); ++b) {
    if (weights[b].empty()) continue;
    HostMirror mirror(backend_.memory(), weights[b]);
    if (watchdog_ != nullptr) watchdog_->beat();
    concertina::initialize(assignment_->buckets[b], model_seed(config_), 0,
                           {mirror.host().f32(), mirror.host().count});
    mirror.upload();
  }
  refresh();
}

void Trainer::set_lr_steps(std::int64_t steps) {
  lr_ = lr_of(config_, steps);
}

StepResult Trainer::step(std::int64_t step, BatchSource& source) {
  return engine_->train(step, lr_.rate(step), source);
}

const std::vector<double>& Trainer::evaluate(std::int64_t batch, int count, BatchSource& source,
                                             const std::function<void(int, View)>& see) {
  engine_->evaluate(batch, count, source, see);
  return engine_->executor().losses();
}

std::size_t Trainer::peak_bytes() const {
  return peak_bytes_;
}

}  // namespace concertina
