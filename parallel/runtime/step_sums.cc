#include "parallel/runtime/step_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/error.h"
#include "core/index.h"
#include "core/model/exchange_order.h"
#include "core/text/number_text.h"

namespace concertina {

StepSums::StepSums(const Job& job, const Assignment& assignment, int rank, const StateCheck& check)
    : job_(job), assignment_(assignment), check_(check), rank_(rank) {
  for (std::size_t b = 0; b < assignment.buckets.size(); ++b) {
    const int owner = assignment.owners[b].index_of(rank);
    me_.push_back(assignment.buckets[b].frozen ? -1 : owner);
    runs_.push_back(
        me_[b] < 0 ? std::vector<TensorRun>()
                   : tensor_runs(assignment.buckets[b], assignment.owners[b].parts[at(owner)]));
  }
}

void StepSums::connect(Communicator& working, Backend& backend, Watchdog* watchdog) {
  working_ = &working;
  backend_ = &backend;
  watchdog_ = watchdog;
  place_sums();
  place_squares();
  bucket_squares_.resize(assignment_.buckets.size());
  working.reserve(0, 2, square_sends_.size() + square_receives_.size());
}

/// Lays out each rank's message: losses of its last stages, sums of the buckets of which it is the
/// first owner, and the values of its state check.
void StepSums::place_sums() {
  loss_rank_.resize(at(assignment_.microbatches(job_)));
  for (const Pipeline& pipeline : assignment_.layout.pipelines)
    for (int m = pipeline.first_microbatch; m < pipeline.last_microbatch; ++m)
      loss_rank_[at(m)] = pipeline.stages.back().rank;
  std::vector<std::size_t> count(assignment_.working.size(), 0);  // by working rank, so far
  const auto index = [&](int rank) { return at(assignment_.working_index(rank)); };
  for (const int rank : loss_rank_) loss_at_.push_back(count[index(rank)]++);
  for (std::size_t b = 0; b < assignment_.buckets.size(); ++b) {
    std::size_t& next = count[index(assignment_.owners[b].ranks[0])];
    tensors_at_.push_back(next);
    if (!assignment_.buckets[b].frozen) next += assignment_.buckets[b].tensors.size();
  }
  for (const int rank : assignment_.working) {
    words_at_.push_back(count[index(rank)]);
    count[index(rank)] += check_.words(rank);
  }
  sums_begin_.push_back(0);
  for (const std::size_t one : count) sums_begin_.push_back(sums_begin_.back() + one);
  sums_.resize(sums_begin_.back());
  for (std::size_t r = 0; r < count.size(); ++r) words_at_[r] += sums_begin_[r];
  for (std::size_t r = 0; r < count.size(); ++r)
    messages_.push_back(std::as_writable_bytes(std::span(sums_).subspan(sums_begin_[r], count[r])));
  for (std::size_t m = 0; m < loss_at_.size(); ++m)
    loss_at_[m] += sums_begin_[index(loss_rank_[m])];
  for (std::size_t b = 0; b < assignment_.buckets.size(); ++b)
    tensors_at_[b] += sums_begin_[index(assignment_.owners[b].ranks[0])];
}

/// Lays out the squares: one message per pair of ranks, bucket after bucket.
void StepSums::place_squares() {
  std::map<int, std::vector<std::size_t>> to;  // first owner -> buckets
  std::map<int, std::vector<std::pair<std::size_t, std::size_t>>>
      from;  // owner -> bucket and owner index
  own_squares_.resize(assignment_.buckets.size());
  all_squares_.resize(assignment_.buckets.size());
  for (std::size_t b = 0; b < assignment_.buckets.size(); ++b) {
    if (me_[b] < 0) continue;
    const std::vector<int>& ranks = assignment_.owners[b].ranks;
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
  const int me = assignment_.working_index(rank_), size = working_->size();
  const auto index = [&](const Message& one) { return assignment_.working_index(one.peer); };
  // At most one message per peer.
  for (const Message& one : sends)
    square_sends_.push_back({bytes(one), index(one), exchange_step(me, index(one), size)});
  for (const Message& one : receives)
    square_receives_.push_back({bytes(one), index(one), exchange_step(index(one), me, size)});
  std::ranges::sort(square_sends_, {}, &Send::step);
  std::ranges::sort(square_receives_, {}, &Receive::step);
}

std::size_t StepSums::blocks_of(std::size_t bucket, std::size_t owner) const {
  const Part& part = assignment_.owners[bucket].parts[owner];
  return part.last_block - part.first_block;
}

void StepSums::add_gradients(const GradientExchange& gradients) {
  for (std::size_t b = 0; b < me_.size(); ++b) {
    if (me_[b] < 0) continue;
    const std::size_t begin = assignment_.owners[b].parts[at(me_[b])].begin;
    std::size_t next = own_squares_[b];
    if (skipped_[b]) {
      std::fill_n(squares_.begin() + static_cast<std::ptrdiff_t>(next), blocks_of(b, at(me_[b])),
                  0.0);
      continue;
    }
    for (const TensorRun& run : runs_[b]) {
      const View g =
          gradients.reduced(static_cast<int>(b)).slice(run.begin - begin, run.end - run.begin);
      const std::size_t blocks = (g.count + kBlock - 1) / kBlock;
      backend_->run(SumSquares{g, kBlock, std::span(squares_).subspan(next, blocks)});
      next += blocks;
    }
    CONCERTINA_CHECK(next == own_squares_[b] + blocks_of(b, at(me_[b])), "bucket {}: {} squares", b,
                     next - own_squares_[b]);
  }
  backend_->synchronize();
}

/// Sums each tensor of a bucket block by block, regardless of the owners.
void StepSums::add_squares(std::size_t bucket) {
  std::size_t owner = 0, left = blocks_of(bucket, 0), next = all_squares_[bucket][0];
  std::size_t sum_at = tensors_at_[bucket];
  for (const BucketTensor& tensor : assignment_.buckets[bucket].tensors) {
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

void StepSums::gather(const std::vector<double>& losses) {
  if (watchdog_ != nullptr) watchdog_->at("gather of norms and losses");
  working_->exchange(square_sends_, square_receives_).wait();
  for (std::size_t b = 0; b < me_.size(); ++b)
    if (me_[b] == 0) add_squares(b);
  for (std::size_t m = 0; m < loss_rank_.size(); ++m)
    if (loss_rank_[m] == rank_) sums_[loss_at_[m]] = losses[m];
  working_->all_gather(messages_[at(working_->rank())], messages_).wait();
}

double StepSums::mean_loss(double targets) const {
  double sum = 0;
  for (const std::size_t at : loss_at_) sum += sums_[at];
  return sum / targets;
}

double StepSums::total_squares() {
  double total = 0;
  for (std::size_t b = 0; b < assignment_.buckets.size(); ++b) {
    bucket_squares_[b] = 0;
    if (assignment_.buckets[b].frozen) continue;
    for (std::size_t t = 0; t < assignment_.buckets[b].tensors.size(); ++t) {
      if (!assignment_.buckets[b].tensors[t].trains) continue;
      const double sum = sums_[tensors_at_[b] + t];
      total += sum;
      bucket_squares_[b] += sum;
    }
  }
  return total;
}

StepFault StepSums::not_finite(std::int64_t step) const {
  constexpr auto kKind = StepFault::Kind::not_finite;
  for (std::size_t m = 0; m < loss_at_.size(); ++m)
    if (const double loss = sums_[loss_at_[m]]; !std::isfinite(loss))
      return {.kind = kKind,
              .what = fmt::format("the loss of step {} is {}", step, number_text(loss)),
              .where = fmt::format("rank {}, microbatch {}", loss_rank_[m], m)};
  for (std::size_t b = assignment_.buckets.size(); b-- > 0;) {
    if (std::isfinite(bucket_squares_[b])) continue;
    const Bucket& bucket = assignment_.buckets[b];
    std::size_t t = 0;
    while (!bucket.tensors[t].trains || std::isfinite(sums_[tensors_at_[b] + t])) ++t;
    return {.kind = kKind,
            .what = fmt::format("the gradient of step {} is not finite", step),
            .where = fmt::format("tensor {}, summed by rank {}", bucket.tensors[t].name,
                                 assignment_.owners[b].ranks[0])};
  }
  return {};
}

}  // namespace concertina
