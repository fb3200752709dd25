#include "experiments/run/update.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/error.h"
#include "core/exchange_order.h"
#include "core/index.h"
#include "core/number_text.h"

namespace concertina {
Update::Update(const RunPlan& run, const RunConfig& config, int rank)
    : run_(run),
      clip_(config.optimizer.clip),
      rank_(rank),
      optimizer_(make_optimizer(config.optimizer.name,
                                {config.optimizer.betas[0], config.optimizer.betas[1],
                                 config.optimizer.eps, config.optimizer.weight_decay})),
      lr_name_(config.lr.schedule),
      lr_config_{config.optimizer.lr, lr_steps(config), config.lr.warmup, config.lr.min},
      lr_(make_lr_schedule(lr_name_, lr_config_)),
      names_(optimizer_->state_names()) {
  CONCERTINA_CHECK(names_.size() <= kMaxStates, "{} optimizer states", names_.size());
  for (std::size_t b = 0; b < run.buckets.size(); ++b) {
    me_.push_back(run.buckets[b].frozen ? -1 : run.owners[b].index_of(rank));
    runs_.push_back(me_[b] < 0 ? std::vector<TensorRun>()
                               : tensor_runs(run.buckets[b], own_part(b)));
  }
  states_.resize(run.buckets.size());
}

/// Each rank's message: the losses of its last stages, then the sums of the buckets that it is the
/// first owner of.
void Update::place_sums() {
  loss_rank_.resize(at(run_.microbatches));
  for (const Pipeline& pipeline : run_.layout.pipelines)
    for (int m = pipeline.first_microbatch; m < pipeline.last_microbatch; ++m)
      loss_rank_[at(m)] = pipeline.stages.back().rank;
  std::vector<std::size_t> count(at(run_.world), 0);  // by rank, so far
  for (const int rank : loss_rank_) loss_at_.push_back(count[at(rank)]++);
  for (std::size_t b = 0; b < run_.buckets.size(); ++b) {
    std::size_t& next = count[at(run_.owners[b].ranks[0])];
    tensors_at_.push_back(next);
    if (!run_.buckets[b].frozen) next += run_.buckets[b].tensors.size();
  }
  sums_begin_.push_back(0);
  for (const std::size_t one : count) sums_begin_.push_back(sums_begin_.back() + one);
  sums_.resize(sums_begin_.back());
  for (int r = 0; r < run_.world; ++r)
    messages_.push_back(
        std::as_writable_bytes(std::span(sums_).subspan(sums_begin_[at(r)], count[at(r)])));
  for (std::size_t m = 0; m < loss_at_.size(); ++m) loss_at_[m] += sums_begin_[at(loss_rank_[m])];
  for (std::size_t b = 0; b < run_.buckets.size(); ++b)
    tensors_at_[b] += sums_begin_[at(run_.owners[b].ranks[0])];
}

/// What goes between two ranks is one message, bucket after bucket.
void Update::place_squares() {
  std::map<int, std::vector<std::size_t>> to;  // first owner -> buckets
  std::map<int, std::vector<std::pair<std::size_t, std::size_t>>>
      from;  // owner -> bucket, its index
  own_squares_.resize(run_.buckets.size());
  all_squares_.resize(run_.buckets.size());
  for (std::size_t b = 0; b < run_.buckets.size(); ++b) {
    if (me_[b] < 0) continue;
    const std::vector<int>& ranks = run_.owners[b].ranks;
    if (me_[b] > 0) to[ranks[0]].push_back(b);
    if (me_[b] > 0) continue;
    all_squares_[b].resize(ranks.size());
    for (std::size_t i = 0; i < ranks.size(); ++i) from[ranks[i]].emplace_back(b, i);
  }
  struct Message {
    int peer;
    std::size_t begin, end;
  };
  std::vector<Message> sends, receives;
  std::size_t next = 0;
  for (const auto& [peer, buckets] : to) {
    sends.push_back({peer, next, 0});
    for (const std::size_t b : buckets) {
      own_squares_[b] = next;
      next += blocks_of(b, at(me_[b]));
    }
    sends.back().end = next;
  }
  for (const auto& [peer, buckets] : from) {
    receives.push_back({peer, next, 0});
    for (const auto& [b, i] : buckets) {
      all_squares_[b][i] = next;
      if (peer == rank_) own_squares_[b] = next;
      next += blocks_of(b, i);
    }
    receives.back().end = next;
    if (peer == rank_) receives.pop_back();
  }
  squares_.resize(next);
  const auto bytes = [&](const Message& one) {
    return std::as_writable_bytes(std::span(squares_).subspan(one.begin, one.end - one.begin));
  };
  // One message to or from a peer at most; in the order in which exchanges are posted.
  std::ranges::sort(sends, {},
                    [&](const Message& one) { return exchange_step(rank_, one.peer, run_.world); });
  std::ranges::sort(receives, {},
                    [&](const Message& one) { return exchange_step(one.peer, rank_, run_.world); });
  for (const Message& one : sends) square_sends_.push_back({bytes(one), one.peer});
  for (const Message& one : receives) square_receives_.push_back({bytes(one), one.peer});
}

std::size_t Update::blocks_of(std::size_t bucket, std::size_t owner) const {
  const Part& part = run_.owners[bucket].parts[owner];
  return part.last_block - part.first_block;
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

void Update::set_lr_steps(std::int64_t steps) {
  lr_config_.steps = steps;
  lr_ = make_lr_schedule(lr_name_, lr_config_);
}

void Update::connect(Communicator& world, const Groups& groups, Backend& backend,
                     Watchdog* watchdog) {
  world_ = &world;
  watchdog_ = watchdog;
  backend_ = &backend;
  place_sums();
  place_squares();
  for (std::size_t b = 0; b < run_.owners.size(); ++b)
    groups_.push_back(run_.buckets[b].frozen ? nullptr : groups.find(run_.owners[b].ranks));
  works_.reserve(groups_.size());
  world.reserve(0, 2, square_sends_.size() + square_receives_.size());
  for (Communicator* group : groups_)
    if (group != nullptr)
      group->reserve(0,
                     static_cast<std::size_t>(std::count(groups_.begin(), groups_.end(), group)));
}

StepSummary Update::apply(std::int64_t step, const GradientExchange& gradients,
                          const std::vector<double>& losses, double targets,
                          TraceRecorder& recorder) {
  marks_.start = recorder.mark();
  fill_squares(gradients);
  gather_sums(losses, recorder);
  marks_.met = recorder.mark();
  if (watchdog_ != nullptr) watchdog_->at("update");
  const StepSummary summary = summarize(step, targets);
  const UpdateStep rule{step, summary.lr, clip_scale(summary.grad_norm, clip_)};
  for (std::size_t b = 0; b < me_.size(); ++b) {
    if (me_[b] < 0) continue;
    if (own_part(b).count() > 0) update_part(b, rule, gradients.reduced(static_cast<int>(b)));
    gather_weights(b);
  }
  marks_.updated = recorder.mark();
  if (watchdog_ != nullptr) watchdog_->at("gather of weights");
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

void Update::fill_squares(const GradientExchange& gradients) {
  for (std::size_t b = 0; b < me_.size(); ++b) {
    if (me_[b] < 0) continue;
    const Part& part = own_part(b);
    std::size_t next = own_squares_[b];
    for (const TensorRun& run : runs_[b]) {
      const View g =
          gradients.reduced(static_cast<int>(b)).slice(run.begin - part.begin, run.end - run.begin);
      const std::size_t blocks = (g.count + kBlock - 1) / kBlock;
      backend_->sum_squares(g, kBlock, std::span(squares_).subspan(next, blocks));
      next += blocks;
    }
    CONCERTINA_CHECK(next == own_squares_[b] + blocks_of(b, at(me_[b])), "bucket {}: {} squares", b,
                     next - own_squares_[b]);
  }
  backend_->synchronize();
}

/// The sum of each tensor of a bucket: block after block, whoever owns them.
void Update::add_squares(std::size_t bucket) {
  std::size_t owner = 0, left = blocks_of(bucket, 0), next = all_squares_[bucket][0];
  std::size_t sum_at = tensors_at_[bucket];
  for (const BucketTensor& tensor : run_.buckets[bucket].tensors) {
    double sum = 0;
    for (std::size_t block = 0; block < block_count(tensor); ++block, --left) {
      while (left == 0) {
        left = blocks_of(bucket, ++owner);
        next = all_squares_[bucket][owner];
      }
      sum += squares_[next++];
    }
    sums_[sum_at++] = sum;
  }
}

void Update::gather_sums(const std::vector<double>& losses, TraceRecorder& recorder) {
  marks_.summed = recorder.mark();
  if (watchdog_ != nullptr) watchdog_->at("gather of norms and losses");
  world_->exchange(square_sends_, square_receives_).wait();
  for (std::size_t b = 0; b < me_.size(); ++b)
    if (me_[b] == 0) add_squares(b);
  for (std::size_t m = 0; m < loss_rank_.size(); ++m)
    if (loss_rank_[m] == rank_) sums_[loss_at_[m]] = losses[m];
  world_->all_gather(messages_[at(rank_)], messages_).wait();
  recorder.waited(WaitFor::ranks, {Kind::STEP, -1, -1}, marks_.summed);
}

StepSummary Update::summarize(std::int64_t step, double targets) {
  StepSummary summary;
  for (int m = 0; m < run_.microbatches; ++m) {
    const double loss = sums_[loss_at_[at(m)]];
    if (!std::isfinite(loss))
      throw_failure(fmt::format("the loss of step {} is {}", step, number_text(loss)),
                    fmt::format("rank {}, microbatch {}", loss_rank_[at(m)], m), kDivergedAdvice);
    summary.loss += loss;
  }
  summary.loss /= targets;
  summary.grad_norm = std::sqrt(total_squares(step));
  summary.lr = lr_.rate(step);
  return summary;
}

double Update::total_squares(std::int64_t step) {
  double total = 0;
  for (std::size_t b = 0; b < run_.buckets.size(); ++b) {
    if (run_.buckets[b].frozen) continue;
    for (std::size_t t = 0; t < run_.buckets[b].tensors.size(); ++t) {
      const double sum = sums_[tensors_at_[b] + t];
      if (!std::isfinite(sum))
        throw_failure(fmt::format("the gradient of step {} is not finite", step),
                      fmt::format("tensor {}, which rank {} added up",
                                  run_.buckets[b].tensors[t].name, run_.owners[b].ranks[0]),
                      kDivergedAdvice);
      total += sum;
    }
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
