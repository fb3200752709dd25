#include "parallel/repartition/candidates.h"

#include <algorithm>

#include "core/error.h"
#include "parallel/repartition/grown_batch.h"

namespace concertina {
namespace {

constexpr int kAllDepths = 16;
constexpr int kAllReplicas = 8;
constexpr int kAllUnlike = 8;  // ranks

/// How `schedule` folds with its usual number of chunks.
std::optional<Folding> usual_folding(const Entry<Schedule>& schedule) {
  try {
    return folding_of(schedule, 0);
  } catch (const Error&) {
    return std::nullopt;
  }
}

Grid grid_of(const Layout& layout, const Folding& folding) {
  std::vector<int> ranks;
  for (const StagePlacement& stage : layout.pipelines.front().stages) ranks.push_back(stage.rank);
  std::sort(ranks.begin(), ranks.end());
  const auto depth = std::unique(ranks.begin(), ranks.end()) - ranks.begin();
  return {static_cast<int>(depth),
          static_cast<int>(std::ssize(layout.pipelines)) / folding.pipelines()};
}

class CandidateList {
 public:
  explicit CandidateList(const LayoutView& view)
      : view_(view), world_(view.now.world), present_(find_schedule(view.asked.schedule)) {}

  std::vector<LayoutCandidate> all() {
    add(present_, folding_of(view_.asked), /*single=*/true);
    if (view_.options.schedule)
      for (const Entry<Schedule>& one : schedules()) {
        if (one.name == present_.name || one.value.searched) continue;
        // On one rank they all do the same.
        if (const auto folding = usual_folding(one)) add(one, *folding, /*single=*/false);
      }
    std::stable_sort(list_.begin(), list_.end(),
                     [](const auto& a, const auto& b) { return a.ranks() > b.ranks(); });
    return std::move(list_);
  }

 private:
  void add(const Entry<Schedule>& schedule, const Folding& folding, bool single) {
    const Grid now = grid_of(view_.now.layout, folding_of(view_.asked));
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
      // The most that leaves allow may be none of these.
      const int room = most_replicas(view_, most, folding.pipelines());
      if (view_.options.replicas && room > kAllReplicas && room < most && (room & (room - 1)) != 0)
        list_.push_back({schedule.name, folding, {pp, room}});
      if (view_.options.depth && view_.options.replicas && folding.chunks == 1 &&
          folding.placement == Placement::loop)
        add_unlike(schedule, folding, pp);
    }
  }

  /// Replicas of `pp` ranks beside as many shallower ones as there is room for.
  void add_unlike(const Entry<Schedule>& schedule, const Folding& folding, int pp) {
    for (int less = 1; less < pp; ++less)
      for (int dp = 1; dp * pp + less <= world_; ++dp) {
        const int room = world_ - dp * pp, others = room / less;
        const bool tried = world_ <= kAllUnlike || (others * less == room && room < 2 * pp);
        if (tried && has_leaves_for(view_, dp + others, 1))
          add_shares({schedule.name, folding, {pp, dp}, {less, others}});
      }
  }

  /// The leaves of the deeper replicas, so that they are done when the others are; in a small
  /// world, one more or less of them, too.
  void add_shares(LayoutCandidate candidate) {
    const auto [pp, dp] = candidate.grid;
    const auto [less, others] = candidate.other;
    const int leaves = view_.job.leaves * batches_for(view_, dp + others);
    const int leaf = view_.job.microbatches / view_.job.leaves;
    const auto seconds = [&](int mine, const Grid& grid) {
      return ((mine + grid.dp - 1) / grid.dp * leaf + grid.pp - 1) / static_cast<double>(grid.pp);
    };
    const auto longest = [&](int mine) {
      return std::max(seconds(mine, candidate.grid), seconds(leaves - mine, candidate.other));
    };
    int best = dp;
    for (int mine = dp; mine <= leaves - others; ++mine)
      if (longest(mine) < longest(best)) best = mine;
    const int beside = world_ <= kAllUnlike ? 1 : 0;
    for (int mine = std::max(dp, best - beside); mine <= std::min(leaves - others, best + beside);
         ++mine) {
      candidate.leaves = mine;
      list_.push_back(candidate);
    }
  }

  const LayoutView& view_;
  const int world_;
  const Entry<Schedule>& present_;
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
  const auto deep = cuts.begin() + candidate.grid.pp * candidate.folding.chunks;
  request.layout =
      make_layout({cuts.begin(), deep}, candidate.grid, mine * leaf, mine, candidate.folding);
  if (candidate.other.dp == 0) return request;
  const Layout others = make_layout({deep, cuts.end()}, candidate.other, (leaves - mine) * leaf,
                                    leaves - mine, candidate.folding);
  for (Pipeline pipeline : others.pipelines) {
    for (StagePlacement& stage : pipeline.stages)
      stage.rank += candidate.grid.pp * candidate.grid.dp;
    pipeline.first_microbatch += mine * leaf;
    pipeline.last_microbatch += mine * leaf;
    request.layout.pipelines.push_back(std::move(pipeline));
  }
  return request;
}

}  // namespace concertina
