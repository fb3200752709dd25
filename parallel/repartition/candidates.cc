#include "parallel/repartition/candidates.h"

#include <algorithm>

#include "core/error.h"
#include "parallel/repartition/grown_batch.h"

namespace concertina {
namespace {

constexpr int kAllDepths = 16;

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
      : view_(view), present_(find_schedule(view.asked.schedule)) {}

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
    const int world = view_.now.world;
    for (int pp = single ? 1 : 2; pp <= world && pp * folding.chunks <= view_.job.units(); ++pp) {
      if (pp % folding.rank_step != 0 || (pp > kAllDepths && world % pp != 0 && pp != now.pp))
        continue;
      if (!view_.options.depth && pp != now.pp) continue;
      const int pipelines = folding.pipelines();
      const int dp = view_.options.replicas ? most_replicas(view_, world / pp, pipelines) : now.dp;
      if (dp < 1 || dp > world / pp || !has_leaves_for(view_, dp, pipelines)) continue;
      list_.push_back({schedule.name, folding, {pp, dp}});
    }
  }

  const LayoutView& view_;
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
  request.batches = batches_for(view, candidate.grid.dp);
  request.layout = make_layout(cuts, candidate.grid, view.job.microbatches * request.batches,
                               view.job.leaves * request.batches, candidate.folding);
  return request;
}

}  // namespace concertina
