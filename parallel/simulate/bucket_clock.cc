#include "parallel/simulate/bucket_clock.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "core/error.h"
#include "core/index.h"

namespace concertina {
namespace {

bool is_copy(const LinkCosts& link) {
  return std::isinf(link.bandwidth) && link.send_cpu + link.receive_cpu > 0;
}

}  // namespace

BucketClock::BucketClock(const Layout& layout, const Costs& costs, int ranks)
    : costs_(costs), ranks_(ranks), waiting_(at(ranks)) {
  for (const Pipeline& pipeline : layout.pipelines)
    for (const StagePlacement& stage : pipeline.stages) {
      gradients_left_.push_back(pipeline.microbatches());
      rank_of_.push_back(stage.rank);
    }
  buckets_of_.resize(rank_of_.size());
  copies_ = is_copy(costs.local) || is_copy(costs.remote) ||
            std::any_of(costs.pairs.begin(), costs.pairs.end(),
                        [](const auto& pair) { return is_copy(pair.second); });
  std::map<std::vector<int>, int> groups;
  for (std::size_t b = 0; b < costs.buckets.size(); ++b) {
    const auto [group, fresh] = groups.try_emplace(costs.buckets[b].ranks, 0);
    if (fresh) {
      group->second = exchanges_.add_group(costs.buckets[b].ranks);
      groups_.emplace_back();
    }
    add_item(static_cast<int>(b), group->second);
  }
}

void BucketClock::add_item(int bucket, int group) {
  const BucketCosts& costs = costs_.buckets[at(bucket)];
  const double part = costs.bytes / static_cast<double>(costs.ranks.size());
  std::vector<double> bytes;
  for (const int pieces : costs.pieces) bytes.push_back(part * pieces);
  groups_[at(group)].push_back(bucket);
  Item& item = items_.emplace_back();
  item.holders.resize(costs.ranks.size());
  item.group = group;
  item.exchange = exchanges_.add_exchange(group, std::move(bytes));
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
    const int bucket = groups_[at(end.group)][at(end.exchange)];
    const int rank = costs_.buckets[at(bucket)].ranks[at(end.holder)];
    if (!waiting_[at(rank)]) continue;
    waiting_[at(rank)] = false;
    woken_.push_back(rank);
  }
  return woken_;
}

/// The holder's own time after the messages, in seconds: copies in and out of shared memory, and
/// with `pieces` the additions.
double BucketClock::cpu_seconds(int bucket, int holder, bool pieces) const {
  const BucketCosts& costs = costs_.buckets[at(bucket)];
  const int me = costs.ranks[at(holder)];
  const double part = costs.bytes / static_cast<double>(costs.ranks.size());
  double seconds = 0;
  if (pieces)
    seconds =
        part * costs_.combine *
        (std::accumulate(costs.pieces.begin(), costs.pieces.end(), 0) - costs.pieces[at(holder)]);
  for (std::size_t other = 0; copies_ && other < costs.ranks.size(); ++other) {
    if (static_cast<int>(other) == holder) continue;
    const double in = part * (pieces ? costs.pieces[other] : 1);
    const double out = part * (pieces ? costs.pieces[at(holder)] : 1);
    const auto copy = [](const LinkCosts& link, double cpu) {
      return std::isinf(link.bandwidth) ? cpu : 0;
    };
    const LinkCosts &from = costs_.link(costs.ranks[other], me),
                    &to = costs_.link(me, costs.ranks[other]);
    seconds += in * copy(from, from.receive_cpu) + out * copy(to, to.send_cpu);
  }
  return seconds;
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
    now += cpu_seconds(b, h, true);
  }
  return true;
}

std::vector<double> BucketClock::update(double start, LinkClock& links) const {
  std::vector<double> ends(at(ranks_), start), cpu(at(ranks_), 0.0);
  for (int rank = 0; rank < ranks_ && !costs_.ranks.empty(); ++rank)
    ends[at(rank)] += costs_.ranks[at(rank)].update;
  ExchangeClock gathers;
  for (std::vector<int> buckets : groups_) {
    std::stable_sort(buckets.begin(), buckets.end(), [&](int a, int b) {
      return costs_.buckets[at(a)].number < costs_.buckets[at(b)].number;
    });
    const int group = gathers.add_group(costs_.buckets[at(buckets[0])].ranks);
    for (const int b : buckets) {
      const BucketCosts& bucket = costs_.buckets[at(b)];
      const std::size_t holders = bucket.ranks.size();
      const int exchange = gathers.add_exchange(
          group, std::vector<double>(holders, bucket.bytes / static_cast<double>(holders)));
      for (int h = 0; h < static_cast<int>(holders); ++h) {
        gathers.begin(group, exchange, h, start + bucket.updated[at(h)], -1);
        cpu[at(bucket.ranks[at(h)])] += cpu_seconds(b, h, false);
      }
    }
  }
  while (std::isfinite(gathers.next_time()))
    for (const ExchangeClock::End& end : gathers.advance(links)) {
      double& last = ends[at(costs_.buckets[at(groups_[at(end.group)][0])].ranks[at(end.holder)])];
      last = std::max(last, gathers.progress(end.group, end.exchange, end.holder).end);
    }
  for (int rank = 0; rank < ranks_; ++rank) {
    ends[at(rank)] += cpu[at(rank)];
    if (!costs_.ranks.empty()) ends[at(rank)] += costs_.ranks[at(rank)].refresh;
  }
  return ends;
}

}  // namespace concertina
