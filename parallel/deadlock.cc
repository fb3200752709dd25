#include "parallel/deadlock.h"

#include <algorithm>
#include <map>
#include <vector>

#include "core/error.h"

namespace concertina {
namespace {

/// Why a rank stands still: the node that rank `on` has to reach first, and what is queued between.
struct Wait {
  int on = 0;
  int node = 0;
  int behind = -1;  // the last transfer on the way there, or -1
};

class Deadlock {
 public:
  Deadlock(const Plan& plan, const PlanIndex& index, const PlanGraph& graph,
           const std::vector<int>& order)
      : plan_(plan), index_(index), graph_(graph), done_(graph.nodes(), false) {
    for (const int node : order) done_[node] = true;
    find_heads();
    find_open_predecessors();
    for (const auto& [rank, head] : heads_) waits_[rank] = find_waits(head);
  }

  std::string describe() const {
    std::vector<int> cycle = shortest_cycle();
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < cycle.size(); ++i)
      lines.push_back(line(cycle[i], cycle[(i + 1) % cycle.size()]));
    return fmt::format("{}", fmt::join(lines, "\n"));
  }

 private:
  /// The action at which each rank stops.
  void find_heads() {
    for (int rank = 0; rank < static_cast<int>(plan_.rows.size()); ++rank) {
      const auto begin = done_.begin() + index_.row_begin()[rank];
      const auto end = done_.begin() + index_.row_begin()[rank + 1];
      const auto head = std::find(begin, end, false);
      if (head != end) heads_[rank] = static_cast<int>(head - done_.begin());
    }
  }

  void find_open_predecessors() {
    for (int node = 0; node < graph_.nodes(); ++node) {
      if (done_[node]) continue;
      for (int e = graph_.edge_begin[node]; e < graph_.edge_begin[node + 1]; ++e)
        predecessors_[graph_.edge_to[e]].push_back(node);
    }
  }

  /// What keeps `head` waiting: the first open actions back from it, through transfers.
  std::vector<Wait> find_waits(int head) const {
    std::vector<Wait> waits;
    std::vector<bool> seen(graph_.transfers.size(), false);
    std::vector<int> front{head};
    for (std::size_t i = 0; i < front.size(); ++i) {
      const auto found = predecessors_.find(front[i]);
      if (found == predecessors_.end()) continue;
      for (const int node : found->second) {
        if (node < graph_.actions)
          waits.push_back({index_.place(node).rank, node, front[i] == head ? -1 : front[i]});
        else if (!seen[node - graph_.actions]) {
          seen[node - graph_.actions] = true;
          front.push_back(node);
        }
      }
    }
    return waits;
  }

  /// By breadth-first search from each rank that stands still.
  std::vector<int> shortest_cycle() const {
    std::vector<int> best;
    for (const auto& [start, head] : heads_) {
      std::map<int, int> from;  // rank -> the one that waits for it
      std::vector<int> front{start};
      for (std::size_t i = 0; i < front.size() && !from.contains(start); ++i)
        for (const Wait& wait : waits_.at(front[i]))
          if (from.try_emplace(wait.on, front[i]).second) front.push_back(wait.on);
      if (!from.contains(start)) continue;
      std::vector<int> cycle{start};
      for (int rank = from[start]; rank != start; rank = from[rank]) cycle.push_back(rank);
      std::reverse(cycle.begin() + 1, cycle.end());
      if (best.empty() || cycle.size() < best.size()) best = std::move(cycle);
    }
    CONCERTINA_CHECK(!best.empty(), "the plan stops, but no rank waits in a circle");
    return best;
  }

  std::string line(int rank, int on) const {
    const std::vector<Wait>& waits = waits_.at(rank);
    const Wait& wait =
        *std::find_if(waits.begin(), waits.end(), [&](const Wait& w) { return w.on == on; });
    std::string text = fmt::format("{} waits for {}", name(heads_.at(rank)), name(wait.node));
    if (wait.behind >= 0) {
      const Transfer& transfer = graph_.transfers[wait.behind - graph_.actions];
      const int post = transfer.send == wait.node ? transfer.receive : transfer.send;
      if (post >= 0) text += fmt::format(" (the other end of {})", name(post));
    }
    return text;
  }

  std::string name(int node) const {
    const auto [rank, position] = index_.place(node);
    return fmt::format("rank {} action {} {}", rank, position, to_text(plan_.rows[rank][position]));
  }

  const Plan& plan_;
  const PlanIndex& index_;
  const PlanGraph& graph_;
  std::vector<bool> done_;
  std::map<int, int> heads_;                      // by rank
  std::map<int, std::vector<int>> predecessors_;  // of open nodes, open themselves
  std::map<int, std::vector<Wait>> waits_;        // by rank
};

}  // namespace

std::optional<std::string> find_deadlock(const Plan& plan, const PlanIndex& index,
                                         Channels channels) {
  const PlanGraph graph = make_graph(plan, index, channels);
  const std::vector<int> order = graph.order();
  if (static_cast<int>(order.size()) == graph.nodes()) return std::nullopt;
  return Deadlock(plan, index, graph, order).describe();
}

}  // namespace concertina
