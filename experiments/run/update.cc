#include "experiments/run/update.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/index.h"

namespace concertina {
Update::Update(const RunPlan& run, const RunConfig& config, int rank)
    : run_(run),
      clip_(config.optimizer.clip),
      rank_(rank),
      optimizer_(make_optimizer(config.optimizer.name,
                                {config.optimizer.betas[0], config.optimizer.betas[1],
                                 config.optimizer.eps, config.optimizer.weight_decay})),
      lr_(make_lr_schedule(config.lr.schedule, {config.optimizer.lr, config.run.steps,
                                                config.lr.warmup, config.lr.min})),
      names_(optimizer_->state_names()) {
  CONCERTINA_CHECK(names_.size() <= kMaxStates, "{} optimizer states", names_.size());
  loss_rank_.resize(at(run.microbatches));
  for (const Pipeline& pipeline : run.layout.pipelines)
    for (int m = pipeline.first_microbatch; m < pipeline.last_microbatch; ++m)
      loss_rank_[at(m)] = pipeline.stages.back().rank;
  sums_begin_.push_back(0);
  for (int r = 0; r < run.world; ++r) {
    std::size_t count = 0;
    for (const int rank_of_loss : loss_rank_) count += rank_of_loss == r ? 1 : 0;
    losses_.push_back(count);
    for (std::size_t b = 0; b < run.buckets.size(); ++b)
      if (const int i = run.owners[b].index_of(r); i >= 0 && !run.buckets[b].frozen)
        count += run.owners[b].parts[at(i)].last_block - run.owners[b].parts[at(i)].first_block;
    sums_begin_.push_back(sums_begin_.back() + count);
  }
  sums_.resize(sums_begin_.back());
  for (int r = 0; r < run.world; ++r)
    messages_.push_back(std::as_writable_bytes(
        std::span(sums_).subspan(sums_begin_[at(r)], sums_begin_[at(r) + 1] - sums_begin_[at(r)])));
  for (std::size_t b = 0; b < run.buckets.size(); ++b) {
    me_.push_back(run.buckets[b].frozen ? -1 : run.owners[b].index_of(rank));
    runs_.push_back(me_[b] < 0 ? std::vector<TensorRun>()
                               : tensor_runs(run.buckets[b], own_part(b)));
  }
  states_.resize(run.buckets.size());
  for (const Bucket& bucket : run.buckets) {
    block_tensor_.emplace_back();
    for (const Block& block : make_blocks(bucket)) block_tensor_.back().push_back(block.tensor);
  }
  cursors_.resize(at(run.world));
}

const Part& Update::own_part(std::size_t bucket) const {
  return run_.owners[bucket].parts[at(me_[bucket])];
}

std::size_t Update::state_bytes() const {
  std::size_t bytes = 0;
  for (std::size_t b = 0; b < me_.size(); ++b)
    if (me_[b] >= 0) bytes += names_.size() * align_up(own_part(b).count() * sizeof(float));
  return bytes;
}

std::size_t Update::elements() const {
  std::size_t count = 0;
  for (std::size_t b = 0; b < me_.size(); ++b)
    if (me_[b] >= 0) count += own_part(b).count();
  return count;
}

void Update::attach(Arena& arena, std::vector<View> weights) {
  weights_ = std::move(weights);
  weight_parts_.resize(weights_.size());
  for (std::size_t b = 0; b < me_.size(); ++b) {
    if (me_[b] < 0) continue;
    for (std::size_t s = 0; s < names_.size(); ++s)
      states_[b][s] = arena.take(own_part(b).count(), DType::f32, "optimizer state");
    for (const Part& part : run_.owners[b].parts)
      weight_parts_[b].push_back(bytes_of(weights_[b].slice(part.begin, part.count())));
  }
}

void Update::connect(Communicator& world, const Groups& groups, Backend& backend) {
  world_ = &world;
  backend_ = &backend;
  for (std::size_t b = 0; b < run_.owners.size(); ++b)
    groups_.push_back(run_.buckets[b].frozen ? nullptr : groups.find(run_.owners[b].ranks));
  works_.reserve(groups_.size());
  world.reserve(0, 1);
  for (Communicator* group : groups_)
    if (group != nullptr)
      group->reserve(0,
                     static_cast<std::size_t>(std::count(groups_.begin(), groups_.end(), group)));
}

StepSummary Update::apply(std::int64_t step, const GradientExchange& gradients,
                          const std::vector<double>& losses, double targets,
                          TraceRecorder& recorder) {
  marks_.start = recorder.mark();
  fill_sums(gradients, losses);
  gather_sums(recorder);
  marks_.met = recorder.mark();
  const StepSummary summary = summarize(step, targets);
  const UpdateStep rule{step, summary.lr, clip_scale(summary.grad_norm, clip_)};
  for (std::size_t b = 0; b < me_.size(); ++b) {
    if (me_[b] < 0) continue;
    if (own_part(b).count() > 0) update_part(b, rule, gradients.reduced(static_cast<int>(b)));
    gather_weights(b);
  }
  marks_.updated = recorder.mark();
  for (Work& work : works_) work.wait();
  recorder.waited(WaitFor::weights, {Kind::STEP, -1, -1}, marks_.updated);
  works_.clear();
  return summary;
}

UpdateTimes Update::times() const {
  const auto between = [this](double from, double to) {
    return backend_->clock().time(to) - backend_->clock().time(from);
  };
  return {between(marks_.start, marks_.summed), between(marks_.met, marks_.updated)};
}

void Update::fill_sums(const GradientExchange& gradients, const std::vector<double>& losses) {
  std::size_t next = sums_begin_[at(rank_)];
  for (std::size_t m = 0; m < losses.size(); ++m)
    if (loss_rank_[m] == rank_) sums_[next++] = losses[m];
  for (std::size_t b = 0; b < me_.size(); ++b) {
    if (me_[b] < 0) continue;
    const Part& part = own_part(b);
    for (const TensorRun& run : runs_[b]) {
      const View g =
          gradients.reduced(static_cast<int>(b)).slice(run.begin - part.begin, run.end - run.begin);
      const std::size_t blocks = (g.count + kBlock - 1) / kBlock;
      backend_->sum_squares(g, kBlock, std::span(sums_).subspan(next, blocks));
      next += blocks;
    }
  }
  backend_->synchronize();
  CONCERTINA_CHECK(next == sums_begin_[at(rank_) + 1], "{} sums, {} expected", next,
                   sums_begin_[at(rank_) + 1]);
}

void Update::gather_sums(TraceRecorder& recorder) {
  marks_.summed = recorder.mark();
  world_->all_gather(messages_[at(rank_)], messages_).wait();
  recorder.waited(WaitFor::ranks, {Kind::STEP, -1, -1}, marks_.summed);
}

StepSummary Update::summarize(std::int64_t step, double targets) {
  StepSummary summary;
  std::copy(sums_begin_.begin(), sums_begin_.end() - 1, cursors_.begin());
  for (int m = 0; m < run_.microbatches; ++m) {
    const double loss = sums_[cursors_[at(loss_rank_[at(m)])]++];
    if (!std::isfinite(loss))
      throw_failure(fmt::format("the loss of step {} is {}", step, loss),
                    fmt::format("rank {}, microbatch {}", loss_rank_[at(m)], m),
                    "a lower optimizer.lr or a longer lr.warmup; the last checkpoint is kept");
    summary.loss += loss;
  }
  summary.loss /= targets;
  summary.grad_norm = std::sqrt(total_squares(step));
  summary.lr = lr_.rate(step);
  return summary;
}

double Update::total_squares(std::int64_t step) {
  std::vector<std::size_t>& next = cursors_;
  for (int r = 0; r < run_.world; ++r) next[at(r)] = sums_begin_[at(r)] + losses_[at(r)];
  double total = 0;
  for (std::size_t b = 0; b < run_.buckets.size(); ++b) {
    if (run_.buckets[b].frozen) continue;
    int tensor = -1;
    double sum = 0;
    const BucketOwners& owners = run_.owners[b];
    std::size_t block = 0;
    for (std::size_t i = 0; i < owners.ranks.size(); ++i)
      for (; block < owners.parts[i].last_block; ++block) {
        const double square = sums_[next[at(owners.ranks[i])]++];
        if (!std::isfinite(square))
          throw_failure(fmt::format("the gradient of step {} is not finite", step),
                        fmt::format("rank {}, tensor {}", owners.ranks[i],
                                    run_.buckets[b].tensors[at(block_tensor_[b][block])].name),
                        "a lower optimizer.lr or a longer lr.warmup; the last checkpoint is kept");
        if (block_tensor_[b][block] != tensor) {
          total += sum;
          sum = 0;
          tensor = block_tensor_[b][block];
        }
        sum += square;
      }
    total += sum;
  }
  return total;
}

void Update::update_part(std::size_t bucket, const UpdateStep& step, View gradient) {
  const Part& part = own_part(bucket);
  for (const TensorRun& run : runs_[bucket]) {
    const std::size_t begin = run.begin - part.begin, count = run.end - run.begin;
    std::array<View, kMaxStates> states;
    for (std::size_t s = 0; s < names_.size(); ++s)
      states[s] = states_[bucket][s].slice(begin, count);
    optimizer_->update(*backend_, step, run_.buckets[bucket].tensors[at(run.tensor)].decay,
                       weights_[bucket].slice(run.begin, count),
                       std::span(states).first(names_.size()), gradient.slice(begin, count));
  }
}

void Update::gather_weights(std::size_t bucket) {
  if (groups_[bucket] == nullptr) return;
  const std::vector<Bytes>& parts = weight_parts_[bucket];
  works_.push_back(groups_[bucket]->all_gather(parts[at(me_[bucket])], parts));
}

}  // namespace concertina
