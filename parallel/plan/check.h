// Proves before launch that a plan does all the work exactly once and cannot hang.
// Invariant: pure, linear in the number of actions. The executor can run every accepted plan on
// either kind of channel (parallel/plan/plan_graph.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/plan/plan_index.h"

namespace concertina {

/// The parts that a plan must have. The defaults describe a plan that is ready to run.
struct Limits {
  bool transfers = true;      // SEND and RECV at every boundary between ranks; false: none at all
  bool reduction = true;      // REDUCE per stage and STEP per rank; false: none at all
  int leaf_microbatches = 1;  // microbatches per leaf of the canonical reduction tree
  std::vector<int> peak_activations{};  // limit by rank, in stage activations; empty: none
};

/// Returns `limits` with `transfers` and `reduction` set according to `plan`.
Limits limits_of(const Plan& plan, Limits limits = {});

enum class Rule {
  shape,          // not one row per rank
  range,          // nonexistent stage or microbatch, or unexpected kind
  placement,      // in the row of a rank without that stage
  cover,          // missing, duplicate, or both B and I or W
  reduction,      // REDUCE or STEP is missing or precedes gradients that it needs
  overlap,        // not an F directly followed by a B or I of another microbatch
  dependency,     // precedes an action in its own row that it needs
  channel_order,  // two ranks disagree on the order of their messages
  leaf_order,     // gradients within a leaf of the reduction tree not in ascending order
  memory,         // more activations saved than allowed
  deadlock,       // cannot run without buffering
  stream_order,   // cannot run with one stream of transfers per rank
  send_buffer,    // cannot run with kSendBuffers gradients in flight per rank
};

/// Returns the name, such as "channel_order".
std::string_view name_of(Rule rule);

/// Returns one line of advice on how to fix a broken rule.
std::string_view advice_of(Rule rule);

/// A missing action and the position where it belongs, possibly the end of the row.
struct Gap {
  Action action;
  Place before;
};

/// The first rule that a plan breaks, with the shortest counter-example in a few lines.
struct Violation {
  Rule rule = Rule::shape;
  std::string text;
  std::vector<Place> places{};  // actions mentioned in `text`, each once
  std::optional<Gap> gap{};
};

/// Returns the first rule that the plan breaks, if any. Requires a valid layout (plan/layout.h).
std::optional<Violation> check(const IndexedPlan& plan, const Limits& limits);
std::optional<Violation> check(const Plan& plan, const Layout& layout, const Limits& limits = {});

/// The part of check() that needs no index: one row per rank, and at least as many actions as
/// required forwards. Afterwards, memory and time are proportional to the plan, whatever numbers it
/// contains.
std::optional<Violation> check_size(const Plan& plan, const Layout& layout);

}  // namespace concertina
