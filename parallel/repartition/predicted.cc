// The best assignment by prediction: every candidate is simulated with the run's own costs, the
// best ones with their cuts moved as long as that helps; the run changes to the one that ends it
// first, where that is worth the change.
#include <algorithm>

#include "core/error.h"
#include "core/number_text.h"
#include "parallel/generate/passes.h"
#include "parallel/plan/partition.h"
#include "parallel/repartition/candidates.h"

namespace concertina {
namespace {

constexpr std::size_t kRefined = 3;  // candidates whose cuts are moved
constexpr int kPasses = 4;           // over all cuts of one
/// Actions of all plans that a decision looks at: about 5 s. A plan of 1,024 ranks and 2,048
/// microbatches has half a million. A count, no clock: all ranks decide the same.
constexpr std::int64_t kMostActionsTried = 10'000'000;

class LayoutSearch {
 public:
  explicit LayoutSearch(const LayoutView& view)
      : view_(view),
        units_(view.forecast.unit_seconds(view.now.frozen_units())),
        work_(view.forecast.work_seconds(view.now.frozen_units())) {}

  /// The choices that can end the run first, in that order. `step`: predicted, of staying.
  std::vector<LayoutChoice> best(double step) {
    double fastest = step;
    for (const LayoutCandidate& candidate : by_promise(layout_candidates(view_))) {
      if (work_ / candidate.ranks() >= fastest) continue;
      const std::vector<UnitRange> cuts =
          partition(units_, candidate.grid.pp * candidate.folding.chunks);
      if (spent_ >= kMostActionsTried) ++left_out_;
      std::optional<Found> found = try_cuts(candidate, cuts);
      if (!found) continue;
      fastest = std::min(fastest, found->choice.step_seconds);
      found_.push_back(std::move(*found));
    }
    order();
    for (std::size_t i = 0; i < std::min(kRefined, found_.size()); ++i) refine(found_[i]);
    order();
    std::vector<LayoutChoice> choices;
    for (Found& one : found_) choices.push_back(std::move(one.choice));
    return choices;
  }

  /// Candidates that were left out, as those before them had too many actions.
  std::size_t left_out() const { return left_out_; }

  double total(const LayoutChoice& choice) const {
    return choice.step_seconds * static_cast<double>(view_.steps_left) + choice.move_seconds;
  }

 private:
  struct Found {
    LayoutCandidate candidate;
    std::vector<UnitRange> cuts;
    LayoutChoice choice;
  };

  /// By the shortest step that 1F1B could have on perfectly cut stages: what is left out, if
  /// anything, promises least.
  std::vector<LayoutCandidate> by_promise(std::vector<LayoutCandidate> candidates) const {
    std::ranges::stable_sort(candidates, {}, [&](const LayoutCandidate& one) {
      const double microbatches = static_cast<double>(view_.job.microbatches) / one.grid.dp;
      const double stages = one.grid.pp * one.folding.chunks;
      return work_ / one.ranks() * (1 + (stages - 1) / (microbatches * one.folding.chunks));
    });
    return candidates;
  }

  bool spend(const LayoutCandidate& candidate) {
    if (spent_ >= kMostActionsTried) return false;
    spent_ += most_actions(candidate.grid.pp * candidate.folding.chunks, view_.job.microbatches);
    return true;
  }

  void order() {
    std::stable_sort(found_.begin(), found_.end(), [&](const Found& a, const Found& b) {
      return total(a.choice) < total(b.choice);
    });
  }

  /// Nothing where the schedule has no such form, and for what the run does already.
  std::optional<Found> try_cuts(const LayoutCandidate& candidate,
                                const std::vector<UnitRange>& cuts) {
    if (!spend(candidate)) return std::nullopt;
    Request request = request_for(view_, candidate, cuts);
    try {
      Assignment assignment = assign(view_.job, request);
      if (assignment.layout == view_.now.layout && assignment.plan.rows == view_.now.plan.rows)
        return std::nullopt;
      return Found{candidate, cuts, choice_of(view_, std::move(request), std::move(assignment))};
    } catch (const Error& error) {
      if (error.code() == Exit::bad_input) return std::nullopt;
      throw;
    }
  }

