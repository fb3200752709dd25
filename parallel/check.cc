#include "parallel/check.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/error.h"
#include "parallel/deadlock.h"
#include "parallel/plan_index.h"
#include "parallel/plan_memory.h"

namespace concertina {
namespace {

using Found = std::optional<Violation>;

class Checker {
 public:
  Checker(const Plan& plan, const Layout& layout, const Limits& limits)
      : plan_(plan), limits_(limits), index_(plan, layout), ranks_(rank_count(layout)) {}

  Found run() const {
    if (static_cast<int>(plan_.rows.size()) != ranks_)
      return Violation{Rule::shape,
                       fmt::format("{} rows for the layout's {} ranks", plan_.rows.size(), ranks_)};
    if (Found found = check_actions()) return found;
    if (Found found = check_cover()) return found;
    if (Found found = check_overlaps()) return found;
    if (Found found = check_dependencies()) return found;
    if (Found found = check_channels()) return found;
    if (Found found = check_leaves()) return found;
    if (Found found = check_memory()) return found;
    return check_deadlock();
  }

 private:
  std::string name(int node) const {
    const auto [rank, position] = index_.place(node);
    return fmt::format("rank {} action {} {}", rank, position, to_text(plan_.rows[rank][position]));
  }

  /// Each action by itself: it exists, is due, is on the right rank, is there once, not too late.
  Found check_actions() const {
    for (int rank = 0; rank < ranks_; ++rank) {
      const std::vector<Action>& row = plan_.rows[rank];
      for (int position = 0; position < static_cast<int>(row.size()); ++position) {
        const int node = index_.node(rank, position);
        const Action& action = row[position];
        if (Found found = check_action(action, rank, node)) return found;
        if (position == 0) continue;
        const Kind before = row[position - 1].kind;
        if (before == Kind::STEP)
          return Violation{Rule::dependency, name(node) + " comes after STEP, which ends a row"};
        if (before == Kind::REDUCE && action.kind != Kind::REDUCE && action.kind != Kind::STEP)
          return Violation{Rule::dependency,
                           name(node) + " comes after a reduction, which may wait for all ranks"};
      }
    }
    return std::nullopt;
  }

  Found check_action(const Action& action, int rank, int node) const {
    const bool tail = action.kind == Kind::REDUCE || action.kind == Kind::STEP;
    if (!index_.contains(action))
      return Violation{Rule::range, name(node) + ": the layout has no such stage or microbatch"};
    if (is_transfer(action.kind) && !limits_.transfers)
      return Violation{Rule::range, name(node) + ": transfers are not due in this plan"};
    if (tail && !limits_.reduction)
      return Violation{Rule::range, name(node) + ": reductions are not due in this plan"};
    if (action.kind == Kind::STEP) return std::nullopt;
    const int holder = index_.stages()[action.stage].rank;
    if (holder != rank)
      return Violation{Rule::placement,
                       fmt::format("{}: stage {} is on rank {}", name(node), action.stage, holder)};
    const int first = index_.find(action);
    if (first != node)
      return Violation{Rule::cover, fmt::format("{} repeats action {}", name(node),
                                                index_.place(first).position)};
    return std::nullopt;
  }

