#include "parallel/policies/freeze_rules.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/text/number_text.h"

namespace concertina {
namespace {

bool all_finite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

bool is_finite(const FreezeRecord& record) {
  return std::isfinite(record.epoch) && std::isfinite(record.loss) && std::isfinite(record.lr) &&
         all_finite(record.grad_norm) && all_finite(record.drift);
}

/// Whether it is too early to call the policy.
bool waits(const FreezeRules& rules, const FreezeRecord& now) {
  return now.step < rules.after && now.frozen == 0;
}

void check_record(const FreezeRules& rules, const FreezeRecord& now) {
  const auto layers = static_cast<std::size_t>(rules.layers);
  CONCERTINA_CHECK(now.frozen >= 0 && now.frozen <= rules.layers, "{} of {} layers are frozen",
                   now.frozen, rules.layers);
  CONCERTINA_CHECK(now.grad_norm.size() == layers, "gradient norms for {} of {} layers",
                   now.grad_norm.size(), rules.layers);
  CONCERTINA_CHECK(now.drift.empty() || now.drift.size() == layers, "drift for {} of {} layers",
                   now.drift.size(), rules.layers);
}

/// Number of records before the current one that the policy reads.
std::size_t records_before(const FreezeRules& rules) {
  const int records = rules.policy->records == nullptr ? 1 : rules.policy->records(rules.options);
  CONCERTINA_CHECK(records >= 1 && records <= kMostFreezeRecords, "a history of {} records",
                   records);
  return static_cast<std::size_t>(records) - 1;
}

FreezeDecision unfreeze_all(const FreezeRules& rules, double statistic, std::string reason) {
  return {.frozen = 0,
          .statistic = statistic,
          .reason = std::move(reason) + ": all layers train again",
          .take_reference = rules.policy->wants_reference};
}

/// Returns the unfreezing that is due, if any.
std::optional<FreezeDecision> unfreezing(const FreezeRules& rules, const FreezeState& state,
                                         const FreezeRecord& now) {
  if (now.frozen == 0) return std::nullopt;
  if (rules.unfreeze == Unfreeze::loss && state.best_loss) {
    const double best = *state.best_loss, limit = best + rules.rise * std::abs(best);
    if (now.loss > limit)
      return unfreeze_all(rules, now.loss,
                          fmt::format("the loss is {:.4g}, above {:.4g}, after a low of {:.4g}",
                                      now.loss, limit, best));
  }
  if (rules.unfreeze == Unfreeze::lr && state.lr_fell && now.lr > state.last_lr.value_or(now.lr))
    return unfreeze_all(
        rules, now.lr,
        fmt::format("the learning rate rose from {:.4g} to {:.4g}", *state.last_lr, now.lr));
  return std::nullopt;
}

/// Returns the policy's decision, before the bound is applied.
FreezeDecision ask(const FreezeRules& rules, const FreezeState& state, const FreezeRecord& now) {
  const std::size_t kept = std::min(records_before(rules), state.history.size());
  std::vector<FreezeRecord> history(state.history.end() - static_cast<std::ptrdiff_t>(kept),
                                    state.history.end());
  history.push_back(now);
  const FreezeView view{.layers = rules.layers,
                        .most = rules.most,
                        .steps = rules.steps,
                        .from_step = state.from_step,
                        .from_epoch = state.from_epoch,
                        .history = history,
                        .memory = state.memory,
                        .skips = &state.planned};
  FreezeDecision decision = rules.policy->decide(view, rules.options);
  CONCERTINA_CHECK(!decision.skips || rules.policy->plan_skips != nullptr,
                   "the policy skips weight gradients without a plan");
  CONCERTINA_CHECK(decision.memory.size() <= 4 + 2 * static_cast<std::size_t>(rules.layers),
                   "the policy remembers {} numbers", decision.memory.size());
  CONCERTINA_CHECK(std::isfinite(decision.statistic) && all_finite(decision.memory),
                   "the policy's decision is based on a non-finite number: {}", decision.reason);
  return decision;
}

/// Adds `value` if the sum stays finite.
bool add_finite(double& sum, double value) {
  const bool finite = std::isfinite(sum + value);
  if (finite) sum += value;
  return finite;
}

}  // namespace

FreezeSums add_step(FreezeSums sums, double loss, double lr,
                    std::span<const double> squared_norms) {
  if (sums.steps == 0) {
    sums.loss = 0;
    sums.finite = true;
    sums.squares.assign(squared_norms.size(), 0);
  }
  CONCERTINA_CHECK(sums.squares.size() == squared_norms.size(), "norms for {} layers, then for {}",
                   sums.squares.size(), squared_norms.size());
  ++sums.steps;
  sums.finite = add_finite(sums.loss, loss) && sums.finite;
  if (std::isfinite(lr)) sums.lr = lr;
  sums.finite = sums.finite && std::isfinite(lr);
  for (std::size_t l = 0; l < squared_norms.size(); ++l)
    sums.finite = add_finite(sums.squares[l], squared_norms[l]) && sums.finite;
  return sums;
}

FreezeRecord record_of(const FreezeSums& sums, std::int64_t step, double epoch, int frozen) {
  CONCERTINA_CHECK(sums.steps > 0, "a decision before the first step");
  const auto steps = static_cast<double>(sums.steps);
  FreezeRecord record{.step = step,
                      .epoch = epoch,
                      .loss = sums.finite ? sums.loss / steps : std::nan(""),
                      .lr = sums.lr,
                      .frozen = frozen};
  for (const double square : sums.squares) record.grad_norm.push_back(std::sqrt(square / steps));
  return record;
}

OptionValues default_freeze_options() {
  OptionValues options;
  for (const Entry<FreezePolicy>& policy : freeze_policies())
    options = with_defaults(policy.value.options, std::move(options));
  return options;
}

FreezeRules make_freeze_rules(std::string_view name, OptionValues options, int layers, int most) {
  const Entry<FreezePolicy>& entry =
      lookup_entry(freeze_policies(), name, "freeze policy", "freeze.policy");
  CONCERTINA_CHECK(most >= 0 && most <= layers, "{} of {} layers", most, layers);
  if (entry.value.check != nullptr) entry.value.check(options, layers, most);
  return {.name = entry.name,
          .policy = &entry.value,
          .options = std::move(options),
          .layers = layers,
          .most = most};
}

FreezeDecision decide(const FreezeRules& rules, const FreezeState& state, const FreezeRecord& now) {
  check_record(rules, now);
  if (!is_finite(now))
    return {.frozen = now.frozen,
            .reason = "the loss or a norm is not finite, so nothing changes",
            .memory = state.memory,
            .skips = state.skips};
  if (waits(rules, now))
    return {.statistic = static_cast<double>(now.step),
            .reason = fmt::format("waiting for {}, step {}",
                                  rules.warms_up ? "the end of the warm-up" : "freeze.after",
                                  rules.after)};
  if (std::optional<FreezeDecision> all = unfreezing(rules, state, now)) return *all;
  FreezeDecision decision = ask(rules, state, now);
  if (decision.frozen > rules.most) {
    decision.frozen = rules.most;
    decision.reason += fmt::format("; at most {} may be frozen", counted(rules.most, "layer"));
  }
  decision.frozen = std::max(decision.frozen, now.frozen);
  return decision;
}

FreezeState remember(const FreezeRules& rules, FreezeState state, FreezeRecord now,
                     const FreezeDecision& decision) {
  if (!is_finite(now) || waits(rules, now)) return state;
  if (decision.frozen < now.frozen)
    return {.best_loss = now.loss,
            .last_lr = now.lr,
            .from_step = now.step,
            .from_epoch = now.epoch,
            .planned = std::move(state.planned),
            .skips = decision.skips};
  state.memory = decision.memory;
  state.skips = decision.skips;
  state.best_loss = std::min(state.best_loss.value_or(now.loss), now.loss);
  state.lr_fell = state.lr_fell || now.lr < state.last_lr.value_or(now.lr);
  state.last_lr = now.lr;
  now.reference = decision.take_reference;
  state.history.push_back(std::move(now));
  const std::size_t kept = std::min(records_before(rules), state.history.size());
  state.history.erase(state.history.begin(),
                      state.history.end() - static_cast<std::ptrdiff_t>(kept));
  return state;
}

}  // namespace concertina
