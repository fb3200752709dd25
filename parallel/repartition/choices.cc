#include "parallel/repartition/choices.h"

#include <algorithm>

#include "core/error.h"
#include "core/index.h"
#include "parallel/generate/passes.h"
#include "parallel/plan/partition.h"
#include "parallel/repartition/grown_batch.h"

namespace concertina {
namespace {

constexpr std::size_t kRefined = 3;  // candidates whose partition is refined, regardless of the
                                     // cost
constexpr int kPasses = 4;           // over all boundaries of a candidate
constexpr double kNear = 2;  // relative to the best time: refining the partition may still help
constexpr int kShare = 100;  // 1 / kShare of all actions may be used for this
constexpr int kActionsOfAny = 30;  // constant cost of a plan, in actions
constexpr double kUnknown = -1;    // seconds of a move that has not been predicted yet

class ChoiceSearch {
 public:
  ChoiceSearch(const LayoutView& view, std::int64_t actions)
      : view_(view),
        frozen_(view.now.frozen_units()),
        units_(view.forecast.unit_seconds(frozen_)),
        actions_(actions) {}

  LayoutChoices best(double step) {
    double fastest = step;
    for (const LayoutCandidate& candidate : by_promise(layout_candidates(view_))) {
      const int batches = batches_for(view_, candidate.grid.dp + candidate.other.dp);
      if (view_.forecast.least_seconds(frozen_, candidate.ranks(), batches) >= fastest) continue;
      if (spent_ >= actions_) ++left_out_;
      std::optional<Found> found = try_cuts(candidate, balanced(candidate));
      if (!found) continue;
      fastest = std::min(fastest, found->choice.step_seconds);
      found_.push_back(std::move(*found));
    }
    order();
    const std::int64_t some = spent_ + actions_ / kShare;
    for (std::size_t i = 0; i < found_.size(); ++i) {
      if (i >= kRefined && (spent_ > some || found_[i].choice.step_seconds > kNear * fastest))
        break;
      refine(found_[i]);
    }
    order();
    LayoutChoices choices{.best = {}, .left_out = left_out_};
    for (Found& one : found_) choices.best.push_back(std::move(one.choice));
    return choices;
  }

 private:
  struct Found {
    LayoutCandidate candidate;
    std::vector<UnitRange> cuts;
    LayoutChoice choice;
  };

  /// Orders by estimated time, so that skipped candidates are the least promising.
  std::vector<LayoutCandidate> by_promise(std::vector<LayoutCandidate> candidates) const {
    std::ranges::stable_sort(candidates, {}, [&](const LayoutCandidate& one) {
      // Candidates with two depths are treated as if all replicas had the larger depth.
      const Grid grid{one.grid.pp, std::max(1, one.ranks() / one.grid.pp)};
      return view_.forecast.likely_seconds(frozen_, grid, one.folding.chunks);
    });
    return candidates;
  }

  /// Balances stages for the slowest rank at each place, because replicas share the same partition.
  std::vector<UnitRange> balanced(const LayoutCandidate& candidate) const {
    const int deep = candidate.grid.pp * candidate.folding.chunks;
    std::vector<UnitRange> cuts(at(candidate.stages()), {0, 1});
    std::vector<double> factors(cuts.size());
    const std::vector<Pipeline> pipelines = request_for(view_, candidate, cuts).layout.pipelines;
    const std::ptrdiff_t like = std::ptrdiff_t{candidate.grid.dp} * candidate.folding.pipelines();
    for (std::ptrdiff_t p = 0; p < std::ssize(pipelines); ++p)
      for (std::size_t s = 0; s < pipelines[p].stages.size(); ++s) {
        double& factor = factors[s + at(p < like ? 0 : deep)];
        factor = std::max(factor, view_.forecast.factor(pipelines[p].stages[s].rank));
      }
    const std::span all(factors);
    cuts = partition(units_, all.first(at(deep)));
    if (candidate.other.dp == 0) return cuts;
    const std::vector<UnitRange> others = partition(units_, all.subspan(at(deep)));
    cuts.insert(cuts.end(), others.begin(), others.end());
    return cuts;
  }

  bool spend(const LayoutCandidate& candidate) {
    if (spent_ >= actions_) return false;
    spent_ +=
        kActionsOfAny + most_actions(std::int64_t{candidate.grid.pp} * candidate.folding.chunks,
                                     view_.job.microbatches);
    return true;
  }

