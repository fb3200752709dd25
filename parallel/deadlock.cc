#include "parallel/deadlock.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "core/error.h"

namespace concertina {
namespace {

/// Points of standstill: each row's first action that cannot run, and open transfers. Any other
/// open action waits for the first of its row.
class Deadlock {
 public:
  Deadlock(const Plan& plan, const PlanIndex& index, const PlanGraph& graph,
           const std::vector<int>& order)
      : plan_(plan), index_(index), graph_(graph), open_(graph.nodes(), true) {
    for (const int node : order) open_[node] = false;
    for (int rank = 0; rank < static_cast<int>(plan_.rows.size()); ++rank) {
      const auto end = open_.begin() + index_.row_begin()[rank + 1];
      const auto head = std::find(open_.begin() + index_.row_begin()[rank], end, true);
      heads_.push_back(head == end ? -1 : static_cast<int>(head - open_.begin()));
    }
    for (int node = 0; node < graph_.nodes(); ++node)
      for (int e = graph_.edge_begin[node]; open_[node] && e < graph_.edge_begin[node + 1]; ++e)
        waits_[graph_.edge_to[e]].push_back(node);
  }

  std::string describe() const {
    const std::vector<int> circle = shortest_circle();
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < circle.size(); ++i)
      lines.push_back(line(circle[i], circle[(i + 1) % circle.size()]));
    return fmt::format("{}", fmt::join(lines, "\n"));
  }

 private:
  bool is_action(int node) const { return node < graph_.actions; }
  int standstill(int node) const {
    return is_action(node) ? heads_[index_.place(node).rank] : node;
  }

  /// Every circle meets the first open action of a row or the first open transfer of a rank, since
  /// what is behind these waits for them.
  std::vector<int> starts() const {
    std::vector<int> nodes;
    std::set<int> ranks;
    for (const int head : heads_)
      if (head >= 0) nodes.push_back(head);
    std::map<int, int> first;  // end of a transfer that comes first in its rank's row -> transfer
    for (int t = 0; t < static_cast<int>(graph_.transfers.size()); ++t)
      for (const int end : {graph_.transfers[t].send, graph_.transfers[t].receive})
        if (open_[graph_.actions + t] && end >= 0) first.emplace(end, graph_.actions + t);
    for (const auto& [end, transfer] : first)
      if (ranks.insert(index_.place(end).rank).second) nodes.push_back(transfer);
    return nodes;
  }

  /// By breadth-first search from each start.
  std::vector<int> shortest_circle() const {
    std::vector<int> best;
    for (const int start : starts()) {
      std::map<int, int> from;  // node -> the one that waits for it
      std::vector<int> front{start};
      for (std::size_t i = 0; i < front.size() && !from.contains(start); ++i)
        for (const int node : waits_.at(front[i]))
          if (from.try_emplace(standstill(node), front[i]).second)
            front.push_back(standstill(node));
      if (!from.contains(start)) continue;
      std::vector<int> circle{start};
      for (int node = from[start]; node != start; node = from[node]) circle.push_back(node);
      std::reverse(circle.begin() + 1, circle.end());
      if (best.empty() || circle.size() < best.size()) best = std::move(circle);
    }
    CONCERTINA_CHECK(!best.empty(), "the plan stops, but nothing waits in a circle");
    return best;
  }

  std::string line(int node, int next) const {
    const std::vector<int>& waits = waits_.at(node);
    const int target = *std::find_if(waits.begin(), waits.end(),
                                     [&](int wait) { return standstill(wait) == next; });
    const bool queued = !is_action(node) && !is_action(target);
    return fmt::format("{} {} {}", name(node), queued ? "is queued behind" : "waits for",
                       name(target));
  }

  std::string name(int node) const {
    const int action = is_action(node) ? node : graph_.transfers[node - graph_.actions].send;
    const auto [rank, position] = index_.place(action);
    const std::string text = to_text(plan_.rows[rank][position]);
    if (is_action(node)) return fmt::format("rank {} action {} {}", rank, position, text);
    return fmt::format("the message of rank {} {}", rank, text);
  }

  const Plan& plan_;
  const PlanIndex& index_;
  const PlanGraph& graph_;
  std::vector<bool> open_;                 // cannot run
  std::vector<int> heads_;                 // first open action of each row, or -1
  std::map<int, std::vector<int>> waits_;  // node -> open nodes that it waits for
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
