#include "parallel/runtime/update.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/index.h"

namespace concertina {

Update::Update(const Job& job, const Assignment& assignment, int rank, const Optimizer& optimizer,
               double clip, Backend& backend)
    : assignment_(assignment),
      rank_(rank),
      optimizer_(optimizer),
      clip_(clip),
      kinds_(optimizer.state_names().size()),
      check_(assignment, rank, kinds_),
      sums_(job, assignment, rank, check_),
      backend_(backend) {
  std::vector<const BucketTensor*> own;
  for (std::size_t b = 0; b < assignment.buckets.size(); ++b) {
    parts_.push_back(assignment.buckets[b].frozen ? nullptr : own_state(assignment, b, rank));
    runs_.push_back(parts_[b] == nullptr ? std::vector<TensorRun>()
                                         : tensor_runs(assignment.buckets[b], *parts_[b]));
    for (const TensorRun& run : runs_[b])
      own.push_back(&assignment.buckets[b].tensors[at(run.tensor)]);
  }
  tools_ = optimizer.tools(backend, own);
}

std::size_t Update::elements() const {
  std::size_t count = 0;
  for (const Part* part : parts_)
    if (part != nullptr) count += part->count();
  return count;
}

void Update::connect(State& state, Communicator& working, const Groups& groups,
                     Watchdog* watchdog) {
  state_ = &state;
  watchdog_ = watchdog;
  check_.connect(state, working);
  sums_.connect(working, backend_, watchdog);
  weights_.emplace(assignment_, rank_, state.weights(), groups);
}

StepResult Update::apply(const UpdateOf& update, const GradientExchange& gradients,
                         const std::vector<double>& losses, TraceRecorder& recorder) {
  marks_.start = recorder.mark();
  sums_.add_gradients(gradients);
  check_.compare(sums_.words(rank_));
  if (update.unread) sums_.words(rank_)[0] = StateCheck::kUnread;
  marks_.summed = recorder.mark();
  sums_.gather(losses);
  recorder.waited(WaitFor::ranks, {Kind::STEP, -1, -1}, marks_.summed);
  marks_.met = recorder.mark();
  if (watchdog_ != nullptr) watchdog_->at("update");
  StepResult result{.loss = sums_.mean_loss(update.targets),
                    .grad_norm = std::sqrt(sums_.total_squares()),
                    .lr = update.lr};
  const bool unread = std::ranges::any_of(assignment_.working, [this](int rank) {
    return sums_.words(rank)[0] == StateCheck::kUnread;
  });
  fault_ = unread ? StepFault{.kind = StepFault::Kind::data}
                  : check_.judge([this](int rank) { return sums_.words(rank); });
  if (!fault_ && !(std::isfinite(result.loss) && std::isfinite(result.grad_norm)))
    fault_ = sums_.not_finite(update.step);
  if (fault_) {
    result.fault = fault_.kind;
    marks_.updated = recorder.mark();
    return result;
  }
  UpdateStep rule{update.number, update.lr, clip_scale(result.grad_norm, clip_)};
  for (std::size_t b = 0; b < parts_.size(); ++b) {
    if (parts_[b] == nullptr || skipped_[b]) continue;
    rule.step = update.number - state_->missed()[b];
    if (parts_[b]->count() > 0) update_bucket(b, rule, gradients.reduced(static_cast<int>(b)));
    weights_->start(b);
  }
  marks_.updated = recorder.mark();
  if (watchdog_ != nullptr) watchdog_->at("gather of weights");
  weights_->wait();
  recorder.waited(WaitFor::weights, {Kind::STEP, -1, -1}, marks_.updated);
  check_.updated(update.step);
  return result;
}

UpdateTimes Update::times() const {
  const auto between = [this](double from, double to) {
    return backend_.clock().time(to) - backend_.clock().time(from);
  };
  return {between(marks_.start, marks_.summed), between(marks_.met, marks_.updated)};
}

void Update::update_bucket(std::size_t bucket, const UpdateStep& step, View gradient) {
  std::array<View, kMostStates> states;
  for (const TensorRun& run : runs_[bucket]) {
    const BucketTensor& tensor = assignment_.buckets[bucket].tensors[at(run.tensor)];
    if (!tensor.trains) continue;
    const std::size_t begin = run.begin - parts_[bucket]->begin, count = run.end - run.begin;
    for (std::size_t k = 0; k < kinds_; ++k)
      states[k] = state_->part(bucket, k).slice(begin, count);
    optimizer_.update(backend_, step,
                      {.w = state_->weights()[bucket].slice(run.begin, count),
                       .states = std::span(states).first(kinds_),
                       .g = gradient.slice(begin, count),
                       .decay = tensor.decay,
                       .tensor = &tensor,
                       .tools = tools_.get()});
  }
}

}  // namespace concertina
