// Proves that a plan does all the work once and cannot hang, before anything is launched.
// Invariant: pure, linear in the number of actions; what it accepts the executor can run on either
// kind of channel (parallel/plan/plan_graph.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/plan/plan_index.h"

namespace concertina {

/// The parts that a plan has to have. The defaults are those of a plan that is ready to run.
struct Limits {
  bool transfers = true;      // SEND and RECV at every boundary between ranks; else none at all
  bool reduction = true;      // REDUCE per stage, STEP per rank; else none at all
  int leaf_microbatches = 1;  // of the canonical reduction tree: microbatches / leaves
  std::vector<int> peak_activations{};  // at most, by rank, in microbatches of stages; empty: any
};

/// Transfers and reduction as `plan` has them, with the bounds of `limits`.
Limits limits_of(const Plan& plan, Limits limits = {});

enum class Rule {
  shape,          // one row per rank
  range,          // the action's stage or microbatch does not exist, or its kind is not due
  placement,      // it is in the row of a rank that does not hold the stage
  cover,          // missing, twice, or both B and I or W
  reduction,      // REDUCE or STEP is missing, or before gradients that it needs
  overlap,        // not an F directly followed by a B or I of another microbatch
  dependency,     // before something in its own row that it needs
  channel_order,  // two ranks disagree on the order of their messages
  leaf_order,     // gradients inside a leaf of the reduction tree not in ascending order
  memory,         // more activations saved than allowed
  deadlock,       // no order of execution without buffering
  stream_order,   // none with one stream of transfers per rank
  send_buffer,    // none with kSendBuffers gradients of a rank on their way
};

/// "channel_order".
std::string_view name_of(Rule rule);

/// The advice on a broken rule, in a line.
std::string_view advice_of(Rule rule);

/// An action that is missing, and what it belongs in front of; that may be the end of the row.
struct Gap {
  Action action;
  Place before;
};

/// The first rule that a plan breaks, with the shortest counter-example in one or a few lines.
struct Violation {
  Rule rule = Rule::shape;
  std::string text;
  std::vector<Place> places{};  // the actions that `text` speaks of, each once
  std::optional<Gap> gap{};
};

/// The first rule that the plan breaks, or nothing. Its layout is valid (parallel/plan/layout.h).
std::optional<Violation> check(const IndexedPlan& plan, const Limits& limits);
std::optional<Violation> check(const Plan& plan, const Layout& layout, const Limits& limits = {});

/// The part of check() that comes before there is an index: one row per rank, and no fewer actions
/// than forwards are due. So what follows takes memory and time in proportion to the plan, whatever
/// numbers it has.
std::optional<Violation> check_size(const Plan& plan, const Layout& layout);

}  // namespace concertina
