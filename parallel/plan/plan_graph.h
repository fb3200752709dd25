// Who waits for whom in a plan: the common ground of check and simulate.
// Nodes are the plan's actions (numbered as in PlanIndex), then its transfers. An action waits for
// the action before it in its row; a transfer for both its ends; what consumes it, for the
// transfer. An overlapped F and the action after it are one: the F waits for what either needs,
// and its consumers wait for the other's end. Invariant: a plan of which `order` reaches every node
// cannot deadlock on channels of that kind.
#pragma once

#include <vector>

#include "parallel/plan/plan_index.h"

namespace concertina {

/// Buffers a rank has for gradients on their way to the previous stage, and as many for outputs of
/// frozen stages on their way to the next one: messages that nothing answers. The B or I (the F)
/// that needs one more waits for the oldest of these SEND_Bs (SEND_Fs) of its rank.
inline constexpr int kSendBuffers = 2;

/// How messages wait for each other. Always without buffering, and posts do not block.
enum class Channels {
  pairs,   // in order between each ordered pair of ranks (MPI without tags)
  stream,  // all transfers of a rank in the order of its row, one at a time (NCCL, one stream)
};

/// A message between two ranks. In a plan without SEND and RECV the message starts by itself when
/// its producer ends: then `send` is that producer, and `receive` is -1.
struct Transfer {
  int send = -1, receive = -1;  // nodes
};

struct PlanGraph {
  int actions = 0;
  std::vector<Transfer> transfers;
  /// Successors of node n: edge_to[edge_begin[n]] up to edge_begin[n + 1].
  std::vector<int> edge_begin, edge_to;

  int nodes() const { return actions + static_cast<int>(transfers.size()); }
  /// A topological order; nodes on a cycle, and those after one, are left out.
  std::vector<int> order() const;
};

/// `index` belongs to `plan` and `layout`; the plan has every action exactly once, in an order that
/// each row by itself allows, and has transfers either for all stage boundaries or for none.
PlanGraph make_graph(const Plan& plan, const PlanIndex& index, Channels channels);

}  // namespace concertina
