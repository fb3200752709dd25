#include "parallel/plan/deadlock.h"

#include <algorithm>

#include "core/error.h"

namespace concertina {
namespace {

/// The blocked state of a plan. A blocked item is the head of a row (its first action that cannot
/// run) or the head of a queue (a rank's first incomplete message). All other remaining items
/// follow these, so the wait graph has two points per rank and few edges per point.
/// Point r is the row of rank r, point ranks + r its queue of messages.
class DeadlockReport {
 public:
  DeadlockReport(const Plan& plan, const PlanIndex& index, Channels channels,
                 const PlanGraph& graph, const std::vector<int>& order)
      : plan_(plan),
        index_(index),
        graph_(graph),
        ranks_(static_cast<int>(plan.rows.size())),
        queues_(channels == Channels::stream),
        open_(graph.nodes(), true),
        head_(2 * plan.rows.size(), -1),
        waits_(2 * plan.rows.size()) {
    for (const int node : order) open_[node] = false;
    find_heads();
    find_waits();
  }

  /// A longer cycle is shown by its first and last waits.
  static constexpr std::size_t kFirstWaits = 7, kLastWaits = 3;

  Cycle describe() const {
    Cycle cycle;
    const std::vector<const Wait*> waits = shortest();
    for (std::size_t i = 0; i < waits.size(); ++i) {
      cycle.send_buffer |= waits_for_buffer(*waits[i]);
      if (i >= kFirstWaits && i + kLastWaits < waits.size()) {
        if (i == kFirstWaits)
          cycle.text += fmt::format("\n... {} more", waits.size() - kFirstWaits - kLastWaits);
        continue;
      }
      cycle.text += fmt::format("{}{}", i > 0 ? "\n" : "", line(*waits[i]));
      for (const int node : {head_[waits[i]->from], waits[i]->message, waits[i]->behind})
        add_places(node, cycle.places);
    }
    return cycle;
  }

 private:
  /// Head `from` waits for `message`, which waits for head `to`: for its end `behind`, which comes
  /// after `to` in a row, or for its turn in the queue headed by `to` (`behind` is -1).
  struct Wait {
    int from = 0, message = 0, behind = -1, to = 0;
  };

  bool is_action(int node) const { return node < graph_.actions; }
  const Transfer& transfer(int message) const { return graph_.transfers[message - graph_.actions]; }
  Place at(int action) const { return index_.place(action); }

  void find_heads() {
    for (int rank = 0; rank < ranks_; ++rank)
      for (int node = index_.row_begin()[rank];
           node < index_.row_begin()[rank + 1] && head_[rank] < 0; ++node)
        if (open_[node]) head_[rank] = node;
    if (!queues_) return;
    std::vector<int> first(ranks_, graph_.actions);  // by rank, end of the message at the head of
                                                     // the queue
    for (int message = graph_.actions; message < graph_.nodes(); ++message) {
      if (!open_[message]) continue;
      for (const int end : {transfer(message).send, transfer(message).receive}) {
        const int rank = at(end).rank;
        if (end < first[rank]) first[rank] = end, head_[ranks_ + rank] = message;
      }
    }
  }

  void find_waits() {
    std::vector<int> point_of(graph_.nodes(), -1);
    for (int rank = 0; rank < ranks_; ++rank)
      if (head_[rank] >= 0) point_of[head_[rank]] = rank;
    for (int node = graph_.actions; node < graph_.nodes(); ++node) {
      if (!open_[node]) continue;
      for (int e = graph_.edge_begin[node]; e < graph_.edge_begin[node + 1]; ++e)
        if (const int to = graph_.edge_to[e]; is_action(to) && point_of[to] >= 0)
          add_waits(point_of[to], node);
    }
    for (int point = ranks_; point < 2 * ranks_; ++point)
      if (head_[point] >= 0) add_waits(point, head_[point]);
  }

  void add_waits(int from, int message) {
    for (const int end : {transfer(message).send, transfer(message).receive}) {
      if (end < 0) continue;
      const int rank = at(end).rank, queue = ranks_ + rank;
      if (open_[end])
        waits_[from].push_back({from, message, end, rank});
      else if (queues_ && head_[queue] != message)
        waits_[from].push_back({from, message, -1, queue});
    }
  }

