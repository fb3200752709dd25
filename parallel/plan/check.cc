#include "parallel/plan/check.h"

#include <array>
#include <utility>

#include "core/error.h"
#include "parallel/plan/check_rules.h"
#include "parallel/plan/deadlock.h"

namespace concertina {
namespace {

/// In this order: a rule may rely on those before it.
constexpr std::array kRules{check_actions,      check_cover,     check_overlaps,
                            check_dependencies, check_reduction, check_channels,
                            check_leaves,       check_memory,    check_deadlock};

constexpr std::array<std::pair<Rule, std::string_view>, 10> kNames{{
    {Rule::shape, "shape"},
    {Rule::range, "range"},
    {Rule::placement, "placement"},
    {Rule::cover, "cover"},
    {Rule::overlap, "overlap"},
    {Rule::dependency, "dependency"},
    {Rule::channel_order, "channel_order"},
    {Rule::leaf_order, "leaf_order"},
    {Rule::memory, "memory"},
    {Rule::deadlock, "deadlock"},
}};

}  // namespace

std::string_view name_of(Rule rule) {
  for (const auto& [value, name] : kNames)
    if (value == rule) return name;
  CONCERTINA_CHECK(false, "rule {} has no name", static_cast<int>(rule));
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
  const auto find = [&](Channels channels, const char* how) -> Found {
    auto circle = find_deadlock(it.plan, it.index, channels);
    if (!circle) return std::nullopt;
    return Violation{Rule::deadlock,
                     fmt::format("{}, these wait in a circle:\n{}", how, circle->text),
                     std::move(circle->places)};
  };
  if (!it.limits.transfers) return find(Channels::pairs, "without buffering");
  // A stream only adds waits to those of pairs: what it lets through need not be looked at twice.
  Found streamed = find(Channels::stream, "with one stream of transfers a rank");
  if (!streamed) return std::nullopt;
  Found paired = find(Channels::pairs, "without buffering");
  return paired ? paired : streamed;
}

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
  if (Found found = check_size(plan, layout)) return found;
  const PlanIndex index(plan, layout);
  for (const auto rule : kRules)
    if (Found found = rule({plan, limits, index})) return found;
  return std::nullopt;
}

}  // namespace concertina
