#include "parallel/plan/replica_kinds.h"

#include <algorithm>
#include <limits>
#include <map>

#include "core/index.h"

namespace concertina {
namespace {

/// The lowest and the highest rank of a pipeline.
std::pair<int, int> rank_range(const Pipeline& pipeline) {
  const auto [lowest, highest] = std::ranges::minmax(
      pipeline.stages, {}, [](const StagePlacement& stage) { return stage.rank; });
  return {lowest.rank, highest.rank};
}

/// The places of all replicas, and the one after the last. Microbatches are rounded down to `run`.
std::vector<ReplicaPlace> find_replicas(const Layout& layout, int run) {
  const std::vector<Pipeline>& pipelines = layout.pipelines;
  std::vector<int> lowest_after(pipelines.size() + 1, std::numeric_limits<int>::max());
  for (std::size_t p = pipelines.size(); p-- > 0;)
    lowest_after[p] = std::min(lowest_after[p + 1], rank_range(pipelines[p]).first);
  std::vector<ReplicaPlace> places;
  int ranks = 0, stages = 0;
  for (std::size_t p = 0; p < pipelines.size(); ++p) {
    const int microbatch = pipelines[p].first_microbatch / run * run;
    if (p == 0 || lowest_after[p] == ranks)
      places.push_back({static_cast<int>(p), stages, ranks, microbatch});
    places.back().microbatch = std::min(places.back().microbatch, microbatch);
    ranks = std::max(ranks, rank_range(pipelines[p]).second + 1);
    stages += static_cast<int>(pipelines[p].stages.size());
  }
  places.push_back({static_cast<int>(pipelines.size()), stages, ranks, 0});
  return places;
}

std::vector<double> shape_of(const Layout& layout, const ReplicaPlace& begin,
                             const ReplicaPlace& end) {
  std::vector<double> key{static_cast<double>(end.rank - begin.rank)};
  for (int p = begin.pipeline; p < end.pipeline; ++p) {
    const Pipeline& one = layout.pipelines[at(p)];
    for (const int value : {static_cast<int>(one.stages.size()),
                            one.first_microbatch - begin.microbatch, one.microbatches()})
      key.push_back(value);
    for (const StagePlacement& stage : one.stages)
      for (const int value : {stage.rank - begin.rank, stage.first_unit, stage.last_unit})
        key.push_back(value);
  }
  return key;
}

/// `action` of the replica at `from`, as the one at `to` has it.
Action moved(Action action, const ReplicaPlace& from, const ReplicaPlace& to) {
  if (action.kind != Kind::STEP) action.stage += to.stage - from.stage;
  if (action.microbatch >= 0) action.microbatch += to.microbatch - from.microbatch;
  return action;
}

}  // namespace

ReplicaKinds::ReplicaKinds(const Layout& layout, int run, const Traits& traits)
    : places_(find_replicas(layout, run)) {
  layout_.frozen_units = layout.frozen_units;
  std::map<std::vector<double>, int> known;
  for (std::size_t replica = 0; replica + 1 < places_.size(); ++replica) {
    std::vector<double> key = shape_of(layout, places_[replica], places_[replica + 1]);
    if (traits) traits(places_[replica], places_[replica + 1], key);
    const auto [kind, fresh] = known.try_emplace(std::move(key), static_cast<int>(kinds_.size()));
    if (fresh) add_kind(layout, replica, run);
    kind_of_.push_back(kind->second);
  }
}

const ReplicaKinds::Kind& ReplicaKinds::kind(std::size_t replica) const {
  return kinds_[at(kind_of_[replica])];
}

void ReplicaKinds::add_kind(const Layout& layout, std::size_t replica, int run) {
  const ReplicaPlace &from = places_[replica], &end = places_[replica + 1];
  Kind kind{static_cast<int>(replica), kinds_.empty() ? from : kinds_.back().end, {}};
  kind.end.microbatch = kind.at.microbatch;
  for (int p = from.pipeline; p < end.pipeline; ++p) {
    Pipeline& pipeline = layout_.pipelines.emplace_back(layout.pipelines[at(p)]);
    for (int* microbatch : {&pipeline.first_microbatch, &pipeline.last_microbatch})
      *microbatch += kind.at.microbatch - from.microbatch;
    for (StagePlacement& stage : pipeline.stages) stage.rank += kind.at.rank - from.rank;
    kind.end.microbatch =
        std::max(kind.end.microbatch, (pipeline.last_microbatch + run - 1) / run * run);
  }
  kind.end.pipeline = kind.at.pipeline + end.pipeline - from.pipeline;
  kind.end.stage = kind.at.stage + end.stage - from.stage;
  kind.end.rank = kind.at.rank + end.rank - from.rank;
  kinds_.push_back(kind);
}

std::vector<int> ReplicaKinds::ranks() const {
  std::vector<int> ranks;
  for (std::size_t replica = 0; replica < kind_of_.size(); ++replica)
    for (int rank = places_[replica].rank; rank < places_[replica + 1].rank; ++rank)
      ranks.push_back(kind(replica).at.rank + rank - places_[replica].rank);
  return ranks;
}

std::vector<int> ReplicaKinds::stages() const {
  std::vector<int> stages;
  for (const Kind& kind : kinds_)
    for (int stage = kind.at.stage; stage < kind.end.stage; ++stage)
      stages.push_back(places_[at(kind.replica)].stage + stage - kind.at.stage);
  return stages;
}

Plan ReplicaKinds::spread(const Plan& plan) const {
  Plan whole;
  for (std::size_t replica = 0; replica < kind_of_.size(); ++replica) {
    const Kind& like = kind(replica);
    for (int rank = like.at.rank; rank < like.end.rank; ++rank) {
      std::vector<Action>& row = whole.rows.emplace_back(plan.rows[at(rank)]);
      for (Action& action : row) action = moved(action, like.at, places_[replica]);
    }
  }
  return whole;
}

std::optional<Plan> ReplicaKinds::gather(const Plan& whole) const {
  Plan plan;
  for (std::size_t replica = 0; replica < kind_of_.size(); ++replica) {
    const Kind& like = kind(replica);
    for (int rank = like.at.rank; rank < like.end.rank; ++rank) {
      const std::vector<Action>& row = whole.rows[at(places_[replica].rank + rank - like.at.rank)];
      const auto like_kind = [&](const Action& action) {
        return moved(action, places_[replica], like.at);
      };
      if (like.replica == static_cast<int>(replica))
        std::ranges::transform(row, std::back_inserter(plan.rows.emplace_back()), like_kind);
      else if (!std::ranges::equal(row, plan.rows[at(rank)], {}, like_kind))
        return std::nullopt;
    }
  }
  return plan;
}

}  // namespace concertina
