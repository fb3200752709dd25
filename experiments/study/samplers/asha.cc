// Successive halving: the best 1/factor of the trials that reached a rung are promoted to the next.
// As in ASHA (Li et al., MLSys 2020, algorithm 2), no task waits for a rung's last tasks; but since
// all trials are known in advance, lower rungs run first, which avoids wrong promotions.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/error.h"
#include "experiments/study/results.h"
#include "experiments/study/sampler.h"

namespace concertina::samplers {
namespace {

constexpr std::int64_t kMostRungSteps = 1LL << 40;

std::vector<std::int64_t> rungs_of(const OptionValues& options, std::int64_t steps) {
  const auto factor = option<std::int64_t>(options, "factor");
  std::vector<std::int64_t> rungs;
  for (auto rung = option<std::int64_t>(options, "min_steps"); rung < steps; rung *= factor) {
    rungs.push_back(rung);
    if (rung > steps / factor) break;  // the next rung would exceed `steps`, or overflow
  }
  rungs.push_back(steps);
  return rungs;
}

constexpr double kWorst = std::numeric_limits<double>::infinity();

class AshaSampler : public Sampler {
 public:
  AshaSampler(const StudySpec& spec, const std::map<int, TrialRecord>& before)
      : search_(spec.search),
        factor_(option<std::int64_t>(search_.options, "factor")),
        trials_(trials_of(spec)) {
    for (const Trial& trial : trials_)
      rungs_.push_back(rungs_of(search_.options, config_of(spec, trial.settings).run.steps));
    reached_.resize(rungs_.empty() ? 0 : rungs_[0].size());
    for (const auto& rungs : rungs_)
      if (rungs.size() != reached_.size())
        throw_input("asha's trials have different numbers of rungs", "search.method",
                    "the same run.steps for all trials");
    for (const auto& [number, trial] : before) tell(trial);
    for (const auto& [number, trial] : before)
      if (trial.state != TrialState::open || !trial.rungs.empty()) started_.insert(number);
  }

  /// Lower rungs first: with one task at a time, a rung is complete before the next one starts;
  /// with several, no task waits for a rung's last tasks.
  std::optional<TrialTask> next(bool idle) override {
    for (const Trial& trial : trials_)
      if (!started_.contains(trial.number)) return task(trial.number, 0);
    for (std::size_t rung = 0; rung + 1 < reached_.size(); ++rung)
      if (const int number = promotable(rung, idle)) return task(number, rung + 1);
    return std::nullopt;
  }

  void tell(const TrialRecord& trial) override {
    const int number = trial.number;
    require_comparable(trial);
    for (std::size_t rung = 0; rung < trial.rungs.size() && rung < reached_.size(); ++rung) {
      const double metric = trial.rungs[rung].metric;
      const double cost = search_.minimise ? metric : -metric;
      reached_[rung][number] = std::isnan(cost) ? kWorst : cost;
      // The trial was promoted from the rung below, in this launch of the study or an earlier one.
      if (rung > 0) promoted_.insert({rung - 1, number});
    }
    if (trial.state == TrialState::failed || trial.state == TrialState::timed_out)
      ended_.insert(number);
  }

  std::optional<int> left() const override {
    // The tasks of the lowest rung, and the expected promotions from each rung.
    double tasks = static_cast<double>(trials_.size() - started_.size());
    double reaching = static_cast<double>(trials_.size());
    for (std::size_t rung = 1; rung < reached_.size(); ++rung) {
      reaching = std::max(1.0, std::floor(reaching / static_cast<double>(factor_)));
      double promoted = 0;
      for (const auto& [at, number] : promoted_) promoted += at + 1 == rung ? 1 : 0;
      tasks += std::max(0.0, reaching - promoted);
    }
    return static_cast<int>(tasks);
  }

 private:
  /// Throws Error{failure} unless the trial's metric can be ranked among those of other trials.
  void require_comparable(const TrialRecord& record) {
    if (!std::holds_alternative<double>(cell_of(record, search_.metric))) return;
    if (!first_) first_ = record;
    if (const std::string why = why_incomparable({&*first_, &record}, search_.metric); !why.empty())
      throw_failure(fmt::format("trials {} and {} cannot be ranked by {}: {}", first_->number,
                                record.number, search_.metric, why),
                    "search.method", "a study whose trials are all evaluated on the same data");
  }

  /// The best unpromoted trial in the top 1/factor of a rung; 0: none. `last`: no other trial will
  /// reach the rung, so one is promoted even if 1/factor of its trials is less than one trial.
  int promotable(std::size_t rung, bool last) const {
    std::vector<std::pair<double, int>> order;
    for (const auto& [number, cost] : reached_[rung]) order.emplace_back(cost, number);
    std::ranges::sort(order);
    std::size_t most = order.size() / static_cast<std::size_t>(factor_);
    if (last && !order.empty()) most = std::max<std::size_t>(1, most);
    for (std::size_t i = 0; i < most; ++i) {
      const auto [cost, number] = order[i];
      if (cost < kWorst && !ended_.contains(number) && !promoted_.contains({rung, number}))
        return number;
    }
    return 0;
  }

  TrialTask task(int number, std::size_t rung) {
    started_.insert(number);
    if (rung > 0) promoted_.insert({rung - 1, number});
    const auto index = static_cast<std::size_t>(number - 1);
    return {trials_[index], rungs_[index][rung]};
  }

  const SearchSection search_;
  const std::int64_t factor_;
  const std::vector<Trial> trials_;
  std::vector<std::vector<std::int64_t>> rungs_;    // by trial: steps of each rung
  std::vector<std::map<int, double>> reached_;      // by rung and trial: the value to minimize
  std::set<std::pair<std::size_t, int>> promoted_;  // (rung, trial)
  std::optional<TrialRecord> first_;                // with a metric
  std::set<int> started_, ended_;                   // ended: finished for good
};

}  // namespace

SearchMethod asha() {
  return {
      .make = [](const StudySpec& spec, const std::map<int, TrialRecord>& before)
          -> std::unique_ptr<Sampler> { return std::make_unique<AshaSampler>(spec, before); },
      .options = {{"min_steps", std::int64_t{0}, "steps of the lowest rung", 1, kMostRungSteps},
                  {"factor", std::int64_t{3}, "ratio of the steps of consecutive rungs", 2, 100}},
      .rungs = rungs_of};
}

}  // namespace concertina::samplers
