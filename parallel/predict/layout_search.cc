#include "parallel/predict/layout_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "core/index.h"
#include "parallel/generate/expand.h"
#include "parallel/generate/row_judge.h"
#include "parallel/generate/schedule_registry.h"

namespace concertina {
namespace {

constexpr std::size_t kTooLarge = 4;  // maximum number shown

struct Considered {
  PlanCandidate candidate;
  PlanMemory memory;
  double likely = 0, least = 0;
  bool exact = false;
};

/// Peak number of live (stage, microbatch) pairs by rank: from the schedule's formula, if any;
/// otherwise counted in its order of actions, with enough microbatches to fill the pipeline.
class Peaks {
 public:
  std::vector<int> of(const PlanCandidate& candidate, int microbatches) {
    const int p = candidate.pp;
    const Schedule& schedule = find_schedule(candidate.schedule).value;
    if (const auto claim = schedule.peak.at(p, microbatches, candidate.chunks)) {
      std::vector<int> peaks(at(p), static_cast<int>(claim->value));
      for (int rank = 0; candidate.schedule == "1f1b" && rank < p; ++rank)
        peaks[at(rank)] = std::min(microbatches, p - rank);
      return peaks;
    }
    const int enough = std::min(microbatches, 4 * p);
    auto [known, fresh] = known_.try_emplace({candidate.schedule, p, candidate.chunks, enough});
    if (fresh) known->second = counted_peaks(candidate, enough);
    return known->second;
  }

 private:
  static std::vector<int> counted_peaks(const PlanCandidate& candidate, int microbatches) {
    const Entry<Schedule>& schedule = find_schedule(candidate.schedule);
    PipelineShape shape{candidate.pp, microbatches, {}};
    for (int stage = 0; stage < candidate.stages(); ++stage)
      shape.stage_rank.push_back(rank_of_stage(schedule.value.placement, stage, candidate.pp));
    std::vector<int> peaks;
    for (const std::vector<Action>& row : schedule.value.generate(shape))
      peaks.push_back(static_cast<int>(kept_peak(row)));
    return peaks;
  }

  std::map<std::tuple<std::string_view, int, int, int>, std::vector<int>> known_;
};

class LayoutSearch {
 public:
  LayoutSearch(const PlanProblem& problem, const SearchBudget& budget)
      : problem_(problem), budget_(budget), table_(problem) {}

  SearchOutcome run(const std::vector<PlanCandidate>& candidates) {
    outcome_.candidates = candidates.size();
    std::vector<Considered> fitting = consider(candidates);
    outcome_.fitting = fitting.size();
    std::stable_sort(fitting.begin(), fitting.end(),
                     [](const auto& a, const auto& b) { return a.likely < b.likely; });
    for (const Considered& one : fitting) try_one(one);
    if (!outcome_.best.empty()) explain();
    choose_too_large();
    return std::move(outcome_);
  }

 private:
  std::vector<Considered> consider(const std::vector<PlanCandidate>& candidates) {
    std::vector<Considered> fitting;
    for (const PlanCandidate& candidate : candidates) {
      const CandidateModel model(problem_, candidate, table_);
      const Considered one{
          candidate, model.memory(peaks_.of(candidate, candidate.microbatches(problem_.batch))),
          model.likely_seconds(), model.least_seconds(), false};
      (one.memory.total() <= problem_.memory ? fitting : too_large_).push_back(one);
    }
    return fitting;
  }

  FoundLayout found_of(const PlanCandidate& candidate) {
    FoundLayout found{.candidate = candidate};
    const auto microbatches = problem_.batch / candidate.samples;
    found.recompute_flops =
        table_.of(candidate).recompute_flops * static_cast<double>(microbatches);
    const ModelSpec& model = problem_.model;
    int before = 0;
    for (const UnitRange& stage : table_.cuts(candidate)) {
      const int layers = layers_of_units(model, stage.last);
      const bool whole = std::ranges::binary_search(model.layer_ends, stage.last) ||
                         stage.last == std::ssize(model.units);
      if (!whole) return found.layers.clear(), found;
      found.layers.push_back(layers - std::exchange(before, layers));
    }
    return found;
  }

  /// The step time that another layout has to beat.
  double to_beat() const {
    return std::ssize(outcome_.best) < budget_.top ? INFINITY : outcome_.best.back().step.seconds;
  }

