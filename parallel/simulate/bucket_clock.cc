#include "parallel/simulate/bucket_clock.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/error.h"
#include "core/index.h"

namespace concertina {
BucketClock::BucketClock(const Layout& layout, const Costs& costs, int ranks)
    : costs_(costs), ranks_(ranks), waiting_(at(ranks)) {
  for (const Pipeline& pipeline : layout.pipelines)
    for (const StagePlacement& stage : pipeline.stages) {
      gradients_left_.push_back(pipeline.microbatches());
      rank_of_.push_back(stage.rank);
    }
  buckets_of_.resize(rank_of_.size());
  std::map<std::vector<int>, int> groups;
  for (std::size_t b = 0; b < costs.buckets.size(); ++b) {
    const BucketCosts& bucket = costs.buckets[b];
    Item item;
    item.holders.resize(bucket.ranks.size());
    item.group = groups.try_emplace(bucket.ranks, static_cast<int>(groups.size())).first->second;
    groups_.resize(groups.size());
    groups_[at(item.group)].push_back(static_cast<int>(b));
    for (Holder& holder : item.holders) holder.missing = static_cast<int>(bucket.ranks.size()) - 1;
    items_.push_back(std::move(item));
    for (const int stage : bucket.stages) {
      buckets_of_[at(stage)].push_back(static_cast<int>(b));
      ++items_.back().holders[at(holder_of(static_cast<int>(b), rank_of_[at(stage)]))].open;
    }
  }
  for (const std::vector<int>& group : groups_)
    started_.emplace_back(costs.buckets[at(group[0])].ranks.size(), std::size_t{0});
}

int BucketClock::holder_of(int bucket, int rank) const {
  const std::vector<int>& ranks = costs_.buckets[at(bucket)].ranks;
  const auto found = std::lower_bound(ranks.begin(), ranks.end(), rank);
  CONCERTINA_CHECK(found != ranks.end() && *found == rank, "rank {} does not hold bucket {}", rank,
                   bucket);
  return static_cast<int>(found - ranks.begin());
}

std::vector<BucketClock::Start> BucketClock::gradient(int stage, double end, int node) {
  std::vector<Start> starts;
  if (--gradients_left_[at(stage)] > 0) return starts;
  for (const int b : buckets_of_[at(stage)]) {
    const BucketCosts& bucket = costs_.buckets[at(b)];
    const int h = holder_of(b, rank_of_[at(stage)]);
    const auto use = std::find(bucket.stages.begin(), bucket.stages.end(), stage);
    const double early = bucket.early[static_cast<std::size_t>(use - bucket.stages.begin())];
    if (--items_[at(b)].holders[at(h)].open == 0) starts.push_back({b, h, end - early, node});
  }
  return starts;
}

std::vector<int> BucketClock::start(const Start& start, LinkClock& links) {
  Holder& mine = items_[at(start.bucket)].holders[at(start.holder)];
  mine.ready = true;
  mine.node = start.node;
  const int group = items_[at(start.bucket)].group;
  std::vector<int> woken;
  std::size_t& next = started_[at(group)][at(start.holder)];
  for (; next < groups_[at(group)].size(); ++next) {
    const int bucket = groups_[at(group)][next];
    std::vector<Holder>& holders = items_[at(bucket)].holders;
    if (!holders[at(start.holder)].ready) break;
    holders[at(start.holder)].start = start.time;
    for (int other = 0; other < static_cast<int>(holders.size()); ++other) {
      if (other == start.holder || holders[at(other)].start < 0) continue;
      exchange(bucket, start.holder, other, links);
      exchange(bucket, other, start.holder, links);
      for (const int h : {start.holder, other}) {
        const int rank = costs_.buckets[at(bucket)].ranks[at(h)];
        if (holders[at(h)].missing == 0 && waiting_[at(rank)]) {
          waiting_[at(rank)] = false;
          woken.push_back(rank);
        }
      }
    }
  }
  return woken;
}

/// The pieces of holder b's part, from holder a.
void BucketClock::exchange(int bucket, int a, int b, LinkClock& links) {
  const BucketCosts& costs = costs_.buckets[at(bucket)];
  std::vector<Holder>& holders = items_[at(bucket)].holders;
  const Holder& later = holders[at(holders[at(a)].start > holders[at(b)].start ? a : b)];
  const double bytes = costs.bytes / static_cast<double>(costs.ranks.size()) * costs.pieces[at(a)];
  const double end =
      links.carry(costs.ranks[at(a)], costs.ranks[at(b)], bytes, later.start, later.node).end;
  Holder& receiver = holders[at(b)];
  --receiver.missing;
  if (end >= receiver.arrived) {
    receiver.arrived = end;
    receiver.late = later.node;
  }
}

/// Of the holder's own time behind the messages: copies in and out of shared memory, and with
/// `pieces` the additions.
double BucketClock::cpu_seconds(int bucket, int holder, bool pieces) const {
  const BucketCosts& costs = costs_.buckets[at(bucket)];
  const int me = costs.ranks[at(holder)];
  const double part = costs.bytes / static_cast<double>(costs.ranks.size());
  double seconds = 0;
  for (std::size_t other = 0; other < costs.ranks.size(); ++other) {
    if (static_cast<int>(other) == holder) continue;
    const double in = part * (pieces ? costs.pieces[other] : 1);
    const double out = part * (pieces ? costs.pieces[at(holder)] : 1);
    const auto copy = [](const LinkCosts& link, double cpu) {
      return std::isinf(link.bandwidth) ? cpu : 0;
    };
    const LinkCosts &from = costs_.link(costs.ranks[other], me),
                    &to = costs_.link(me, costs.ranks[other]);
    seconds += in * (copy(from, from.receive_cpu) + (pieces ? costs_.combine : 0)) +
               out * copy(to, to.send_cpu);
  }
  return seconds;
}

bool BucketClock::reduce(int rank, int stage, double& now, int& node) {
  for (const int b : buckets_of_[at(stage)]) {
    const int h = holder_of(b, rank);
    Holder& holder = items_[at(b)].holders[at(h)];
    if (holder.counted) continue;
    if (holder.missing > 0) {
      waiting_[at(rank)] = true;
      return false;
    }
    holder.counted = true;
    if (holder.arrived > now) {
      now = holder.arrived;
      node = holder.late;
    }
    now += cpu_seconds(b, h, true);
  }
  return true;
}

std::vector<double> BucketClock::update(double start, LinkClock& links) const {
  std::vector<double> ends(at(ranks_), start), cpu(at(ranks_), 0.0);
  for (int rank = 0; rank < ranks_ && !costs_.ranks.empty(); ++rank)
    ends[at(rank)] += costs_.ranks[at(rank)].update;
  struct Message {
    double ready;
    int bucket, from, to;
  };
  std::vector<Message> messages;
  for (int b = 0; b < static_cast<int>(items_.size()); ++b) {
    const BucketCosts& bucket = costs_.buckets[at(b)];
    for (std::size_t i = 0; i < bucket.ranks.size(); ++i) {
      cpu[at(bucket.ranks[i])] += cpu_seconds(b, static_cast<int>(i), false);
      for (std::size_t j = 0; j < bucket.ranks.size(); ++j)
        if (i != j)
          messages.push_back({start + std::max(bucket.updated[i], bucket.updated[j]), b,
                              bucket.ranks[i], bucket.ranks[j]});
    }
  }
  std::stable_sort(messages.begin(), messages.end(),
                   [](const Message& a, const Message& b) { return a.ready < b.ready; });
  for (const Message& message : messages) {
    const BucketCosts& bucket = costs_.buckets[at(message.bucket)];
    const double bytes = bucket.bytes / static_cast<double>(bucket.ranks.size());
    double& end = ends[at(message.to)];
    end = std::max(end, links.carry(message.from, message.to, bytes, message.ready, -1).end);
  }
  for (int rank = 0; rank < ranks_; ++rank) {
    ends[at(rank)] += cpu[at(rank)];
    if (!costs_.ranks.empty()) ends[at(rank)] += costs_.ranks[at(rank)].refresh;
  }
  return ends;
}

}  // namespace concertina
