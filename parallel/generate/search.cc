#include "parallel/generate/search.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "core/error.h"
#include "parallel/generate/list_rows.h"
#include "parallel/generate/passes.h"

namespace concertina {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
using Rows = std::vector<std::vector<Action>>;

/// Splits B into I and W, and removes overlaps.
Rows split(const Plan& plan, int ranks) {
  Rows rows(static_cast<std::size_t>(ranks));
  for (std::size_t rank = 0; rank < plan.rows.size(); ++rank)
    for (const Action& action : plan.rows[rank]) {
      const bool both = action.kind == Kind::B;
      rows[rank].push_back({both ? Kind::I : action.kind, action.stage, action.microbatch});
      if (both) rows[rank].push_back({Kind::W, action.stage, action.microbatch});
    }
  return rows;
}

/// Whether `later` must stay after `earlier` in a row.
bool ordered(const Action& earlier, const Action& later) {
  return earlier.stage == later.stage &&
         (earlier.kind == later.kind || earlier.microbatch == later.microbatch);
}

class Climb {
 public:
  Climb(const Layout& layout, const Costs& costs, const SearchBounds& bounds)
      : judge_(layout, costs),
        bounds_(bounds),
        random_(bounds.seed),
        shortest_(least_length(judge_, bounds.objective)) {}

  RowJudge& judge() { return judge_; }
  bool fits(const Rows& rows) const {
    for (std::size_t rank = 0; rank < rows.size(); ++rank)
      if (!fits(rank, rows[rank])) return false;
    return true;
  }
  /// Whether the lower bound is reached.
  bool perfect() const { return seconds_ <= shortest_ * (1 + kRounding); }
  void offer(Rows rows) {
    if (!fits(rows)) return;
    if (const double seconds = judge_.length(rows, bounds_.objective); seconds < seconds_) {
      seconds_ = seconds;
      rows_ = std::move(rows);
    }
  }

  /// Whether to stop searching.
  bool ended() const {
    return perfect() || (bounds_.keep_searching && !bounds_.keep_searching(seconds_));
  }

  /// Offers the rows from the rules with a warm-up and a steady phase, as far as the effort allows.
  void offer_steady() {
    std::int64_t actions = 0, left = bounds_.effort;
    for (const StageInfo& stage : judge_.stages())
      actions += std::int64_t{3} * (stage.last_microbatch - stage.first_microbatch);
    for (const SteadyRule& rule : steady_rules()) {
      if (ended() || (left -= actions) < 0) return;
      if (auto rows = steady_rows(judge_, rule, bounds_.peak_activations, bounds_.kept_for_weight))
        offer(std::move(*rows));
    }
  }

  SearchResult run() && {
    if (seconds_ == kInf) return {};
    bool done = perfect();
    std::size_t actions = 0;
    for (const std::vector<Action>& row : rows_) actions += row.size();
    // Few actions have few orders: more moves per action would find nothing new.
    const auto in_all = static_cast<std::int64_t>(actions);
    const std::int64_t by_effort =
        bounds_.effort / std::ssize(rows_) / std::max<std::int64_t>(1, in_all / std::ssize(rows_));
    const std::int64_t moves =
        std::max<std::int64_t>(200, std::min(by_effort, kMostMoves * in_all));
    Rows best = rows_;
    double least = seconds_;
    for (std::int64_t i = 0; i < moves && !done; ++i) {
      const double left = 1 - static_cast<double>(i) / static_cast<double>(moves);
      move(kHottest * least * left * left);
      if (seconds_ < least) {
        least = seconds_;
        best = rows_;
        done = perfect();
      }
      if (i % kAskEvery == 0 && bounds_.keep_searching)
        done = done || !bounds_.keep_searching(least);
    }
    return {Plan{std::move(best)}, least};
  }

 private:
  static constexpr double kHottest =
      0.004;  // fraction of the step: initial average cost of an accepted move
  static constexpr int kFarthest = 8;
  static constexpr std::int64_t kMostMoves = 16'000;  // per action
  static constexpr std::int64_t kAskEvery = 16;       // moves
  static constexpr double kRounding = 1e-12;

  bool fits(std::size_t rank, const std::vector<Action>& row) const {
    if (bounds_.peak_activations.empty()) return true;
    return kept_peak(row, bounds_.kept_for_weight) <=
           bounds_.peak_activations[rank] * (1 + kRounding);
  }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }

  /// Moves an action by some places, as far as its row allows; undone if the step gets too long.
  void move(double heat) {
    const std::size_t rank = below(rows_.size());
    std::vector<Action>& row = rows_[rank];
    if (row.size() < 2) return;
    const std::size_t from = below(row.size()), wanted = 1 + below(kFarthest);
    const bool up = below(2) == 0;
    std::size_t to = from;
    for (std::size_t i = 0; i < wanted; ++i) {
      if (up ? to == 0 || ordered(row[to - 1], row[from])
             : to + 1 == row.size() || ordered(row[from], row[to + 1]))
        break;
      to = up ? to - 1 : to + 1;
    }
    if (to == from) return;
    shift(row, from, to);
    const double seconds = fits(rank, row) ? judge_.length(rows_, bounds_.objective) : kInf;
    const double chance = static_cast<double>(random_() >> 11) * 0x1p-53;
    if (seconds <= seconds_ || (heat > 0 && chance < std::exp((seconds_ - seconds) / heat)))
      seconds_ = seconds;
    else
      shift(row, to, from);
  }

  static void shift(std::vector<Action>& row, std::size_t from, std::size_t to) {
    const auto begin = row.begin();
    const auto a = static_cast<std::ptrdiff_t>(from), b = static_cast<std::ptrdiff_t>(to);
    if (a < b)
      std::rotate(begin + a, begin + a + 1, begin + b + 1);
    else
      std::rotate(begin + b, begin + a, begin + a + 1);
  }

  RowJudge judge_;
  const SearchBounds& bounds_;
  std::mt19937_64 random_;
  const double shortest_;  // lower bound
  Rows rows_;
  double seconds_ = kInf;
};

}  // namespace

std::vector<Plan> named_plans(const Layout& layout) {
  std::vector<Plan> plans;
  for (const Entry<Schedule>& schedule : schedules()) {
    if (schedule.value.searched) continue;
    try {
      plans.push_back(expand(layout, schedule.value, schedule.name));
    } catch (const Error& error) {
      if (error.code() != Exit::bad_input) throw;
    }
  }
  return plans;
}

SearchResult search(const Layout& layout, const Costs& costs, const std::vector<Plan>& candidates,
                    const SearchBounds& bounds) {
  Climb climb(layout, costs, bounds);
  for (const Plan& plan : candidates) climb.offer(split(plan, climb.judge().ranks()));
  if (bounds.objective == Objective::span) climb.offer_steady();
  // The approximate effort of a rule: every stage before every action.
  std::int64_t left = bounds.effort;
  for (const GreedyRule& rule : greedy_rules(layout, bounds.peak_activations)) {
    if (left < 0 || climb.ended()) break;
    auto rows = greedy_rows(climb.judge(), rule);
    if (!rows) continue;
    for (const std::vector<Action>& row : *rows)
      left -= static_cast<std::int64_t>(row.size()) * layout.stage_count();
    climb.offer(std::move(*rows));
  }
  return std::move(climb).run();
}

}  // namespace concertina