  /// Searches breadth-first from each head, no deeper than the best cycle so far.
  std::vector<const Wait*> shortest() const {
    std::vector<const Wait*> best;
    std::vector<const Wait*> via(waits_.size());  // by point, the wait that led to it
    for (int start = 0; start < 2 * ranks_; ++start) {
      std::fill(via.begin(), via.end(), nullptr);
      std::vector<int> front{start}, depth{0};
      for (std::size_t i = 0; i < front.size() && via[start] == nullptr; ++i) {
        if (!best.empty() && depth[i] + 1 >= std::ssize(best)) break;
        for (const Wait& wait : waits_[front[i]]) {
          if (via[wait.to] != nullptr) continue;
          via[wait.to] = &wait;
          front.push_back(wait.to);
          depth.push_back(depth[i] + 1);
        }
      }
      if (via[start] == nullptr) continue;
      best = {via[start]};
      while (best.back()->from != start) best.push_back(via[best.back()->from]);
      std::reverse(best.begin(), best.end());
    }
    CONCERTINA_CHECK(!best.empty(), "the plan is blocked, but no cycle of waits was found");
    return best;
  }

  /// Whether the head of a row waits for a message sent by its own rank.
  bool waits_for_buffer(const Wait& wait) const {
    const int send = transfer(wait.message).send;
    return is_action(head_[wait.from]) && is_send(action(send).kind) && at(send).rank == wait.from;
  }

  std::string line(const Wait& wait) const {
    const int head = head_[wait.from], send = transfer(wait.message).send;
    const std::string what = is_action(head) ? name(head) : "the message of " + name(send);
    const bool buffer = waits_for_buffer(wait);
    if (wait.behind < 0)
      return fmt::format("{} {} queued on rank {} after that of {}", what,
                         is_action(head) ? "waits for the message of " + name(send) + "," : "is",
                         wait.to - ranks_, name(transfer(head_[wait.to]).send));
    // The awaited end of the message may be the action at which its rank is blocked.
    const std::string behind =
        wait.behind == head_[wait.to]
            ? "is itself waiting"
            : fmt::format("comes after action {} {}", at(head_[wait.to]).position,
                          to_text(action(head_[wait.to])));
    if (buffer && wait.behind == send)
      return fmt::format("{} waits for the send buffer of {}, which {}", what, name(send), behind);
    return fmt::format("{}{} waits for {}{}, which {}", what,
                       buffer ? " needs the send buffer of " + name(send) + " and" : "",
                       name(wait.behind),
                       is_compute(action(wait.behind).kind) ? "" : " to be posted", behind);
  }

  const Action& action(int node) const { return plan_.rows[at(node).rank][at(node).position]; }
  std::string name(int node) const {
    return fmt::format("rank {} action {} {}", at(node).rank, at(node).position,
                       to_text(action(node)));
  }

  void add_places(int node, std::vector<Place>& places) const {
    if (node < 0) return;
    if (!is_action(node)) {
      add_places(transfer(node).send, places);
      add_places(transfer(node).receive, places);
      return;
    }
    const Place place = at(node);
    if (std::find(places.begin(), places.end(), place) == places.end()) places.push_back(place);
  }

  const Plan& plan_;
  const PlanIndex& index_;
  const PlanGraph& graph_;
  const int ranks_;
  const bool queues_;                     // messages wait for each other (one stream per rank)
  std::vector<bool> open_;                // nodes that cannot run
  std::vector<int> head_;                 // by point, a node, or -1 if it has finished
  std::vector<std::vector<Wait>> waits_;  // by point
};

}  // namespace

std::optional<Cycle> find_deadlock(const Plan& plan, const PlanIndex& index, Channels channels) {
  const PlanGraph graph = make_graph(plan, index, channels);
  const std::vector<int> order = graph.order();
  if (static_cast<int>(order.size()) == graph.nodes()) return std::nullopt;
  return DeadlockReport(plan, index, channels, graph, order).describe();
}

}  // namespace concertina
