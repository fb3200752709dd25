#include "parallel/repartition/candidates.h"

#include <algorithm>
#include <limits>
#include <map>

#include "core/error.h"
#include "core/index.h"
#include "parallel/repartition/grown_batch.h"

namespace concertina {
namespace {

constexpr int kAllDepths = 16;
constexpr int kAllReplicas = 8;
constexpr int kAllUnlike = 8;            // number of ranks
constexpr std::size_t kMostOrders = 24;  // limit for ranks with different factors: all orders of
                                         // four

/// How `schedule` folds with its default number of chunks.
std::optional<Folding> default_folding(const Entry<Schedule>& schedule) {
  try {
    return folding_of(schedule, 0);
  } catch (const Error&) {
    return std::nullopt;
  }
}

class CandidateList {
 public:
  explicit CandidateList(const LayoutView& view)
      : view_(view), world_(view.now.world), present_(find_schedule(view.asked.schedule)) {}

  std::vector<LayoutCandidate> all() {
    for (std::vector<int>& order : rank_orders()) {
      const std::size_t first = list_.size();
      order_ = std::move(order);
      add_all();
      if (!std::ranges::is_sorted(order_))
        for (std::size_t i = first; i < list_.size(); ++i) list_[i].ranks_in_order = order_;
    }
    std::stable_sort(list_.begin(), list_.end(),
                     [](const auto& a, const auto& b) { return a.ranks() > b.ranks(); });
    return std::move(list_);
  }

 private:
  /// Returns all orders of ranks with different factors, keeping equal ones in numerical order. If
  /// there are too many, returns the numerical order and the one with slow ranks last: spare, or
  /// together in one replica.
  std::vector<std::vector<int>> rank_orders() {
    std::vector<double> factors;
    for (int rank = 0; rank < world_; ++rank) factors.push_back(view_.forecast.factor(rank));
    std::ranges::sort(factors);
    differ_ = factors.front() != factors.back();
    std::vector<std::vector<int>> orders;
    do {
      std::vector<int>& order = orders.emplace_back();
      std::map<double, int> next;  // by factor: the next rank
      for (const double factor : factors) {
        int& rank = next[factor];
        while (view_.forecast.factor(rank) != factor) ++rank;
        order.push_back(rank++);
      }
    } while (orders.size() <= kMostOrders && std::ranges::next_permutation(factors).found);
    if (orders.size() <= kMostOrders) return orders;
    std::vector<int> by_number = orders[0];
    std::ranges::sort(by_number);
    return {by_number, orders[0]};
  }

  void add_all() {
    add(present_, folding_of(view_.asked), /*single=*/true);
    if (view_.options.schedule)
      for (const Entry<Schedule>& one : schedules()) {
        if (one.name == present_.name || one.value.searched) continue;
        // On one rank, all schedules are equivalent.
        if (const auto folding = default_folding(one)) add(one, *folding, /*single=*/false);
      }
  }

  void add(const Entry<Schedule>& schedule, const Folding& folding, bool single) {
    const Layout& layout = view_.now.layout;
    const Grid now{static_cast<int>(working_ranks({{layout.pipelines.front()}}).size()),
                   replicas_of(view_.asked, layout)};
    for (int pp = single ? 1 : 2; pp <= world_ && pp * folding.chunks <= view_.job.units(); ++pp) {
      if (pp % folding.rank_step != 0 || (pp > kAllDepths && world_ % pp != 0 && pp != now.pp))
        continue;
      if (!view_.options.depth && pp != now.pp) continue;
      const int most = world_ / pp;
      for (int dp = 1; dp <= most; ++dp) {
        const bool tried = view_.options.replicas
                               ? dp <= kAllReplicas || dp == most || (dp & (dp - 1)) == 0
                               : dp == now.dp;
        if (tried && has_leaves_for(view_, dp, folding.pipelines()))
          list_.push_back({schedule.name, folding, {pp, dp}});
      }
      // The largest number that the leaves allow might be missing from the list.
      const int room = most_replicas(view_, most, folding.pipelines());
      if (view_.options.replicas && room > kAllReplicas && room < most && (room & (room - 1)) != 0)
        list_.push_back({schedule.name, folding, {pp, room}});
      if (folding.chunks == 1 && folding.placement == Placement::loop)
        add_different(schedule, folding, {pp, now.dp});
    }
  }

