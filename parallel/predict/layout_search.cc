#include "parallel/predict/layout_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>
#include <utility>

#include "core/index.h"
#include "parallel/generate/expand.h"
#include "parallel/generate/row_judge.h"
#include "parallel/generate/schedule_registry.h"
#include "parallel/plan/reduction_tree.h"

namespace concertina {
namespace {

/// Buffers in which a replica sums its gradients.
int gradient_buffers(const PlanProblem& problem, const PlanCandidate& candidate) {
  if (!problem.software.sums_by_tree) return 1;
  const int leaves = default_leaves(problem.batch / candidate.samples);
  const int own = leaves % candidate.dp == 0 ? leaves / candidate.dp : 1;
  return std::bit_width(static_cast<unsigned>(own));
}

/// All but the activations of a rank.
PlanMemory state_of(const PlanProblem& problem, const PlanCandidate& candidate, double parameters) {
  const Software& software = problem.software;
  const ParameterBytes& bytes = problem.bytes();
  const double received = software.received_bytes * (candidate.dp - 1.0) / candidate.dp;
  const double gradients = bytes.gradient * gradient_buffers(problem, candidate);
  return {.weights = parameters * (bytes.weight + gradients + received),
          .optimizer = parameters * bytes.optimizer / (software.sharded ? candidate.dp : 1),
          .reserved = problem.machine.device.reserved_bytes};
}

/// The memory of the fullest rank, whose activations are `activations(rank)` and its scratch.
template <class Activations>
PlanMemory largest_of(const PlanProblem& problem, const PlanCandidate& candidate,
                      const PipelineWork& work, const Activations& activations) {
  PlanMemory largest;
  for (int rank = 0; rank < candidate.pp; ++rank) {
    const RankShare& share = work.shares[at(rank)];
    PlanMemory mine = state_of(problem, candidate, share.parameters);
    mine.activations = share.scratch + activations(rank);
    if (mine.total() > largest.total()) largest = mine;
  }
  return largest;
}

constexpr std::size_t kTooLarge = 4;  // that are shown

struct Considered {
  PlanCandidate candidate;
  PlanMemory memory;
  double likely = 0, least = 0;
  bool exact = false;
};

/// Returns the slots of a schedule without a promise: counted in its order of actions, with as many
/// microbatches as fill it.
class Peaks {
 public:
  std::vector<int> of(const PlanCandidate& candidate, int microbatches) {
    std::vector<int> promised = promised_peaks(candidate, microbatches);
    if (!promised.empty()) return promised;
    const int enough = std::min(microbatches, 4 * candidate.pp);
    auto [known, fresh] =
        known_.try_emplace({candidate.schedule, candidate.pp, candidate.chunks, enough});
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
      peaks.push_back(RowJudge::peak(row));
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
      Considered one{candidate, {}, 0, 0, false};
      const PipelineWork work = pipeline_work(problem_, candidate, table_);
      one.memory = memory_of(problem_, candidate, work,
                             peaks_.of(candidate, candidate.microbatches(problem_.batch)));
      one.likely = likely_seconds(problem_, candidate, work);
      one.least = least_seconds(problem_, candidate, work);
      (one.memory.total() <= problem_.memory ? fitting : too_large_).push_back(one);
    }
    return fitting;
  }

  FoundLayout found_of(const PlanCandidate& candidate) {
    FoundLayout found{.candidate = candidate};
    found.again_flops =
        table_.of(candidate).before.back().again_flops * (problem_.batch / candidate.samples);
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

  /// The step time that a further layout has to beat.
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
      budget_.progress(
          fmt::format("{} layouts simulated, now {}", outcome_.simulated, to_text(one.candidate)));
    simulate_one(one, actions);
  }

  void simulate_one(const Considered& one, double actions) {
    outcome_.actions += actions;
    ++outcome_.simulated;
    FoundLayout found = found_of(one.candidate);
    found.simulated = true;
    const PipelineWork work = pipeline_work(problem_, one.candidate, table_);
    found.step = simulate_step(problem_, one.candidate, work, false);
    found.memory = memory_of(problem_, one.candidate, work, found.step.slots);
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

  /// By purpose the memory stays the model's; what that does not know of is with the activations.
  void make_exact(FoundLayout& found) const {
    if (!budget_.exact_bytes) return;
    const std::optional<double> bytes = budget_.exact_bytes(found.candidate);
    if (!bytes) return;
    found.memory.activations += *bytes + found.memory.reserved - found.memory.total();
    found.exact = true;
  }

  /// Where the time of the best ones goes.
  void explain() {
    for (FoundLayout& found : outcome_.best)
      found.step = simulate_step(problem_, found.candidate,
                                 pipeline_work(problem_, found.candidate, table_), true);
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

  /// The next ones of too_large_, until so many are shown.
  void show_too_large(std::size_t most) {
    for (const Considered& one : too_large_) {
      if (outcome_.too_large.size() >= most) return;
      const bool again = std::any_of(
          outcome_.too_large.begin(), outcome_.too_large.end(), [&](const FoundLayout& shown) {
            const PlanCandidate &a = shown.candidate, &b = one.candidate;
            return a.tp == b.tp && a.pp == b.pp && a.recompute == b.recompute;
          });
      if (again) continue;  // another schedule or microbatch of the same
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

PlanMemory memory_of(const PlanProblem& problem, const PlanCandidate& candidate,
                     const PipelineWork& work, const std::vector<RowMemory>& rows) {
  return largest_of(problem, candidate, work, [&](int rank) {
    const RowMemory& row = rows[at(rank)];
    double bytes = row.boundaries() * work.boundary_bytes;
    for (const StageSlots& slots : row.stages)
      bytes += slots.saved * work.bytes[at(slots.stage)].saved +
               slots.grads * work.bytes[at(slots.stage)].grads;
    return bytes;
  });
}

PlanMemory memory_of(const PlanProblem& problem, const PlanCandidate& candidate,
                     const PipelineWork& work, const std::vector<int>& peaks) {
  const Placement placement = find_schedule(candidate.schedule).value.placement;
  std::vector<double> kept(at(candidate.pp));  // of one microbatch on all stages of the rank
  for (int stage = 0; stage < candidate.stages(); ++stage) {
    const int inner = (stage > 0 ? 1 : 0) + (stage + 1 < candidate.stages() ? 1 : 0);
    kept[at(rank_of_stage(placement, stage, candidate.pp))] +=
        work.bytes[at(stage)].saved + inner * work.boundary_bytes;
  }
  return largest_of(problem, candidate, work,
                    [&](int rank) { return peaks[at(rank)] * kept[at(rank)] / candidate.chunks; });
}

std::vector<int> promised_peaks(const PlanCandidate& candidate, int microbatches) {
  const int p = candidate.pp;
  std::vector<int> peaks;
  const auto claim =
      find_schedule(candidate.schedule).value.peak.at(p, microbatches, candidate.chunks);
  if (!claim) return peaks;
  const int most = static_cast<int>(claim->value);
  for (int rank = 0; rank < p; ++rank)
    peaks.push_back(candidate.schedule == "1f1b" ? std::min(microbatches, p - rank) : most);
  return peaks;
}

SearchOutcome search_layouts(const PlanProblem& problem,
                             const std::vector<PlanCandidate>& candidates,
                             const SearchBudget& budget) {
  return LayoutSearch(problem, budget).run(candidates);
}

}  // namespace concertina