  void order() {
    for (Found& one : found_)
      if (one.choice.move_seconds == kUnknown)
        one.choice.move_seconds = view_.forecast.move_seconds(one.choice.assignment);
    std::stable_sort(found_.begin(), found_.end(), [&](const Found& a, const Found& b) {
      return total(a.choice) < total(b.choice);
    });
  }
  double total(const LayoutChoice& choice) const {
    return choice.step_seconds * static_cast<double>(view_.steps_left) + choice.move_seconds;
  }

  /// Returns nothing if the schedule cannot run the layout, or if the layout is the current one.
  std::optional<Found> try_cuts(const LayoutCandidate& candidate,
                                const std::vector<UnitRange>& cuts) {
    if (!spend(candidate)) return std::nullopt;
    Request request = request_for(view_, candidate, cuts);
    try {
      Assignment assignment = assign(view_.job, request);
      if (assignment.layout == view_.now.layout && assignment.plan.rows == view_.now.plan.rows)
        return std::nullopt;
      const double step = view_.forecast.step_seconds(assignment);
      return Found{candidate, cuts, {std::move(request), std::move(assignment), step, kUnknown}};
    } catch (const Error& error) {
      if (error.code() == Exit::bad_input) return std::nullopt;
      throw;
    }
  }

  /// Moves one boundary, two adjacent ones, or a leaf at a time, as long as that makes the step
  /// faster: balanced stages do not balance ranks with several stages, and the phases of a schedule
  /// differ in importance.
  void refine(Found& found) {
    for (int pass = 0; pass < kPasses; ++pass) {
      bool better = false;
      for (std::size_t cut = 0; cut + 1 < found.cuts.size(); ++cut) {
        for (const int by : {-8, 8, -4, 4, -2, 2, -1, 1}) better |= move_cuts(found, cut, by, 0);
        for (const int by : {-1, 1})
          for (const int next : {-1, 1}) better |= move_cuts(found, cut, by, next);
      }
      if (found.candidate.other.dp > 0)
        for (const int by : {-1, 1}) better |= move_leaf(found, by);
      if (!better) return;
    }
  }

  /// Moves boundary number `cut` by `by` units, and the next one by `next`.
  bool move_cuts(Found& found, std::size_t cut, int by, int next) {
    std::vector<UnitRange> cuts = found.cuts;
    for (const int one : {by, next}) {
      if (one == 0) break;
      // The next range may belong to the replicas of the other depth.
      if (cut + 1 >= cuts.size() || cuts[cut + 1].first == 0) return false;
      cuts[cut].last = cuts[cut + 1].first = cuts[cut].last + one;
      ++cut;
    }
    if (std::ranges::any_of(cuts, [](const UnitRange& one) { return one.first >= one.last; }))
      return false;
    return take(found, found.candidate, cuts);
  }
  bool move_leaf(Found& found, int by) {
    LayoutCandidate candidate = found.candidate;
    candidate.leaves += by;
    const int all = view_.job.leaves * found.choice.request.batches;
    if (candidate.leaves < candidate.grid.dp || all - candidate.leaves < candidate.other.dp)
      return false;
    return take(found, candidate, found.cuts);
  }
  bool take(Found& found, const LayoutCandidate& candidate, const std::vector<UnitRange>& cuts) {
    std::optional<Found> moved = try_cuts(candidate, cuts);
    if (!moved || moved->choice.step_seconds >= found.choice.step_seconds) return false;
    found = std::move(*moved);
    return true;
  }

  const LayoutView& view_;
  const int frozen_;
  const std::vector<double> units_;
  const std::int64_t actions_;
  std::int64_t spent_ = 0;
  std::size_t left_out_ = 0;
  std::vector<Found> found_;
};

}  // namespace

std::int64_t actions_worth(const LayoutView& view) {
  constexpr double kSeconds = 5e-7, kMost = 1e7;  // approximately, per action; number of actions
  const int frozen = view.now.frozen_units();
  const double step = view.forecast.step_seconds(view.now);
  const int batches = batches_for(view, view.now.world);
  const double gain = step - view.forecast.least_seconds(frozen, view.now.world, batches);
  if (gain <= view.options.least_gain * step) return 0;
  const double seconds = gain * static_cast<double>(view.steps_left);
  return static_cast<std::int64_t>(std::min(kMost, view.options.most_share * seconds / kSeconds));
}

LayoutChoices best_choices(const LayoutView& view, double step, std::int64_t actions) {
  return ChoiceSearch(view, actions).best(step);
}

}  // namespace concertina
