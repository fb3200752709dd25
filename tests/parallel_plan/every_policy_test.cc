// Properties of every freeze policy in the registry, for any options and any measurements: NaN,
// infinite, huge and zero norms, one layer, rising losses and learning rates.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>
#include <set>

#include "core/error.h"
#include "parallel/policies/freeze_rules.h"

namespace concertina {
namespace {

double any_metric() {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const double odd[] = {0, kInf, std::nan(""), std::numeric_limits<double>::max(), 1e308, 5e-324};
  return *rc::gen::weightedOneOf<double>(
      {{12, rc::gen::map(rc::gen::inRange(0, 1000), [](int n) { return n / 100.0; })},
       {1, rc::gen::elementOf(std::vector<double>(std::begin(odd), std::end(odd)))}});
}

/// Returns a value of the option's type and range; tables have sorted rows.
OptionValue any_value(const Option& declared) {
  if (std::holds_alternative<std::int64_t>(declared.default_value))
    return *rc::gen::inRange(static_cast<std::int64_t>(declared.low),
                             static_cast<std::int64_t>(declared.high) + 1);
  if (std::holds_alternative<double>(declared.default_value))
    return declared.low + (declared.high - declared.low) * (*rc::gen::inRange(0, 101) / 100.0);
  if (std::holds_alternative<std::string>(declared.default_value))
    return std::string(*rc::gen::elementOf(declared.choices));
  std::vector<std::string> rows;
  const int count = *rc::gen::inRange(1, 4);
  for (int row = 1; row <= count; ++row) rows.push_back(fmt::format("step {}: {}", 4 * row, row));
  return rows;
}

/// Returns nothing if the options contradict each other.
std::optional<FreezeRules> any_rules(const Entry<FreezePolicy>& policy) {
  OptionValues options = default_freeze_options();
  for (const Option& one : policy.value.options) options[std::string(one.name)] = any_value(one);
  const int layers = *rc::gen::inRange(1, 7), most = *rc::gen::inRange(0, layers + 1);
  try {
    FreezeRules rules = make_freeze_rules(policy.name, options, layers, most);
    rules.steps = *rc::gen::inRange(0, 200);
    rules.unfreeze = *rc::gen::element(Unfreeze::never, Unfreeze::loss, Unfreeze::lr);
    rules.rise = *rc::gen::inRange(0, 3) / 10.0;
    return rules;
  } catch (const Error& error) {
    RC_ASSERT(error.code() == Exit::bad_input);
    return std::nullopt;
  }
}

FreezeRecord any_record(const FreezeRules& rules, int decision, int frozen, bool has_reference) {
  FreezeRecord now{.step = 3 * decision,
                   .epoch = decision / 2.0,
                   .loss = any_metric(),
                   .lr = any_metric(),
                   .frozen = frozen};
  now.grad_norm.resize(static_cast<std::size_t>(rules.layers));
  if (has_reference) now.drift.resize(now.grad_norm.size());
  for (auto l = static_cast<std::size_t>(frozen); l < now.grad_norm.size(); ++l) {
    now.grad_norm[l] = any_metric();
    if (has_reference) now.drift[l] = any_metric();
  }
  return now;
}

bool holds_finite_numbers_only(const FreezeState& state) {
  double sum = state.best_loss.value_or(0) * 0 + state.last_lr.value_or(0) * 0;
  for (const double value : state.memory) sum += value * 0;
  for (const FreezeRecord& record : state.history) {
    sum += record.loss * 0 + record.lr * 0;
    for (const double value : record.grad_norm) sum += value * 0;
    for (const double value : record.drift) sum += value * 0;
  }
  return std::isfinite(sum);
}

void expect_sound(const FreezeRules& rules, const FreezeRecord& now,
                  const FreezeDecision& decision) {
  RC_ASSERT(!decision.reason.empty());
  RC_ASSERT(std::isfinite(decision.statistic));
  if (decision.frozen < now.frozen) {
    RC_ASSERT(decision.frozen == 0);
    RC_ASSERT(rules.unfreeze != Unfreeze::never);
  }
  RC_ASSERT(decision.frozen <= std::max(rules.most, now.frozen));
  RC_ASSERT(!decision.take_reference || rules.policy->wants_reference);
}

TEST(EveryPolicy, DecidesWithinItsBoundsFromTheViewAlone) {
  for (const Entry<FreezePolicy>& policy : freeze_policies()) {
    SCOPED_TRACE(policy.name);
    EXPECT_TRUE(rc::check([&] {
      const std::optional<FreezeRules> rules = any_rules(policy);
      if (!rules) return;
      FreezeState state;
      int frozen = 0;
      bool has_reference = false;
      for (int i = 1; i <= 20; ++i) {
        const FreezeRecord now = any_record(*rules, i, frozen, has_reference);
        const FreezeDecision decision = decide(*rules, state, now);
        const FreezeState copy = state;
        RC_ASSERT(decide(*rules, copy, now) == decision);
        expect_sound(*rules, now, decision);
        state = remember(*rules, state, now, decision);
        RC_ASSERT(holds_finite_numbers_only(state));
        RC_ASSERT(std::ssize(state.history) < kMostFreezeRecords);
        frozen = decision.frozen;
        has_reference = has_reference || decision.take_reference;
      }
    }));
  }
}

TEST(EveryPolicy, ChangesNothingOnAFigureThatIsNotFinite) {
  for (const Entry<FreezePolicy>& policy : freeze_policies()) {
    OptionValues options = default_freeze_options();
    options["at"] = std::vector<std::string>{"step 1: 2"};
    const FreezeRules rules = make_freeze_rules(policy.name, options, 3, 3);
    FreezeRecord now{.step = 5, .epoch = 1, .loss = 2, .lr = 0.1, .frozen = 1};
    now.grad_norm = {0, std::nan(""), 1};
    const FreezeState state{.best_loss = 1.5};
    EXPECT_EQ(decide(rules, state, now).frozen, 1) << policy.name;
    EXPECT_EQ(remember(rules, state, now, decide(rules, state, now)), state) << policy.name;
  }
}

TEST(EveryPolicy, SaysWhatItIsAndWhatItsOptionsAre) {
  std::set<std::string_view> names;
  for (const Entry<FreezePolicy>& policy : freeze_policies()) {
    EXPECT_STRNE(policy.value.about, "") << policy.name;
    for (const Option& option : policy.value.options) {
      EXPECT_TRUE(names.insert(option.name).second) << option.name << " has two policies";
      EXPECT_FALSE(option.help.empty()) << option.name;
      if (std::holds_alternative<std::string>(option.default_value)) {
        EXPECT_FALSE(option.choices.empty()) << option.name;
      }
    }
  }
  EXPECT_EQ(names.size(), default_freeze_options().size());
}

}  // namespace
}  // namespace concertina
