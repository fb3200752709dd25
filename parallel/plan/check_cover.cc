// Checks that a plan has exactly the actions of its layout.
#include <cstdint>

#include "core/error.h"
#include "parallel/plan/check_rules.h"

namespace concertina {
namespace {

Found check_action(const Checked& it, const Action& action, int rank, int node) {
  const bool tail = action.kind == Kind::REDUCE || action.kind == Kind::STEP;
  const auto wrong = [&](Rule rule, const std::string& why) {
    return it.violation(rule, it.name(node) + why, {node});
  };
  if (!it.index.contains(action))
    return wrong(Rule::range, ": the layout has no such stage or microbatch");
  if (is_transfer(action.kind) && !it.limits.transfers)
    return wrong(Rule::range, ": this plan must not contain transfers");
  if (tail && !it.limits.reduction)
    return wrong(Rule::range, ": this plan must not contain reductions");
  if (action.kind == Kind::STEP) {
    if (node + 1 == it.index.row_begin()[rank + 1]) return std::nullopt;
    return it.violation(Rule::reduction,
                        it.name(node + 1) + " follows STEP, which must end its row",
                        {node, node + 1});
  }
  const int holder = it.index.stages()[action.stage].rank;
  if (holder != rank)
    return wrong(Rule::placement, fmt::format(": stage {} is on rank {}", action.stage, holder));
  const int first = it.index.find(action);
  if (first == node) return std::nullopt;
  return it.violation(
      Rule::cover,
      fmt::format("{} repeats action {}", it.name(node), it.index.place(first).position),
      {first, node});
}

/// Checks one microbatch on one stage.
class CellCheck {
 public:
  CellCheck(const Checked& it, int stage, int microbatch)
      : it_(it), stage_(stage), microbatch_(microbatch) {}

  Found run() {
    const StageInfo& stage = it_.index.stages()[stage_];
    const bool both = has(Kind::B);
    if (!has(Kind::F)) return absent(Kind::F);
    if (!stage.trains) return check_frozen(stage);
    if (!both && !has(Kind::I) && !has(Kind::W)) return absent(Kind::B);
    if (Found found = check(Kind::I, !both)) return found;
    if (Found found = check(Kind::W, !both)) return found;
    if (!it_.limits.transfers) return std::nullopt;
    if (Found found = check(Kind::SEND_F, stage.remote_next)) return found;
    if (Found found = check(Kind::RECV_B, stage.receives_gradient)) return found;
    if (Found found = check(Kind::RECV_F, stage.remote_previous)) return found;
    return check(Kind::SEND_B, stage.sends_gradient);
  }

 private:
  int find(Kind kind) const { return it_.index.find(kind, stage_, microbatch_); }
  bool has(Kind kind) const { return find(kind) >= 0; }
  Violation absent(Kind kind) const {
    return missing(it_.plan, it_.index.stages()[stage_].rank, {kind, stage_, microbatch_});
  }
  Found check_frozen(const StageInfo& stage) const {
    for (const Kind kind : {Kind::B, Kind::I, Kind::W, Kind::RECV_B, Kind::SEND_B})
      if (Found found = check(kind, false)) return found;
    if (!it_.limits.transfers) return std::nullopt;
    if (Found found = check(Kind::SEND_F, stage.remote_next)) return found;
    return check(Kind::RECV_F, stage.remote_previous);
  }
  Found check(Kind kind, bool due) const {
    const int node = find(kind);
    if (due == (node >= 0)) return std::nullopt;
    if (due) return absent(kind);
    const StageInfo& stage = it_.index.stages()[stage_];
    const char* why = ": the row also has a B, which includes this work";
    if (is_transfer(kind)) why = ": the neighboring stage is not on another rank";
    if (kind == Kind::SEND_B && stage.remote_previous)
      why = ": the previous stage is frozen and needs no gradient";
    if (!stage.trains && kind != Kind::SEND_F && kind != Kind::RECV_F)
      why = ": the stage is frozen and only runs forward";
    return it_.violation(Rule::cover, it_.name(node) + why,
                         {node, stage.trains && is_compute(kind) ? find(Kind::B) : -1});
  }

  const Checked& it_;
  int stage_, microbatch_;
};

}  // namespace

Found check_size(const Plan& plan, const Layout& layout) {
  const int ranks = rank_count(layout);
  if (static_cast<int>(plan.rows.size()) != ranks)
    return Violation{Rule::shape,
                     fmt::format("{} rows for the layout's {} ranks", plan.rows.size(), ranks)};
  const std::vector<StageInfo> stages = stage_infos(layout);
  std::vector<std::int64_t> begin{0};  // by stage, forwards of the preceding stages
  for (const StageInfo& stage : stages)
    begin.push_back(begin.back() + stage.last_microbatch - stage.first_microbatch);
  std::size_t actions = 0;
  for (const std::vector<Action>& row : plan.rows) actions += row.size();
  if (begin.back() <= static_cast<std::int64_t>(actions)) return std::nullopt;

  std::vector<bool> seen(actions + 1, false);  // among this many forwards, at least one must be
                                               // missing
  for (const std::vector<Action>& row : plan.rows) {
    for (const Action& action : row) {
      if (action.kind != Kind::F || action.stage < 0 || action.stage >= std::ssize(stages))
        continue;
      const StageInfo& stage = stages[action.stage];
      if (action.microbatch < stage.first_microbatch || action.microbatch >= stage.last_microbatch)
        continue;
      const auto number = begin[action.stage] + action.microbatch - stage.first_microbatch;
      if (number < std::ssize(seen)) seen[number] = true;
    }
  }
  std::int64_t number = 0;
  while (seen[number]) ++number;
  int s = 0;
  while (begin[s + 1] <= number) ++s;
  const Action forward{Kind::F, s,
                       stages[s].first_microbatch + static_cast<int>(number - begin[s])};
  return missing(plan, stages[s].rank, forward);
}

Found check_actions(const Checked& it) {
  for (int rank = 0; rank < it.ranks(); ++rank) {
    int node = it.index.row_begin()[rank];
    for (const Action& action : it.plan.rows[rank])
      if (Found found = check_action(it, action, rank, node++)) return found;
  }
  return std::nullopt;
}

Found check_cover(const Checked& it) {
  for (int s = 0; s < std::ssize(it.index.stages()); ++s) {
    const StageInfo& stage = it.index.stages()[s];
    for (int m = stage.first_microbatch; m < stage.last_microbatch; ++m)
      if (Found found = CellCheck(it, s, m).run()) return found;
    const int reduce = it.index.find(Kind::REDUCE, s, -1);
    if (reduce >= 0 && !stage.trains)
      return it.violation(Rule::reduction,
                          it.name(reduce) + ": the stage is frozen and has no gradient", {reduce});
    if (it.limits.reduction && reduce < 0 && stage.trains)
      return missing(it.plan, stage.rank, {Kind::REDUCE, s, -1});
  }
  for (int rank = 0; it.limits.reduction && rank < it.ranks(); ++rank) {
    const std::vector<Action>& row = it.plan.rows[rank];
    if (row.empty() || row.back().kind != Kind::STEP)
      return missing(it.plan, rank, {Kind::STEP, 0, -1});
  }
  return std::nullopt;
}

}  // namespace concertina