  /// Moves one cut at a time as long as that makes the step faster: balanced stages are not
  /// balanced ranks where a rank has several, and the phases of a schedule count differently.
  void refine(Found& found) {
    for (int pass = 0; pass < kPasses; ++pass) {
      bool better = false;
      for (std::size_t cut = 0; cut + 1 < found.cuts.size(); ++cut)
        for (const int by : {-8, 8, -4, 4, -2, 2, -1, 1}) better |= move_cut(found, cut, by);
      if (!better) return;
    }
  }

  bool move_cut(Found& found, std::size_t cut, int by) {
    std::vector<UnitRange> cuts = found.cuts;
    cuts[cut].last = cuts[cut + 1].first = cuts[cut].last + by;
    if (cuts[cut].first >= cuts[cut].last || cuts[cut + 1].first >= cuts[cut + 1].last)
      return false;
    std::optional<Found> moved = try_cuts(found.candidate, cuts);
    if (!moved || moved->choice.step_seconds >= found.choice.step_seconds) return false;
    found = std::move(*moved);
    return true;
  }

  const LayoutView& view_;
  const std::vector<double> units_;
  const double work_;
  std::int64_t spent_ = 0;  // actions
  std::size_t left_out_ = 0;
  std::vector<Found> found_;
};

bool is_worth(const LayoutView& view, const LayoutChoice& choice, double step) {
  const double gain = step - choice.step_seconds;
  return gain > view.options.least_gain * step &&
         gain * static_cast<double>(view.steps_left) > choice.move_seconds;
}

LayoutDecision decide(const LayoutView& view) {
  LayoutDecision decision{.step_seconds = view.forecast.step_seconds(view.now)};
  std::string refused;
  LayoutSearch search(view);
  for (LayoutChoice& choice : search.best(decision.step_seconds)) {
    const std::string what = describe(choice.request, choice.assignment);
    if (!is_worth(view, choice, decision.step_seconds)) {
      decision.reason = fmt::format(
          "the best other layout, {}, would take {:.4g} ms a step after "
          "{:.4g} ms, and {:.4g} s to change to, with {} left",
          what, choice.step_seconds * 1e3, decision.step_seconds * 1e3, choice.move_seconds,
          counted(view.steps_left, "step"));
      break;
    }
    if (const std::string why = view.forecast.refusal(choice.assignment); !why.empty()) {
      if (refused.empty()) refused = fmt::format("; {} cannot be: {}", what, why);
      continue;
    }
    decision.reason = fmt::format(
        "{:.4g} ms a step after {:.4g} ms gains {:.4g} s over {}, the "
        "change takes {:.4g} s",
        choice.step_seconds * 1e3, decision.step_seconds * 1e3,
        (decision.step_seconds - choice.step_seconds) * static_cast<double>(view.steps_left),
        counted(view.steps_left, "step"), choice.move_seconds);
    decision.next = std::move(choice);
    break;
  }
  if (decision.reason.empty()) decision.reason = "no other layout is predicted to be faster";
  decision.reason += refused;
  if (search.left_out() > 0)
    decision.reason += fmt::format("; {} with less promise were left out for time",
                                   counted(static_cast<std::int64_t>(search.left_out()), "layout"));
  return decision;
}

}  // namespace

LayoutPolicy layout_policy_predicted() {
  return {.decide = decide,
          .keys = {"elastic.every", "elastic.batch", "elastic.depth", "elastic.replicas",
                   "elastic.schedule", "elastic.least_gain"},
          .by_times = true,
          .about =
              "what the simulator, with the run's own costs, says ends the run first, where "
              "that gains more than the change takes"};
}

}  // namespace concertina