  /// Combines replicas of the same depth as `like` with as many shallower ones as fit and, if ranks
  /// differ, with others of that depth.
  void add_different(const Entry<Schedule>& schedule, const Folding& folding, const Grid& like) {
    const bool replicas = view_.options.replicas;
    const int pp = like.pp, ranks = replicas ? world_ : pp * like.dp;
    if (ranks > world_) return;
    for (int less = view_.options.depth && replicas ? 1 : pp; less < pp + (differ_ ? 1 : 0); ++less)
      for (int dp = 1; dp * pp + less <= ranks; ++dp) {
        const int room = ranks - dp * pp;
        for (int others = differ_ && replicas ? 1 : room / less; others * less <= room; ++others) {
          const bool tried = world_ <= kAllUnlike || (others * less == room && room < 2 * pp);
          if (tried && has_leaves_for(view_, dp + others, 1))
            add_shares({schedule.name, folding, {pp, dp}, {less, others}});
        }
      }
  }

  /// Adds the share of leaves for which the deeper replicas finish at the same time as the others;
  /// in a small world, also the shares with one leaf more and one less.
  void add_shares(LayoutCandidate candidate) {
    const auto [pp, dp] = candidate.grid;
    const auto [less, others] = candidate.other;
    const int leaves = view_.job.leaves * batches_for(view_, dp + others);
    const int leaf = view_.job.microbatches / view_.job.leaves;
    const double deep = speed(candidate.grid, 0), rest = speed(candidate.other, pp * dp);
    const auto seconds = [&](int mine, const Grid& grid, double speed) {
      const int microbatches = (mine + grid.dp - 1) / grid.dp * leaf + grid.pp - 1;
      return microbatches / speed;
    };
    const auto longest = [&](int mine) {
      return std::max(seconds(mine, candidate.grid, deep),
                      seconds(leaves - mine, candidate.other, rest));
    };
    int best = dp;
    for (int mine = dp; mine <= leaves - others; ++mine)
      if (longest(mine) < longest(best)) best = mine;
    const int slack = world_ <= kAllUnlike ? 1 : 0;
    for (int mine = std::max(dp, best - slack); mine <= std::min(leaves - others, best + slack);
         ++mine) {
      candidate.leaves = mine;
      list_.push_back(candidate);
    }
  }

  /// Returns the speed of the slowest of these replicas, as a number of ranks with factor 1.
  /// `first` is the index of their first rank.
  double speed(const Grid& grid, int first) const {
    double slowest = std::numeric_limits<double>::infinity();
    for (int replica = 0; replica < grid.dp; ++replica) {
      double speed = 0;
      for (int stage = 0; stage < grid.pp; ++stage)
        speed += 1 / view_.forecast.factor(order_[at(first++)]);
      slowest = std::min(slowest, speed);
    }
    return slowest;
  }

  const LayoutView& view_;
  const int world_;
  const Entry<Schedule>& present_;
  std::vector<int> order_;  // see LayoutCandidate::ranks_in_order
  bool differ_ = false;     // whether ranks have different factors
  std::vector<LayoutCandidate> list_;
};

}  // namespace

std::vector<LayoutCandidate> layout_candidates(const LayoutView& view) {
  if (view.asked.file) return {};
  return CandidateList(view).all();
}

Request request_for(const LayoutView& view, const LayoutCandidate& candidate,
                    const std::vector<UnitRange>& cuts) {
  Request request = view.asked;
  request.pp = request.dp = 0;
  if (candidate.schedule != request.schedule) request.chunks = 0;
  request.schedule = candidate.schedule;
  request.spare = view.now.world - candidate.ranks();
  request.batches = batches_for(view, candidate.grid.dp + candidate.other.dp);
  const int leaves = view.job.leaves * request.batches;
  const int leaf = view.job.microbatches / view.job.leaves;
  const int mine = candidate.other.dp > 0 ? candidate.leaves : leaves;
  const auto deep = cuts.begin() + std::ptrdiff_t{candidate.grid.pp} * candidate.folding.chunks;
  Layout& layout = request.layout;
  layout = make_layout({cuts.begin(), deep}, candidate.grid, mine * leaf, mine, candidate.folding);
  Layout others;
  if (candidate.other.dp > 0)
    others = make_layout({deep, cuts.end()}, candidate.other, (leaves - mine) * leaf, leaves - mine,
                         candidate.folding);
  for (Pipeline& pipeline : others.pipelines) {
    for (StagePlacement& stage : pipeline.stages)
      stage.rank += candidate.grid.pp * candidate.grid.dp;
    pipeline.first_microbatch += mine * leaf;
    pipeline.last_microbatch += mine * leaf;
    layout.pipelines.push_back(std::move(pipeline));
  }
  if (const std::vector<int>& order = candidate.ranks_in_order; !order.empty())
    for (Pipeline& pipeline : layout.pipelines)
      for (StagePlacement& stage : pipeline.stages) stage.rank = order[at(stage.rank)];
  return request;
}

}  // namespace concertina