  /// Nothing is missing, and nothing is there that nobody needs.
  Found check_cover() const {
    for (int s = 0; s < static_cast<int>(index_.stages().size()); ++s) {
      const StageInfo& stage = index_.stages()[s];
      for (int m = stage.first_microbatch; m < stage.last_microbatch; ++m) {
        const bool both = index_.find(Kind::B, s, m) >= 0;
        if (Found found = check_presence({Kind::F, s, m}, true)) return found;
        if (!both && index_.find(Kind::I, s, m) < 0 && index_.find(Kind::W, s, m) < 0)
          return missing({Kind::B, s, m});
        if (Found found = check_presence({Kind::I, s, m}, !both)) return found;
        if (Found found = check_presence({Kind::W, s, m}, !both)) return found;
        if (!limits_.transfers) continue;
        if (Found found = check_presence({Kind::SEND_F, s, m}, stage.remote_next)) return found;
        if (Found found = check_presence({Kind::RECV_B, s, m}, stage.remote_next)) return found;
        if (Found found = check_presence({Kind::RECV_F, s, m}, stage.remote_previous)) return found;
        if (Found found = check_presence({Kind::SEND_B, s, m}, stage.remote_previous)) return found;
      }
      if (limits_.reduction)
        if (Found found = check_presence({Kind::REDUCE, s, -1}, true)) return found;
    }
    for (int rank = 0; limits_.reduction && rank < ranks_; ++rank)
      if (plan_.rows[rank].empty() || plan_.rows[rank].back().kind != Kind::STEP)
        return Violation{Rule::cover, fmt::format("rank {} does not end with STEP", rank)};
    return std::nullopt;
  }

  Found missing(const Action& action) const {
    return Violation{Rule::cover, fmt::format("{} is missing on rank {}", to_text(action),
                                              index_.stages()[action.stage].rank)};
  }

  Found check_presence(const Action& action, bool due) const {
    const int node = index_.find(action);
    if (due && node < 0) return missing(action);
    if (due || node < 0) return std::nullopt;
    return Violation{Rule::cover, name(node) + (is_transfer(action.kind)
                                                    ? ": the neighbour stage is on this rank too"
                                                    : ": the same work is also in a B")};
  }

  /// An overlapped F has a partner that does not need it. Of one microbatch, it would: forwards of
  /// all stages come before the first backward.
  Found check_overlaps() const {
    for (int rank = 0; rank < ranks_; ++rank) {
      const std::vector<Action>& row = plan_.rows[rank];
      for (int position = 0; position < static_cast<int>(row.size()); ++position) {
        const Action& action = row[position];
        if (!action.overlapped) continue;
        const int node = index_.node(rank, position);
        const bool has_next = position + 1 < static_cast<int>(row.size());
        const Kind next = has_next ? row[position + 1].kind : Kind::STEP;
        if (action.kind != Kind::F || (next != Kind::B && next != Kind::I))
          return Violation{Rule::overlap,
                           name(node) + ": only an F overlaps, with a B or I right behind it"};
        if (action.microbatch == row[position + 1].microbatch)
          return Violation{Rule::overlap, fmt::format("{} overlaps with {}, which needs it",
                                                      name(node), name(node + 1))};
      }
    }
    return std::nullopt;
  }

  /// What an action needs from its own row stands before it.
  Found check_dependencies() const {
    const std::vector<StageInfo>& stages = index_.stages();
    for (int s = 0; s < static_cast<int>(stages.size()); ++s) {
      for (int m = stages[s].first_microbatch; m < stages[s].last_microbatch; ++m) {
        const int forward = index_.find(Kind::F, s, m);
        const int backward = index_.find_input_gradient(s, m);
        const bool local_next = !stages[s].last && !stages[s].remote_next;
        const std::pair<int, int> pairs[] = {
            {forward, backward},
            {index_.find(Kind::I, s, m), index_.find(Kind::W, s, m)},
            {forward, index_.find(Kind::SEND_F, s, m)},
            {index_.find(Kind::RECV_F, s, m), forward},
            {backward, index_.find(Kind::SEND_B, s, m)},
            {index_.find(Kind::RECV_B, s, m), backward},
            {forward, local_next ? index_.find(Kind::F, s + 1, m) : -1},
            {local_next ? index_.find_input_gradient(s + 1, m) : -1, backward},
        };
        for (const auto& [before, after] : pairs)
          if (before >= 0 && after >= 0 && before > after)
            return Violation{Rule::dependency, fmt::format("{} comes before {}, which it needs",
                                                           name(after), name(before))};
      }
    }
    return std::nullopt;
  }

