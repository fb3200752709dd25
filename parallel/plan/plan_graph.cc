#include "parallel/plan/plan_graph.h"

#include <utility>

#include "core/error.h"

namespace concertina {
namespace {

class GraphBuilder {
 public:
  GraphBuilder(const Plan& plan, const PlanIndex& index, Channels channels)
      : plan_(plan), index_(index), channels_(channels), transfer_of_(index.nodes(), -1) {
    graph_.actions = index.nodes();
  }

  PlanGraph build() && {
    edges_.reserve(static_cast<std::size_t>(4) * index_.nodes());
    add_transfers();
    for (int rank = 0; rank < static_cast<int>(plan_.rows.size()); ++rank) {
      add_row(rank);
      if (channels_ == Channels::stream) add_stream(rank);
    }
    pack_edges();
    return std::move(graph_);
  }

 private:
  void edge(int from, int to) { edges_.emplace_back(from, to); }

  /// Adds one node per pair of SEND and RECV, ordered after the previous one on its channel.
  void add_transfers() {
    std::vector<int> newest(index_.channels(), -1);  // by channel, the latest transfer
    for (int rank = 0; rank < static_cast<int>(plan_.rows.size()); ++rank) {
      for (int position = 0; position < static_cast<int>(plan_.rows[rank].size()); ++position) {
        const Action& action = plan_.rows[rank][position];
        CONCERTINA_CHECK(index_.contains(action), "{} does not belong to this layout",
                         to_text(action));
        if (!is_send(action.kind)) continue;
        const Action receive = counterpart(action);
        const int send_node = index_.node(rank, position), receive_node = index_.find(receive);
        if (receive_node < 0) continue;
        const int transfer = add_transfer(send_node, receive_node);
        edge(receive_node, transfer);
        transfer_of_[send_node] = transfer_of_[receive_node] = transfer;
        const int before = std::exchange(newest[index_.channel(action)], transfer);
        if (before >= 0) edge(before, transfer);
      }
    }
  }

  int add_transfer(int send_node, int receive_node) {
    const int node = graph_.nodes();
    graph_.transfers.push_back({send_node, receive_node});
    edge(send_node, node);
    return node;
  }

  void add_row(int rank) {
    const std::vector<Action>& row = plan_.rows[rank];
    Outbox gradients, activations;
    for (const Action& action : row) {
      if (action.kind == Kind::SEND_B) gradients.sends.push_back(transfer_of_[index_.find(action)]);
      if (action.kind == Kind::SEND_F && index_.stages()[action.stage].sends_unanswered())
        activations.sends.push_back(transfer_of_[index_.find(action)]);
    }
    for (int position = 0; position < static_cast<int>(row.size()); ++position) {
      const Action& action = row[position];
      if (position > 0) edge(index_.node(rank, position - 1), index_.node(rank, position));
      // The first of a pair waits for everything that the second one needs.
      const bool second = position > 0 && row[position - 1].overlapped;
      const int node = index_.node(rank, second ? position - 1 : position);
      const StageInfo& stage = index_.stages()[action.stage];
      if (action.kind == Kind::F && !stage.first)
        wait_for(index_.find(Kind::F, action.stage - 1, action.microbatch),
                 index_.find(Kind::RECV_F, action.stage, action.microbatch), stage.remote_previous,
                 node);
      if (action.kind == Kind::F && stage.sends_unanswered()) wait_for_buffer(activations, node);
      if (!makes_input_gradient(action.kind)) continue;
      if (!stage.last)
        wait_for(index_.find_input_gradient(action.stage + 1, action.microbatch),
                 index_.find(Kind::RECV_B, action.stage, action.microbatch), stage.remote_next,
                 node);
      if (stage.sends_gradient) wait_for_buffer(gradients, node);
    }
  }

  /// A rank's buffers for messages without an answer.
  struct Outbox {
    std::vector<int> sends;  // transfers in row order; none in a plan without transfers
    int taken = 0;           // buffers used so far
  };
  void wait_for_buffer(Outbox& outbox, int node) {
    const int oldest = outbox.taken++ - kSendBuffers;
    if (oldest >= 0 && !outbox.sends.empty() && outbox.sends[oldest] >= 0)
      edge(outbox.sends[oldest], node);
  }

  /// Makes `consumer` wait for the result of `producer`, through `receive` if there is one.
  void wait_for(int producer, int receive, bool remote, int consumer) {
    CONCERTINA_CHECK(producer >= 0, "no action produces the input of node {}", consumer);
    if (!remote)
      edge(last_of_pair(producer), consumer);
    else if (receive < 0)
      edge(add_transfer(last_of_pair(producer), -1), consumer);
    else if (transfer_of_[receive] >= 0)
      edge(transfer_of_[receive], consumer);
  }

  /// Returns the node whose end the consumers of `node` wait for.
  int last_of_pair(int node) const {
    const auto [rank, position] = index_.place(node);
    return plan_.rows[rank][position].overlapped ? node + 1 : node;
  }

  void add_stream(int rank) {
    int newest = -1;
    for (int node = index_.row_begin()[rank]; node < index_.row_begin()[rank + 1]; ++node) {
      if (transfer_of_[node] < 0) continue;
      if (newest >= 0) edge(newest, transfer_of_[node]);
      newest = transfer_of_[node];
    }
  }

  void pack_edges() {
    graph_.edge_begin.assign(graph_.nodes() + 1, 0);
    for (const auto& [from, to] : edges_) ++graph_.edge_begin[from + 1];
    for (int node = 0; node < graph_.nodes(); ++node)
      graph_.edge_begin[node + 1] += graph_.edge_begin[node];
    graph_.edge_to.resize(edges_.size());
    std::vector<int> next = graph_.edge_begin;
    for (const auto& [from, to] : edges_) graph_.edge_to[next[from]++] = to;
  }

  const Plan& plan_;
  const PlanIndex& index_;
  const Channels channels_;
  std::vector<int> transfer_of_;  // by node of a SEND or RECV
  std::vector<std::pair<int, int>> edges_;
  PlanGraph graph_;
};

}  // namespace

std::vector<int> PlanGraph::order() const {
  std::vector<int> waits(nodes(), 0), ready;
  for (const int to : edge_to) ++waits[to];
  for (int node = 0; node < nodes(); ++node)
    if (waits[node] == 0) ready.push_back(node);
  for (std::size_t i = 0; i < ready.size(); ++i)
    for (int e = edge_begin[ready[i]]; e < edge_begin[ready[i] + 1]; ++e)
      if (--waits[edge_to[e]] == 0) ready.push_back(edge_to[e]);
  return ready;
}

PlanGraph make_graph(const Plan& plan, const PlanIndex& index, Channels channels) {
  return GraphBuilder(plan, index, channels).build();
}

}  // namespace concertina
