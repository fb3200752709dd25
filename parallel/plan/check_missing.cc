// Finds where an action that is missing from a plan belongs.
#include <algorithm>

#include "core/error.h"
#include "parallel/plan/check_rules.h"

namespace concertina {
namespace {

/// Position of an action among the actions of one microbatch on one stage.
int turn(Kind kind) {
  constexpr Kind kOrder[] = {Kind::RECV_F, Kind::F, Kind::SEND_F, Kind::RECV_B, Kind::B,
                             Kind::SEND_B, Kind::W, Kind::REDUCE, Kind::STEP};
  const Kind one = kind == Kind::I ? Kind::B : kind;
  return static_cast<int>(std::ranges::find(kOrder, one) - std::begin(kOrder));
}

bool forward(Kind kind) {
  return turn(kind) <= turn(Kind::SEND_F);
}

/// Whether `a` must precede `b` if both are in one row.
bool precedes(const Action& a, const Action& b) {
  if (a.kind == Kind::STEP || b.kind == Kind::STEP) return a.kind != Kind::STEP;
  if (a.kind == Kind::REDUCE || b.kind == Kind::REDUCE)
    return a.stage == b.stage && turn(a.kind) < turn(b.kind);
  if (a.microbatch != b.microbatch) return false;
  if (a.stage == b.stage) return turn(a.kind) < turn(b.kind);
  if (forward(a.kind) != forward(b.kind)) return forward(a.kind);
  return forward(a.kind) ? a.stage < b.stage : a.stage > b.stage;
}

/// Whether `a` usually precedes `b`.
bool leads(const Action& a, const Action& b) {
  return a.stage == b.stage && turn(a.kind) == turn(b.kind) && a.microbatch < b.microbatch;
}

/// Returns the position after everything that the action needs; for a RECV, which needs nothing,
/// the position before the next RECV and the action that needs it.
int due_position(const std::vector<Action>& row, const Action& action) {
  const bool receives = is_transfer(action.kind) && !is_send(action.kind);
  const auto next = std::find_if(row.begin(), row.end(), [&](const Action& other) {
    return precedes(action, other) || (receives && leads(action, other));
  });
  if (receives) return static_cast<int>(next - row.begin());
  const auto last = std::find_if(row.rbegin(), row.rend(), [&](const Action& other) {
    return precedes(other, action) || leads(other, action);
  });
  return static_cast<int>(std::min(next, last.base()) - row.begin());
}

}  // namespace

Violation missing(const Plan& plan, int rank, const Action& action) {
  const std::vector<Action>& row = plan.rows[rank];
  const int position = due_position(row, action);
  const bool tail = action.kind == Kind::REDUCE || action.kind == Kind::STEP;
  Violation result{tail ? Rule::reduction : Rule::cover,
                   fmt::format("{} is missing on rank {}, expected ", to_text(action), rank)};
  result.text += position == std::ssize(row)
                     ? "at the end of its row"
                     : fmt::format("before action {} {}", position, to_text(row[position]));
  result.gap = Gap{action, {rank, position}};
  return result;
}

}  // namespace concertina
