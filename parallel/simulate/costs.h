// Durations and sizes of a plan's actions and messages: the simulator's only knowledge of the
// machine and the model.
// Invariant: plain values, provided by the caller (unit costs, FLOPs over a rate, measurements).
#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "parallel/plan/exchange_scheme.h"
#include "parallel/plan/layout.h"
#include "parallel/plan/schedule.h"

namespace concertina {

/// Seconds for one microbatch on one stage. B takes input + weight + fused.
struct StageCosts {
  double forward = 1, input = 1, weight = 1;
  double fused = 0;             // B minus separate I and W; negative if B is faster
  std::size_t saved_bytes = 0;  // kept from F to B or W
  /// Number of units in the stage; a rank polls its transfers after each. 0: it polls continuously,
  /// like waiting ranks.
  int units = 0;
};

/// Computes costs from the mean seconds of a stage's actions by kind (0: none). For a stage with
/// only B, all of it becomes `input`, because the split is unknown.
StageCosts stage_costs(double forward, double input, double weight, double backward);

/// Messages between two ranks. A message of n bytes occupies its link for n / bandwidth seconds and
/// arrives `latency` later. In shared memory, the receiver does the copy: bandwidth is infinite and
/// receive_cpu is not 0. Otherwise the CPU time overlaps with the message, so waiting ranks lose no
/// time.
struct LinkCosts {
  double latency = 0;
  double bandwidth = std::numeric_limits<double>::infinity();  // bytes per second
  double send_cpu = 0, receive_cpu = 0;                        // CPU seconds per byte
  /// Bytes that are sent immediately; the rest of a message waits for the receiver's reply
  /// (parallel/simulate/message_clock.h) at any bandwidth. Infinity: unknown.
  double eager_bytes = std::numeric_limits<double>::infinity();
  bool operator==(const LinkCosts&) const = default;
};

/// Gradients shared by several ranks: exchanged when each holder's last one is done, and gathered
/// as weights in STEP. Vectors are by holder, in the order of `ranks`.
struct BucketCosts {
  std::vector<int> ranks;       // holders, ascending; more than one
  std::vector<int> stages;      // stages of the layout that use it
  std::vector<double> early;    // by stage: seconds from its gradient's end to its action's end
  std::vector<Share> pieces;    // share of every part before the exchange, by holder
  std::vector<double> updated;  // seconds from the start of the update to the end of its part
  double bytes = 0;             // size of all parts
  int number = 0;               // weights are gathered in ascending order
};

/// Seconds that one rank spends once per step.
struct RankCosts {
  double load = 0;     // before the first action
  double norm = 0;     // norms of its parts' gradients, before the ranks synchronize in STEP
  double update = 0;   // update of its parts, afterwards
  double refresh = 0;  // packing the new weights
  bool operator==(const RankCosts&) const = default;
};

struct Costs {
  std::vector<StageCosts> stages;  // by stage of the layout
  double boundary_bytes = 0;       // per message between stages
  double post = 0;                 // seconds per SEND or RECV
  double combine = 0;              // seconds per byte of received gradients
  std::string exchange_scheme = "all-to-all";
  int leaves = 1;           // number of leaves of the gradient sum
  LinkCosts local, remote;  // between ranks on one host, and on different hosts
  std::vector<int> hosts;  // by rank; empty: one host. Remote messages of a host share one link out
                           // and one link in
  std::map<std::pair<int, int>, LinkCosts> pairs;  // (from, to) that differ from the above
  /// Whether messages are modeled as in published simulations: each starts when its producer ends,
  /// takes the latency of its link and occupies neither link nor rank; SEND and RECV take no time,
  /// and there are no waits for buffers.
  bool latency_alone = false;
  std::vector<BucketCosts> buckets;  // ordered by the start of their exchanges
  std::vector<RankCosts> ranks;      // by rank; empty: all 0

  /// The duration of a compute action in seconds.
  double seconds(const Action& action) const;
  const LinkCosts& link(int from, int to) const;
  bool is_remote(int from, int to) const;
  /// The scheme for exchanges between ranks on these hosts.
  ExchangeChoice exchange() const { return {exchange_scheme, hosts}; }
  /// Whether some messages are copies that take CPU time.
  bool has_copies() const;
  /// Sets the duration of every message to `latency` seconds, with no other costs.
  void take_latency_alone(double latency);
  /// Whether all values are finite, as simulate() requires to terminate.
  bool is_finite() const;
};

/// F = I = W = 1, everything else 0.
Costs unit_costs(const Layout& layout);

}  // namespace concertina