  void try_one(const Considered& one) {
    if (one.least >= to_beat()) {
      ++outcome_.worse;
      return;
    }
    const int m = one.candidate.microbatches(problem_.batch);
    const double actions = simulated_actions(one.candidate, m);
    if (outcome_.actions + actions > budget_.actions ||
        most_actions(one.candidate.stages(), m) > static_cast<std::int64_t>(kMostActions)) {
      if (outcome_.left_out++ == 0 || one.least < outcome_.least_left_out)
        outcome_.least_left_out = one.least;
      return;
    }
    if (budget_.progress)
      budget_.progress(fmt::format("{} layouts simulated, now simulating {}", outcome_.simulated,
                                   to_text(one.candidate)));
    simulate_one(one, actions);
  }

  void simulate_one(const Considered& one, double actions) {
    outcome_.actions += actions;
    ++outcome_.simulated;
    FoundLayout found = found_of(one.candidate);
    found.simulated = true;
    const CandidateModel model(problem_, one.candidate, table_);
    found.step = model.simulated(false);
    found.memory = model.memory(found.step.slots);
    if (found.step.seconds < to_beat()) make_exact(found);
    if (found.memory.total() > problem_.memory) {
      too_large_.push_back(
          {one.candidate, found.memory, found.step.seconds, one.least, found.exact});
      --outcome_.fitting, ++outcome_.unfit;
      return;
    }
    const auto place = std::upper_bound(
        outcome_.best.begin(), outcome_.best.end(), found,
        [](const auto& a, const auto& b) { return a.step.seconds < b.step.seconds; });
    outcome_.best.insert(place, std::move(found));
    if (std::ssize(outcome_.best) > budget_.top) outcome_.best.pop_back();
  }

  /// The breakdown stays as in the model; the difference is added to the activations.
  void make_exact(FoundLayout& found) const {
    if (!budget_.exact_bytes) return;
    const std::optional<double> bytes = budget_.exact_bytes(found.candidate);
    if (!bytes) return;
    found.memory.activations += *bytes + found.memory.reserved - found.memory.total();
    found.exact = true;
  }

  /// Breaks down the time of the best layouts.
  void explain() {
    for (FoundLayout& found : outcome_.best)
      found.step = CandidateModel(problem_, found.candidate, table_).simulated(true);
  }

  void choose_too_large() {
    const double limit = outcome_.best.empty() ? INFINITY : outcome_.best.front().step.seconds;
    const auto needs = [](const Considered& one) { return one.memory.total(); };
    std::erase_if(too_large_, [&](const Considered& one) {
      return one.likely >= limit || (!outcome_.best.empty() && needs(one) > 2 * problem_.memory);
    });
    std::stable_sort(too_large_.begin(), too_large_.end(), [&](const auto& a, const auto& b) {
      return std::pair(a.likely, needs(a)) < std::pair(b.likely, needs(b));
    });
    if (!outcome_.best.empty() && !too_large_.empty())
      outcome_.twice_seconds = too_large_.front().likely;
    if (!outcome_.best.empty()) show_too_large(kTooLarge / 2);
    std::stable_sort(too_large_.begin(), too_large_.end(),
                     [&](const auto& a, const auto& b) { return needs(a) < needs(b); });
    show_too_large(kTooLarge);
  }

  /// Shows more layouts of too_large_, up to `most` in total.
  void show_too_large(std::size_t most) {
    for (const Considered& one : too_large_) {
      if (outcome_.too_large.size() >= most) return;
      const bool again = std::any_of(
          outcome_.too_large.begin(), outcome_.too_large.end(), [&](const FoundLayout& shown) {
            const PlanCandidate &a = shown.candidate, &b = one.candidate;
            return a.tp == b.tp && a.pp == b.pp && a.recompute == b.recompute;
          });
      if (again) continue;  // another schedule or microbatch size of a layout already shown
      FoundLayout found = found_of(one.candidate);
      found.memory = one.memory;
      found.exact = one.exact;
      found.step.seconds = one.likely;
      outcome_.too_large.push_back(std::move(found));
    }
  }

  const PlanProblem& problem_;
  const SearchBudget& budget_;
  WorkTable table_;
  Peaks peaks_;
  std::vector<Considered> too_large_;
  SearchOutcome outcome_;
};

}  // namespace

SearchOutcome search_layouts(const PlanProblem& problem,
                             const std::vector<PlanCandidate>& candidates,
                             const SearchBudget& budget) {
  return LayoutSearch(problem, budget).run(candidates);
}

}  // namespace concertina
