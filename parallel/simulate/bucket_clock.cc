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
  const ExchangeChoice exchange = costs.exchange();
  std::map<std::vector<int>, int> groups;
  for (std::size_t b = 0; b < costs.buckets.size(); ++b) {
    const std::vector<int>& holders = costs.buckets[b].ranks;
    const auto [group, fresh] = groups.try_emplace(holders, 0);
    if (fresh) {
      Group& made = groups_.emplace_back();
      const ExchangeShape shape = exchange.shape(holders);
      made.there = std::make_unique<ExchangeRoutes>(exchange.find(), shape, false);
      made.back = std::make_unique<ExchangeRoutes>(exchange.find(), shape, true);
      group->second = exchanges_.add_group(holders, *made.there);
    }
    add_item(static_cast<int>(b), group->second);
  }
}

/// Mean size of a chunk over all holders, in bytes.
double BucketClock::piece_bytes(int bucket) const {
  const BucketCosts& costs = costs_.buckets[at(bucket)];
  return costs.bytes / static_cast<double>(costs.ranks.size());
}

void BucketClock::add_item(int bucket, int number) {
  const BucketCosts& costs = costs_.buckets[at(bucket)];
  Group& group = groups_[at(number)];
  // Most buckets of a group are summed in the same order.
  if (group.buckets.empty() || costs_.buckets[at(group.buckets.back())].pieces != costs.pieces)
    group.gradients = std::make_shared<ExchangeLoad>(gradient_load(*group.there, costs_, costs));
  if (group.buckets.empty())
    group.weights = std::make_shared<ExchangeLoad>(weight_load(*group.back, costs_, costs));
  group.buckets.push_back(bucket);
  Item& item = items_.emplace_back();
  item.holders.resize(costs.ranks.size());
  item.group = number;
  item.load = group.gradients;
  item.exchange = exchanges_.add_exchange(number, item.load, piece_bytes(bucket));
  for (const int stage : costs.stages) {
    buckets_of_[at(stage)].push_back(bucket);
    ++item.holders[at(holder_of(bucket, rank_of_[at(stage)]))].open;
  }
}

int BucketClock::holder_of(int bucket, int rank) const {
  const std::vector<int>& ranks = costs_.buckets[at(bucket)].ranks;
  const auto found = std::lower_bound(ranks.begin(), ranks.end(), rank);
  CONCERTINA_CHECK(found != ranks.end() && *found == rank, "rank {} does not hold bucket {}", rank,
                   bucket);
  return static_cast<int>(found - ranks.begin());
}

void BucketClock::gradient(int stage, double end, int node) {
  if (--gradients_left_[at(stage)] > 0) return;
  for (const int b : buckets_of_[at(stage)]) {
    const BucketCosts& bucket = costs_.buckets[at(b)];
    const int h = holder_of(b, rank_of_[at(stage)]);
    const auto use = std::find(bucket.stages.begin(), bucket.stages.end(), stage);
    const double early = bucket.early[static_cast<std::size_t>(use - bucket.stages.begin())];
    if (--items_[at(b)].holders[at(h)].open == 0)
      exchanges_.begin(items_[at(b)].group, items_[at(b)].exchange, h, end - early, node);
  }
}

const std::vector<int>& BucketClock::advance(LinkClock& links) {
  woken_.clear();
  for (const ExchangeClock::End& end : exchanges_.advance(links)) {
    const int bucket = groups_[at(end.group)].buckets[at(end.exchange)];
    const int rank = costs_.buckets[at(bucket)].ranks[at(end.holder)];
    if (!waiting_[at(rank)]) continue;
    waiting_[at(rank)] = false;
    woken_.push_back(rank);
  }
  return woken_;
}

/// Seconds of the holder's CPU time after the messages: copies into and out of shared memory, and
/// the additions.
double BucketClock::cpu_seconds(const ExchangeLoad& load, int bucket, int holder, bool adds) const {
  const double additions = adds ? costs_.combine * load.arrived[at(holder)] : 0;
  return piece_bytes(bucket) * (additions + load.copies[at(holder)]);
}

bool BucketClock::reduce(int rank, int stage, double& now, int& node) {
  for (const int b : buckets_of_[at(stage)]) {
    const int h = holder_of(b, rank);
    Holder& holder = items_[at(b)].holders[at(h)];
    if (holder.counted) continue;
    const ExchangeClock::Progress& progress =
        exchanges_.progress(items_[at(b)].group, items_[at(b)].exchange, h);
    if (progress.missing > 0) {
      waiting_[at(rank)] = true;
      return false;
    }
    holder.counted = true;
    if (progress.end > now) {
      now = progress.end;
      node = progress.late;
    }
    now += cpu_seconds(*items_[at(b)].load, b, h, true);
  }
  return true;
}

std::vector<double> BucketClock::update(double start, LinkClock& links) const {
  std::vector<double> ends(at(ranks_), start), cpu(at(ranks_), 0.0);
  for (int rank = 0; rank < ranks_ && !costs_.ranks.empty(); ++rank)
    ends[at(rank)] += costs_.ranks[at(rank)].update;
  ExchangeClock gathers;
  for (const Group& one : groups_) {
    std::vector<int> buckets = one.buckets;
    std::stable_sort(buckets.begin(), buckets.end(), [&](int a, int b) {
      return costs_.buckets[at(a)].number < costs_.buckets[at(b)].number;
    });
    const int group = gathers.add_group(costs_.buckets[at(buckets[0])].ranks, *one.back);
    for (const int b : buckets) {
      const BucketCosts& bucket = costs_.buckets[at(b)];
      const int exchange = gathers.add_exchange(group, one.weights, piece_bytes(b));
      for (int h = 0; h < static_cast<int>(bucket.ranks.size()); ++h) {
        gathers.begin(group, exchange, h, start + bucket.updated[at(h)], -1);
        cpu[at(bucket.ranks[at(h)])] += cpu_seconds(*one.weights, b, h, false);
      }
    }
  }
  while (std::isfinite(gathers.next_time()))
    for (const ExchangeClock::End& end : gathers.advance(links)) {
      double& last =
          ends[at(costs_.buckets[at(groups_[at(end.group)].buckets[0])].ranks[at(end.holder)])];
      last = std::max(last, gathers.progress(end.group, end.exchange, end.holder).end);
    }
  for (int rank = 0; rank < ranks_; ++rank) {
    ends[at(rank)] += cpu[at(rank)];
    if (!costs_.ranks.empty()) ends[at(rank)] += costs_.ranks[at(rank)].refresh;
  }
  return ends;
}

}  // namespace concertina
