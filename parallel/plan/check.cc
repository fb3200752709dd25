#include "parallel/plan/check.h"

#include <array>
#include <utility>

#include "core/error.h"
#include "parallel/plan/check_rules.h"
#include "parallel/plan/deadlock.h"

namespace concertina {
namespace {

/// In order: a rule may rely on the preceding ones.
constexpr std::array kRules{check_actions,      check_cover,     check_overlaps,
                            check_dependencies, check_reduction, check_channels,
                            check_leaves,       check_memory,    check_deadlock};

Found first_violation(const Checked& it) {
  for (const auto rule : kRules)
    if (Found found = rule(it)) return found;
  return std::nullopt;
}

struct RuleText {
  Rule rule;
  std::string_view name, advice;
};

constexpr std::array kTexts{
    RuleText{Rule::shape, "shape",
             "one row of actions per rank, and at least one stage on each rank"},
    RuleText{Rule::range, "range",
             "stages and microbatches numbered from 0 without gaps, each microbatch on every stage "
             "of its "
             "pipeline"},
    RuleText{Rule::placement, "placement", "all actions of a stage in the row of a single rank"},
    RuleText{Rule::cover, "cover",
             "one F per microbatch and stage, and one B or one I and one W; SEND and RECV at every "
             "stage boundary between ranks, or nowhere (they are added automatically)"},
    RuleText{Rule::reduction, "reduction",
             "one REDUCE_GRAD per trained stage after its last B or W, and STEP at the end of each "
             "row, or none of them (they are added automatically)"},
    RuleText{Rule::overlap, "overlap",
             "(<F>;<B or I>)OVERLAP_F_B of two microbatches, as in (0F1;1B0)OVERLAP_F_B"},
    RuleText{Rule::dependency, "dependency",
             "RECV_F, F, SEND_F, RECV_B, B (or I, later W), SEND_B in this order for each "
             "microbatch and stage; F before F of the next stage, B after B of the next stage"},
    RuleText{Rule::channel_order, "channel_order",
             "RECVs from a rank in the order of that rank's SENDs"},
    RuleText{Rule::leaf_order, "leaf_order",
             "gradients of a stage in the order of the microbatches, or as many leaves as "
             "microbatches, which allows any order (--leaves of `schedule`, numerics.leaves of "
             "a run)"},
    RuleText{Rule::memory, "memory",
             "that F after a B or W that frees saved activations, or a larger bound"},
    RuleText{Rule::deadlock, "deadlock",
             "in each row, the action that another rank waits for before the action that waits: "
             "a RECV before the SEND or computation whose answer depends on it"},
    RuleText{Rule::stream_order, "stream_order",
             "the transfers between two ranks in the same order on both: one receives first where "
             "the other sends first"},
    RuleText{
        Rule::send_buffer, "send_buffer",
        "the SEND that uses the buffer, and its RECV on the other rank, before the action that "
        "needs the buffer: each rank can have 2 unanswered messages in flight"},
};
static_assert(kSendBuffers == 2, "the advice on send buffers states this number");

const RuleText& text_of(Rule rule) {
  for (const RuleText& text : kTexts)
    if (text.rule == rule) return text;
  CONCERTINA_CHECK(false, "rule {} has no text", static_cast<int>(rule));
}

}  // namespace

std::string_view name_of(Rule rule) {
  return text_of(rule).name;
}

std::string_view advice_of(Rule rule) {
  return text_of(rule).advice;
}

const Action& Checked::action(int node) const {
  const auto [rank, position] = index.place(node);
  return plan.rows[rank][position];
}

std::string Checked::name(int node) const {
  const auto [rank, position] = index.place(node);
  return fmt::format("rank {} action {} {}", rank, position, to_text(action(node)));
}

Violation Checked::violation(Rule rule, std::string text, std::initializer_list<int> nodes) const {
  Violation result{rule, std::move(text)};
  for (const int node : nodes)
    if (node >= 0) result.places.push_back(index.place(node));
  return result;
}

Found check_deadlock(const Checked& it) {
  const auto find = [&](Channels channels, Rule rule, const char* how) -> Found {
    auto cycle = find_deadlock(it.plan, it.index, channels);
    if (!cycle) return std::nullopt;
    return Violation{cycle->send_buffer ? Rule::send_buffer : rule,
                     fmt::format("{}, these actions wait in a cycle:\n{}", how, cycle->text),
                     std::move(cycle->places)};
  };
  const auto paired = [&] { return find(Channels::pairs, Rule::deadlock, "without buffering"); };
  if (!it.limits.transfers) return paired();
  // One stream only adds waits, so a plan that passes here also passes with one channel per pair.
  Found streamed =
      find(Channels::stream, Rule::stream_order, "with one stream of transfers per rank");
  if (!streamed) return std::nullopt;
  Found simpler = paired();
  return simpler ? simpler : streamed;
}

Limits limits_of(const Plan& plan, Limits limits) {
  limits.transfers = limits.reduction = false;
  for (const std::vector<Action>& row : plan.rows) {
    for (const Action& action : row) {
      limits.transfers |= is_transfer(action.kind);
      limits.reduction |= action.kind == Kind::REDUCE || action.kind == Kind::STEP;
    }
  }
  return limits;
}

std::optional<Violation> check(const Plan& plan, const Layout& layout, const Limits& limits) {
  if (Found found = check_size(plan, layout)) return found;
  const PlanIndex index(plan, layout);
  return first_violation({plan, limits, index});
}

std::optional<Violation> check(const IndexedPlan& plan, const Limits& limits) {
  if (Found found = check_size(plan.plan, plan.layout)) return found;
  return first_violation({plan.plan, limits, plan.index});
}

}  // namespace concertina
