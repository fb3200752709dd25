#include "parallel/generate/passes.h"

#include "parallel/plan/plan_graph.h"
#include "parallel/simulate/simulate.h"

namespace concertina {
namespace {

/// By node: an F that its neighbor could join, considering only the order of the row.
std::vector<bool> find_candidates(const IndexedPlan& it) {
  const auto& [plan, layout, index] = it;
  const Timeline timeline = simulate(plan, layout, unit_costs(layout));
  std::vector<bool> candidates(static_cast<std::size_t>(index.nodes()), false);
  for (std::size_t rank = 0; rank < plan.rows.size(); ++rank)
    for (std::size_t i = 0; i + 1 < plan.rows[rank].size(); ++i) {
      const Action &first = plan.rows[rank][i], &second = plan.rows[rank][i + 1];
      if (first.kind != Kind::F || !makes_input_gradient(second.kind)) continue;
      const bool waits = timeline.rows[rank][i + 1].start > timeline.rows[rank][i].end;
      const auto node = static_cast<std::size_t>(index.row_begin()[rank]) + i;
      candidates[node] = first.microbatch != second.microbatch && !waits && !first.overlapped;
    }
  return candidates;
}

/// Runs the plan with all candidates as pairs. When it blocks, the F that has waited longest for
/// its partner runs alone.
class Pairing {
 public:
  Pairing(const PlanGraph& graph, std::vector<bool> paired)
      : graph_(graph), paired_(std::move(paired)), waits_(graph.nodes(), 0) {
    for (const int to : graph.edge_to) ++waits_[to];
  }

  std::vector<bool> run() && {
    for (int node = 0; node < graph_.nodes(); ++node)
      if (waits_[node] == 0) arrive(node);
    for (std::size_t oldest = 0;;) {
      while (!ready_.empty()) {
        const int node = ready_.back();
        ready_.pop_back();
        finish(node);
      }
      while (oldest < held_.size() && done(held_[oldest])) ++oldest;
      if (oldest == held_.size()) return std::move(paired_);
      paired_[held_[oldest]] = false;
      ready_.push_back(held_[oldest]);
    }
  }

 private:
  bool is_pair(int node) const { return node < graph_.actions && paired_[node]; }
  bool done(int node) const { return waits_[node] < 0; }

  /// Called when `node` itself has no more open waits. A partner then waits only for its F.
  void arrive(int node) {
    if (is_pair(node) && waits_[node + 1] > 1)
      held_.push_back(node);
    else
      ready_.push_back(node);
  }

  void finish(int node) {
    if (done(node)) return;
    waits_[node] = -1;
    for (int e = graph_.edge_begin[node]; e < graph_.edge_begin[node + 1]; ++e) {
      const int to = graph_.edge_to[e];
      --waits_[to];
      if (waits_[to] == 0) arrive(to);
      if (waits_[to] == 1 && to > 0 && is_pair(to - 1) && waits_[to - 1] == 0)
        ready_.push_back(to - 1);
    }
  }

  const PlanGraph& graph_;
  std::vector<bool> paired_;
  std::vector<int> waits_;         // number of open waits; -1: done
  std::vector<int> ready_, held_;  // held: Fs whose partner has to wait, in order of arrival
};

}  // namespace

IndexedPlan pair_overlaps(IndexedPlan it) {
  const PlanGraph graph = make_graph(it.plan, it.index, Channels::pairs);
  const std::vector<bool> paired = Pairing(graph, find_candidates(it)).run();
  for (std::size_t rank = 0; rank < it.plan.rows.size(); ++rank)
    for (std::size_t i = 0; i < it.plan.rows[rank].size(); ++i)
      if (paired[static_cast<std::size_t>(it.index.row_begin()[rank]) + i])
        it.plan.rows[rank][i].overlapped = true;
  return it;
}

}  // namespace concertina
