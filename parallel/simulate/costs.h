// The seconds and bytes of a plan's actions and messages: all that the simulator knows of a machine
// and a model.
// Invariant: plain values; where they come from (unit costs, FLOPs over a rate, a measured run) is
// the caller's business.
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
  double fused = 0;             // of B over I and W apart; negative where it saves something
  std::size_t saved_bytes = 0;  // from F to B or W
  /// Units in the stage: a rank polls its transfers after each. 0: it polls continuously, as ranks
  /// that wait do.
  int units = 0;
};

/// From the mean seconds of a stage's actions by kind, 0 where there are none of it. A stage that
/// has B alone gets it as `input`: nothing says how it splits.
StageCosts stage_costs(double forward, double input, double weight, double backward);

/// Messages between two ranks. A message of n bytes occupies its link for n / bandwidth seconds and
/// arrives `latency` later. In shared memory the copy is the receiver's work: then the bandwidth is
/// infinite and receive_cpu is not 0. Elsewhere the ranks' own time passes while the message does,
/// so a rank that waits meanwhile does not lose it.
struct LinkCosts {
  double latency = 0;
  double bandwidth = std::numeric_limits<double>::infinity();  // bytes a second
  double send_cpu = 0, receive_cpu = 0;                        // seconds a byte, of the rank's time
  /// Bytes that leave at once; the rest of a message waits for its receiver's answer
  /// (parallel/simulate/message_clock.h), whatever the bandwidth is. Infinite: not known.
  double eager_bytes = std::numeric_limits<double>::infinity();
  bool operator==(const LinkCosts&) const = default;
};

/// Gradients that several ranks hold: exchanged as soon as each holder's last one is done, gathered
/// as weights in STEP. Vectors are by holder, in the order of `ranks`.
struct BucketCosts {
  std::vector<int> ranks;       // holders, ascending; more than one
  std::vector<int> stages;      // of the layout, that use it
  std::vector<double> early;    // by stage: seconds from its gradient's end to its action's end
  std::vector<Share> pieces;    // that a holder has of every part before the exchange
  std::vector<double> updated;  // seconds from the start of the update to the end of its part
  double bytes = 0;             // of all parts
  int number = 0;               // weights are gathered in ascending order of it
};

/// Seconds of one rank, once per step.
struct RankCosts {
  double load = 0;     // before the first action
  double norm = 0;     // of its parts' gradients, before all ranks meet in STEP
  double update = 0;   // of its parts, after that
  double refresh = 0;  // packing the new weights
  bool operator==(const RankCosts&) const = default;
};

struct Costs {
  std::vector<StageCosts> stages;  // by stage of the layout
  double boundary_bytes = 0;       // of a message between stages
  double post = 0;                 // seconds of a SEND or RECV
  double combine = 0;              // seconds a byte of gradients that arrive
  std::string exchange_scheme = "all-to-all";
  int leaves = 1;           // of the sum of gradients
  LinkCosts local, remote;  // between ranks of one host, and of two
  std::vector<int> hosts;   // by rank; empty: one host. A host's remote messages share its
                            // one link out and its one link in
  std::map<std::pair<int, int>, LinkCosts> pairs;  // (from, to) that differ from the above
  /// Messages as published simulations have them: each leaves when its producer ends, takes the
  /// latency of its link and occupies neither link nor rank; SEND and RECV take no time, and
  /// nobody waits for a buffer.
  bool latency_alone = false;
  std::vector<BucketCosts> buckets;  // in the order in which exchanges start
  std::vector<RankCosts> ranks;      // by rank; empty: all 0

  /// The seconds of a compute action.
  double seconds(const Action& action) const;
  const LinkCosts& link(int from, int to) const;
  bool is_remote(int from, int to) const;
  /// The scheme of exchanges between ranks on these hosts.
  ExchangeChoice exchange() const { return {exchange_scheme, hosts}; }
  /// Some messages are copies, in time of their ranks.
  bool has_copies() const;
  /// Makes a message take `latency` seconds between any two ranks, and nothing else.
  void take_latency_alone(double latency);
  /// All seconds and bytes are finite numbers: what simulate() needs to come to an end.
  bool is_finite() const;
};

/// F = I = W = 1, everything else 0.
Costs unit_costs(const Layout& layout);

}  // namespace concertina