  /// Channels have no tags: the k-th SEND from one rank to another meets the k-th RECV.
  Found check_channels() const {
    std::map<std::pair<int, int>, std::vector<int>> receives;  // nodes, by (from, to)
    std::map<std::pair<int, int>, std::size_t> sent;
    const auto each = [&](auto visit) {
      for (int rank = 0; rank < ranks_; ++rank)
        for (const Action& action : plan_.rows[rank])
          if (is_transfer(action.kind))
            visit(action, rank, index_.stages()[counterpart(action).stage].rank);
    };
    each([&](const Action& action, int rank, int peer) {
      if (!is_send(action.kind)) receives[{peer, rank}].push_back(index_.find(action));
    });
    Found found;
    each([&](const Action& action, int rank, int peer) {
      if (!is_send(action.kind) || found) return;
      const std::size_t number = sent[{rank, peer}]++;
      const int met = receives[{rank, peer}][number];
      if (met != index_.find(counterpart(action)))
        found = Violation{
            Rule::channel_order,
            fmt::format("message {} from rank {} to rank {} is sent by {} but received by {}",
                        number, rank, peer, name(index_.find(action)), name(met))};
    });
    return found;
  }

  Found check_leaves() const {
    std::map<std::pair<int, int>, int> newest;  // node of the last W or B, by (stage, leaf)
    for (int rank = 0; rank < ranks_; ++rank) {
      for (const Action& action : plan_.rows[rank]) {
        if (action.kind != Kind::B && action.kind != Kind::W) continue;
        const int node = index_.find(action), leaf = action.microbatch / limits_.leaf_microbatches;
        const auto [entry, is_first] = newest.try_emplace({action.stage, leaf}, node);
        const int before = std::exchange(entry->second, node);
        const auto [row, position] = index_.place(before);
        if (!is_first && plan_.rows[row][position].microbatch > action.microbatch)
          return Violation{Rule::leaf_order,
                           fmt::format("{} adds to leaf {} of the gradient sum after {}; "
                                       "microbatches of a leaf must ascend",
                                       name(node), leaf, name(before))};
      }
    }
    return std::nullopt;
  }

  Found check_memory() const {
    for (int rank = 0; rank < static_cast<int>(limits_.peak_activations.size()); ++rank) {
      const auto peak = peak_saved(plan_.rows.at(rank), [](int) { return std::size_t{1}; });
      if (static_cast<int>(peak) > limits_.peak_activations[rank])
        return Violation{Rule::memory,
                         fmt::format("rank {} saves activations of {} microbatches at a time; {} "
                                     "are allowed",
                                     rank, peak, limits_.peak_activations[rank])};
    }
    return std::nullopt;
  }

  Found check_deadlock() const {
    if (auto cycle = find_deadlock(plan_, index_, Channels::pairs))
      return Violation{Rule::deadlock, "without buffering, these wait in a circle:\n" + *cycle};
    if (!limits_.transfers) return std::nullopt;
    if (auto cycle = find_deadlock(plan_, index_, Channels::stream))
      return Violation{Rule::deadlock,
                       "with one stream of transfers a rank, these wait in a circle:\n" + *cycle};
    return std::nullopt;
  }

  const Plan& plan_;
  const Limits& limits_;
  const PlanIndex index_;
  const int ranks_;
};

}  // namespace

Limits limits_of(const Plan& plan) {
  Limits limits{.transfers = false, .reduction = false};
  for (const std::vector<Action>& row : plan.rows) {
    for (const Action& action : row) {
      limits.transfers |= is_transfer(action.kind);
      limits.reduction |= action.kind == Kind::REDUCE || action.kind == Kind::STEP;
    }
  }
  return limits;
}

std::optional<Violation> check(const Plan& plan, const Layout& layout, const Limits& limits) {
  return Checker(plan, layout, limits).run();
}

}  // namespace concertina
