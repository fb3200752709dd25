#include "experiments/adopt/idle_policies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/text/number_text.h"

namespace concertina {
namespace {

constexpr std::int64_t kMostAsked = 10000;  // decisions; bounds the cost for long runs

std::int64_t decisions(const FreezePoints& points) {
  const std::int64_t before_last = std::max<std::int64_t>(0, points.steps - 1);
  return points.every > 0 ? before_last / points.every : std::min(points.epochs, before_last);
}

/// Decision `number`, counted from 1, on layers whose gradient norms decrease with the layer index.
FreezeRecord decision_point(const FreezeRules& rules, const FreezePoints& points,
                            std::int64_t number) {
  FreezeRecord record{.loss = 1, .lr = 1};
  record.epoch = static_cast<double>(number);
  record.step =
      points.every > 0
          ? number * points.every
          : std::min(points.steps - 1,
                     static_cast<std::int64_t>(std::ceil(record.epoch * points.steps_per_epoch)));
  if (points.every > 0)
    record.epoch = std::min(static_cast<double>(points.epochs),
                            std::floor(static_cast<double>(record.step) / points.steps_per_epoch));
  for (int layer = 0; layer < rules.layers; ++layer) record.grad_norm.push_back(1.0 / (layer + 1));
  return record;
}

struct LastWord {
  bool freezes = false;   // also true if unknown
  std::int64_t step = 0;  // step of the freeze, if known
  std::string reason{};   // the last decision's reason, if no decision freezes anything
};

LastWord ask_all(const FreezeRules& rules, const FreezePoints& points) {
  FreezeState state;
  LastWord last;
  const std::int64_t all = decisions(points);
  for (std::int64_t number = 1; number <= all; ++number) {
    if (number > kMostAsked) {
      if (!state.memory.empty())
        return {.freezes = true};  // depends on all earlier decisions: too many to simulate
      number = all;
    }
    FreezeRecord record = decision_point(rules, points, number);
    const FreezeDecision decision = decide(rules, state, record);
    if (decision.frozen > 0) return {.freezes = true, .step = record.step};
    state = remember(rules, std::move(state), std::move(record), decision);
    last.reason = decision.reason;
  }
  return last;
}

std::string pace_text(const FreezeRules& rules, const FreezePoints& points) {
  const std::string pace =
      points.every > 0 ? fmt::format("every {}", counted(points.every, "step"))
                       : fmt::format("after each epoch of {:.4g} steps", points.steps_per_epoch);
  return fmt::format("freeze.policy = \"{}\" decides {}", rules.name, pace);
}

/// A warning about options whose time is after the last decision; empty if there are none.
std::string unreached_text(const FreezeRules& rules, const FreezePoints& points) {
  if (rules.policy->unreached == nullptr) return "";
  const FreezeRecord end = decision_point(rules, points, decisions(points));
  const std::string parts = rules.policy->unreached(rules.options, end);
  if (parts.empty()) return "";
  return fmt::format(
      "{} will never be reached: the last decision before the run ends is after "
      "step {} (epochs done: {})",
      parts, end.step, end.epoch);
}

}  // namespace

bool may_freeze(const FreezeRules& rules, const FreezePoints& points) {
  if (rules.name == "none" || rules.policy->plan_skips != nullptr || decisions(points) == 0)
    return false;
  return !rules.policy->foreseen || ask_all(rules, points).freezes;
}

std::string idle_freezing(const FreezeRules& rules, const FreezePoints& points) {
  if (rules.name == "none" || points.steps == 0) return "";
  const std::int64_t count = decisions(points);
  if (may_freeze(rules, points)) return unreached_text(rules, points);
  if (rules.policy->plan_skips != nullptr && count > 0) return "";
  const std::string never = rules.policy->plan_skips == nullptr
                                ? "nothing will ever be frozen: "
                                : "no weight gradient will ever be skipped: ";
  const std::string pace = pace_text(rules, points);
  if (count == 0)
    return fmt::format("{}{}, but the run has only {}; set freeze.every to a smaller value", never,
                       pace, counted(points.steps, "step"));
  const std::string unreached = unreached_text(rules, points);
  if (!unreached.empty()) return fmt::format("{}{}; {}", never, pace, unreached);
  return fmt::format(
      "{}{}, {} before the run ends, and no decision freezes a layer (last "
      "reason: {})",
      never, pace, counted(count, "time"), ask_all(rules, points).reason);
}

std::vector<ForeseenFreeze> foreseen_freezes(const FreezeRules& rules, const FreezePoints& points) {
  if (!rules.policy->foreseen || rules.unfreeze != Unfreeze::never) return {};
  std::vector<ForeseenFreeze> freezes;
  FreezeState state;
  int frozen = 0;
  const std::int64_t all = std::min(kMostAsked, decisions(points));
  for (std::int64_t number = 1; number <= all; ++number) {
    FreezeRecord record = decision_point(rules, points, number);
    record.frozen = frozen;
    const FreezeDecision decision = decide(rules, state, record);
    if (decision.frozen > frozen) freezes.push_back({record.step, decision.frozen});
    frozen = decision.frozen;
    state = remember(rules, std::move(state), std::move(record), decision);
  }
  return freezes;
}

std::string early_freezing(const FreezeRules& rules, const FreezePoints& points,
                           std::int64_t warmup) {
  if (rules.policy->says_when && may_freeze(rules, points))
    if (const std::int64_t step = ask_all(rules, points).step; step < warmup)
      return fmt::format(
          "freeze.policy = \"{}\" freezes a layer after step {}, before "
          "learning-rate warm-up ends (step {})",
          rules.name, step, warmup);
  return "";
}

std::string idle_repartition(const RunConfig& config, bool freezes) {
  const ElasticSection& elastic = config.elastic;
  const bool at_steps = elastic.every > 0 && elastic.every < config.run.steps;
  if (elastic.policy == "none" || freezes || at_steps || config.run.steps == 0) return "";
  return fmt::format(
      "elastic.policy = \"{}\" will never decide: nothing freezes during the run, "
      "and elastic.every = {}{}",
      elastic.policy, elastic.every,
      elastic.every > 0 ? fmt::format(" of {}", counted(config.run.steps, "step"))
                        : std::string("; set elastic.every to a number of steps"));
}

std::string timed_training(const RunConfig& config) {
  const auto& policy =
      lookup(layout_policies(), config.elastic.policy, "layout policy", "elastic.policy");
  if (!policy.by_times || config.elastic.batch != "grows") return "";
  return fmt::format(
      "elastic.policy = \"{}\" decides based on measured times, and with elastic.batch = \"grows\" "
      "the batch size depends on its decisions: a rerun may give different weights",
      config.elastic.policy);
}

}  // namespace concertina
