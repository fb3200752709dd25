// Checks that the actions of a plan are in an order that gives the right result.

#include "core/error.h"
#include "parallel/plan/check_rules.h"

namespace concertina {
namespace {

Found check_cell(const Checked& it, int s, int m) {
  const PlanIndex& index = it.index;
  const StageInfo& stage = index.stages()[s];
  const int forward = index.find(Kind::F, s, m);
  const int backward = index.find_input_gradient(s, m);
  const bool local_next = !stage.last && !stage.remote_next;
  const std::pair<int, int> pairs[] = {
      {forward, backward},
      {index.find(Kind::I, s, m), index.find(Kind::W, s, m)},
      {forward, index.find(Kind::SEND_F, s, m)},
      {index.find(Kind::SEND_F, s, m), backward},  // the gradient answers it
      {index.find(Kind::RECV_F, s, m), forward},
      {backward, index.find(Kind::SEND_B, s, m)},
      {index.find(Kind::RECV_B, s, m), backward},
      {forward, local_next ? index.find(Kind::F, s + 1, m) : -1},
      {local_next ? index.find_input_gradient(s + 1, m) : -1, backward},
  };
  for (const auto& [before, after] : pairs)
    if (before >= 0 && after >= 0 && before > after)
      return it.violation(
          Rule::dependency,
          fmt::format("{} precedes {}, which it depends on", it.name(after), it.name(before)),
          {after, before});
  return std::nullopt;
}

/// Nodes of the SENDs or RECVs of each channel, in row order.
std::vector<std::vector<int>> messages(const Checked& it, bool sends) {
  std::vector<std::vector<int>> nodes(it.index.channels());
  for (int rank = 0; rank < it.ranks(); ++rank) {
    int node = it.index.row_begin()[rank];
    for (const Action& action : it.plan.rows[rank]) {
      if (is_transfer(action.kind) && is_send(action.kind) == sends)
        nodes[it.index.channel(action)].push_back(node);
      ++node;
    }
  }
  return nodes;
}

}  // namespace

Found check_overlaps(const Checked& it) {
  for (int rank = 0; rank < it.ranks(); ++rank) {
    const std::vector<Action>& row = it.plan.rows[rank];
    for (int position = 0; position < std::ssize(row); ++position) {
      const Action& action = row[position];
      if (!action.overlapped) continue;
      const int node = it.index.node(rank, position);
      const Kind next = position + 1 < std::ssize(row) ? row[position + 1].kind : Kind::STEP;
      if (action.kind != Kind::F || !makes_input_gradient(next))
        return it.violation(
            Rule::overlap,
            it.name(node) + ": only an F can overlap, with the B or I that follows it", {node});
      if (action.microbatch == row[position + 1].microbatch)
        return it.violation(Rule::overlap,
                            fmt::format("{} overlaps with {}, which depends on it", it.name(node),
                                        it.name(node + 1)),
                            {node, node + 1});
    }
  }
  return std::nullopt;
}

Found check_dependencies(const Checked& it) {
  for (int s = 0; s < std::ssize(it.index.stages()); ++s) {
    const StageInfo& stage = it.index.stages()[s];
    for (int m = stage.first_microbatch; m < stage.last_microbatch; ++m)
      if (Found found = check_cell(it, s, m)) return found;
  }
  return std::nullopt;
}

Found check_reduction(const Checked& it) {
  if (!it.limits.reduction) return std::nullopt;
  for (int s = 0; s < std::ssize(it.index.stages()); ++s) {
    const StageInfo& stage = it.index.stages()[s];
    const int reduce = it.index.find(Kind::REDUCE, s, -1);
    for (int m = stage.first_microbatch; m < stage.last_microbatch; ++m)
      if (const int last = it.index.find_last(s, m); last > reduce)
        return it.violation(Rule::reduction,
                            fmt::format("{} precedes {}, whose gradient it reduces",
                                        it.name(reduce), it.name(last)),
                            {reduce, last});
  }
  return std::nullopt;
}

Found check_channels(const Checked& it) {
  if (!it.limits.transfers) return std::nullopt;
  const auto sends = messages(it, true), receives = messages(it, false);
  for (std::size_t channel = 0; channel < sends.size(); ++channel) {
    for (std::size_t number = 0; number < sends[channel].size(); ++number) {
      const int sent = sends[channel][number], met = receives[channel][number];
      if (it.action(met) == counterpart(it.action(sent))) continue;
      return it.violation(
          Rule::channel_order,
          fmt::format("message {} from rank {} to rank {} is sent by {} but received by {}", number,
                      it.index.place(sent).rank, it.index.place(met).rank, it.name(sent),
                      it.name(met)),
          {sent, met});
    }
  }
  return std::nullopt;
}

Found check_leaves(const Checked& it) {
  const int run = it.limits.leaf_microbatches;
  CONCERTINA_CHECK(run > 0, "leaves of {} microbatches", run);
  if (run == 1) return std::nullopt;
  const auto& stages = it.index.stages();
  for (int s = 0; s < std::ssize(stages); ++s) {
    for (int m = stages[s].first_microbatch + 1; m < stages[s].last_microbatch; ++m) {
      if (!stages[s].trains) break;
      if (m / run != (m - 1) / run) continue;
      const int before = it.index.find_last(s, m - 1), node = it.index.find_last(s, m);
      if (before < node) continue;
      return it.violation(Rule::leaf_order,
                          fmt::format("{} adds to leaf {} of the gradient sum after {}, but the "
                                      "microbatches of a leaf must be in ascending order",
                                      it.name(before), m / run, it.name(node)),
                          {node, before});
    }
  }
  return std::nullopt;
}

Found check_memory(const Checked& it) {
  const std::vector<int>& allowed = it.limits.peak_activations;
  if (allowed.empty()) return std::nullopt;
  CONCERTINA_CHECK(std::ssize(allowed) == it.ranks(), "bounds for {} of {} ranks", allowed.size(),
                   it.ranks());
  for (int rank = 0; rank < it.ranks(); ++rank) {
    int saved = 0, node = it.index.row_begin()[rank];
    for (const Action& action : it.plan.rows[rank]) {
      if (makes_weight_gradient(action.kind)) --saved;
      if (action.kind == Kind::F && it.index.stages()[action.stage].trains &&
          ++saved > allowed[rank])
        return it.violation(
            Rule::memory,
            fmt::format("{} saves activations of {} microbatches at a time, but the limit is {}",
                        it.name(node), saved, allowed[rank]),
            {node});
      ++node;
    }
  }
  return std::nullopt;
}

}  // namespace concertina
