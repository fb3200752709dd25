#include "experiments/timeline/timeline_rows.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "core/index.h"
#include "parallel/plan/plan_index.h"
#include "parallel/simulate/idle_causes.h"

namespace concertina {
namespace {

WorkKind work_of(Kind kind) {
  switch (kind) {
    case Kind::F:
      return WorkKind::forward;
    case Kind::I:
      return WorkKind::input;
    case Kind::W:
      return WorkKind::weight;
    default:
      return WorkKind::backward;
  }
}

/// Adds STEP as two boxes with a wait in between: norm and update; packing of the new weights.
void add_optimizer(const TimelinePanel& panel, std::size_t rank, const Interval& time,
                   std::vector<WorkBox>& boxes) {
  if (panel.costs.ranks.empty()) return;
  const RankCosts& own = panel.costs.ranks[rank];
  const double split = std::min(time.end, time.start + own.norm + own.update);
  if (split > time.start)
    boxes.push_back({.work = WorkKind::optimizer, .start = time.start, .end = split});
  if (own.refresh > 0)
    boxes.push_back({.work = WorkKind::optimizer,
                     .start = std::max(split, time.end - own.refresh),
                     .end = time.end});
}

/// The activations that a microbatch saves on a stage.
double saved_by(const TimelinePanel& panel, int stage, bool bytes) {
  const Pipeline& pipeline = panel.layout.pipelines[at(panel.layout.pipeline_of(stage))];
  if (panel.layout.stage(stage).last_unit <= panel.layout.frozen_units) return 0;
  if (bytes) return static_cast<double>(panel.costs.stages[at(stage)].saved_bytes);
  std::vector<int> ranks;
  for (const StagePlacement& placement : pipeline.stages) ranks.push_back(placement.rank);
  std::ranges::sort(ranks);
  const auto distinct = std::ranges::unique(ranks).begin() - ranks.begin();
  return static_cast<double>(distinct) / static_cast<double>(pipeline.stages.size());
}

}  // namespace

int TimelinePanel::microbatches() const {
  int last = 0;
  for (const Pipeline& pipeline : layout.pipelines) last = std::max(last, pipeline.last_microbatch);
  return last;
}

char letter_of(WorkKind work) {
  return "FBIWS...."[static_cast<std::size_t>(work)];
}

std::vector<WorkBox> work_boxes(const TimelinePanel& panel, std::size_t rank) {
  std::vector<int> chunk_of_stage(at(panel.layout.stage_count()), 0);
  int chunks = 0;
  for (int s = 0; s < panel.layout.stage_count(); ++s)
    if (panel.layout.stage(s).rank == static_cast<int>(rank)) chunk_of_stage[at(s)] = chunks++;
  std::vector<WorkBox> boxes;
  const std::vector<Action>& row = panel.plan.rows[rank];
  for (std::size_t i = 0; i < row.size(); ++i) {
    const Interval& time = panel.timeline.rows[rank][i];
    if (row[i].kind == Kind::STEP) add_optimizer(panel, rank, time, boxes);
    if (!is_compute(row[i].kind)) continue;
    const int part = row[i].overlapped ? 1 : i > 0 && row[i - 1].overlapped ? 2 : 0;
    boxes.push_back({work_of(row[i].kind), time.start, time.end, row[i].stage, row[i].microbatch,
                     chunk_of_stage[at(row[i].stage)], part});
  }
  if (rank < panel.waits.size())
    boxes.insert(boxes.end(), panel.waits[rank].begin(), panel.waits[rank].end());
  return boxes;
}

std::vector<std::optional<WorkKind>> main_work(const std::vector<WorkBox>& boxes, double column,
                                               std::size_t count) {
  if (!(column > 0)) return std::vector<std::optional<WorkKind>>(count);
  std::vector<std::array<double, kWorkKinds>> used(count);  // shares of columns
  for (const WorkBox& box : boxes) {
    const double first = box.start / column, last = box.end / column;
    for (auto c = static_cast<std::size_t>(first); c < count && static_cast<double>(c) < last; ++c)
      used[c][static_cast<std::size_t>(box.work)] +=
          std::min(last, static_cast<double>(c) + 1) - std::max(first, static_cast<double>(c));
  }
  std::vector<std::optional<WorkKind>> result;
  for (const auto& shares : used) {
    const auto most = static_cast<WorkKind>(std::ranges::max_element(shares) - shares.begin());
    const bool busy = std::accumulate(shares.begin(), shares.end(), 0.0) >= 0.5;
    result.push_back(busy && most != WorkKind::idle ? std::optional(most) : std::nullopt);
  }
  return result;
}

int chunks_of(const TimelinePanel& panel) {
  std::vector<int> stages(panel.ranks(), 0);
  for (int s = 0; s < panel.layout.stage_count(); ++s) ++stages[at(panel.layout.stage(s).rank)];
  return stages.empty() ? 1 : std::max(1, *std::ranges::max_element(stages));
}

std::vector<SavedLevel> saved_levels(const TimelinePanel& panel, std::size_t rank, bool bytes) {
  std::vector<double> by_stage;
  for (int s = 0; s < panel.layout.stage_count(); ++s)
    by_stage.push_back(
        panel.layout.stage(s).rank == static_cast<int>(rank) ? saved_by(panel, s, bytes) : 0);
  std::vector<SavedLevel> levels{{0, 0}};
  double amount = 0;
  const double least = 1e-9 * panel.timeline.makespan;  // tolerance for rounding
  const auto change = [&](double when, double by) {
    if (by == 0) return;
    amount += by;
    // If a microbatch ends when the next one starts, there is no dip.
    if (when - levels.back().at <= least && amount > levels.back().amount)
      levels.back().amount = amount;
    else
      levels.push_back({when, amount});
  };
  const std::vector<Action>& row = panel.plan.rows[rank];
  for (std::size_t i = 0; i < row.size(); ++i) {
    const Interval& time = panel.timeline.rows[rank][i];
    if (row[i].kind == Kind::F) change(time.start, by_stage[at(row[i].stage)]);
    if (makes_weight_gradient(row[i].kind)) change(time.end, -by_stage[at(row[i].stage)]);
  }
  return levels;
}

IdleShares idle_shares(const TimelinePanel& panel) {
  const Timeline& timeline = panel.timeline;
  const ExpectedIdle expected = expected_idle(panel.plan, panel.layout, panel.costs);
  Costs messages = panel.costs;
  messages.buckets.clear();
  messages.ranks.clear();
  const bool exchanges = !panel.costs.buckets.empty() || !panel.costs.ranks.empty();
  const Timeline without = exchanges ? simulate(panel.plan, panel.layout, messages) : timeline;
  IdleShares sum;
  double working = 0;
  for (std::size_t rank = 0; rank < panel.ranks(); ++rank) {
    if (panel.plan.rows[rank].empty()) continue;
    ++working;
    double rest = timeline.makespan - timeline.busy[rank];
    const auto take = [&](double part) {
      part = std::clamp(part, 0.0, std::max(0.0, rest));
      rest -= part;
      return part;
    };
    sum.schedule += take(expected.equal[rank]);
    sum.imbalance += take(expected.actual[rank] - expected.equal[rank]);
    sum.transfer +=
        take(exchanges ? without.makespan - without.busy[rank] - expected.actual[rank] : rest);
    sum.exchange += std::max(0.0, rest);
  }
  const double whole = working * timeline.makespan;
  if (!(whole > 0)) return {};
  return {sum.schedule / whole, sum.imbalance / whole, sum.transfer / whole, sum.exchange / whole};
}

std::vector<std::size_t> spread_ranks(std::size_t ranks, std::size_t count) {
  std::vector<std::size_t> result;
  const std::size_t shown = std::min(ranks, count);
  for (std::size_t i = 0; i < shown; ++i)
    result.push_back(shown < 2 ? 0 : i * (ranks - 1) / (shown - 1));
  return result;
}

}  // namespace concertina
