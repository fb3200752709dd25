// The dependencies of a plan: the common basis of check and simulate.
// Nodes are the plan's actions (numbered as in PlanIndex), then its transfers. An action waits for
// the previous action of its row, a transfer for both its ends, and the consumer for the transfer.
// An overlapped F and the next action act as one: the F waits for what either needs, and its
// consumers wait for the end of both. Invariant: a plan for which `order` reaches every node cannot
// deadlock on the kind of channels that the graph was made for.
#pragma once

#include <vector>

#include "parallel/plan/plan_index.h"

namespace concertina {

/// Number of buffers of a rank for gradients in flight to the previous stage, and for outputs of
/// frozen stages in flight to the next one: messages without an answer. A B or I (or F) that needs
/// one more waits for its rank's oldest SEND_B (or SEND_F) in flight.
inline constexpr int kSendBuffers = 2;

/// How messages wait for each other, always without buffering; posts do not block.
enum class Channels {
  pairs,   // in order between each ordered pair of ranks (MPI without tags)
  stream,  // all transfers of a rank in the order of its row, one at a time (NCCL, one stream)
};

/// A message between two ranks. In a plan without SEND and RECV it starts automatically when its
/// producer ends; then `send` is that producer and `receive` is -1.
struct Transfer {
  int send = -1, receive = -1;  // nodes
};

struct PlanGraph {
  int actions = 0;
  std::vector<Transfer> transfers;
  /// Successors of node n: edge_to[edge_begin[n]] up to edge_begin[n + 1].
  std::vector<int> edge_begin, edge_to;

  int nodes() const { return actions + static_cast<int>(transfers.size()); }
  /// A topological order that omits nodes on a cycle and nodes that depend on one.
  std::vector<int> order() const;
};

/// `index` belongs to `plan`. The plan contains every action exactly once, in a valid order within
/// each row, with transfers either at all stage boundaries or at none.
PlanGraph make_graph(const Plan& plan, const PlanIndex& index, Channels channels);

}  // namespace concertina
