#include "parallel/policies/weight_skips.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "core/error.h"
#include "core/index.h"
#include "parallel/simulate/simulate.h"

namespace concertina {
namespace {

constexpr double kZero = 1e-11;
constexpr double kRaise = 1e-8;

/// In [1/2, 3/2), different for each row, so that no two rows bind at once.
double spread(std::size_t row) {
  const double golden = 0.6180339887498949 * static_cast<double>(row + 1);
  return 0.5 + golden - std::floor(golden);
}

/// Rows of the program in terms of the basis: columns of x, one slack per row, the limit. The last
/// row holds the loss of each column.
class Tableau {
 public:
  explicit Tableau(const LinearProgram& program)
      : rows_(program.rows.size()), columns_(program.gain.size() + rows_) {
    for (std::size_t i = 0; i < rows_; ++i) {
      CONCERTINA_CHECK(program.rows[i].size() == program.gain.size() && program.limit[i] >= 0,
                       "invalid row {} of a linear program", i);
      std::vector<double>& row = cells_.emplace_back(program.rows[i]);
      row.resize(columns_ + 1);
      row[program.gain.size() + i] = 1;
      row[columns_] = program.limit[i] + kRaise * spread(i);
    }
    std::vector<double>& losses = cells_.emplace_back(columns_ + 1);
    for (std::size_t j = 0; j < program.gain.size(); ++j) losses[j] = -program.gain[j];
  }

  /// Returns false if the gain is unbounded.
  bool solve() {
    for (;;) {
      const auto losses = cells_[rows_].begin();
      const auto enters = std::min_element(losses, losses + static_cast<std::ptrdiff_t>(columns_));
      if (*enters >= -kZero) return true;
      const auto column = static_cast<std::size_t>(enters - losses);
      const std::size_t leaves = leaving_row(column);
      if (leaves == rows_) return false;
      pivot(leaves, column);
    }
  }

  double price(std::size_t row) const { return cells_[rows_][columns_ - rows_ + row]; }

 private:
  /// Returns the row that binds first when the column enters.
  std::size_t leaving_row(std::size_t enters) const {
    std::size_t best = rows_;
    double least = 0;
    for (std::size_t i = 0; i < rows_; ++i) {
      if (cells_[i][enters] <= kZero) continue;
      const double ratio = cells_[i][columns_] / cells_[i][enters];
      if (best < rows_ && ratio >= least) continue;
      best = i;
      least = ratio;
    }
    return best;
  }

  void pivot(std::size_t leaves, std::size_t enters) {
    std::vector<double>& row = cells_[leaves];
    const double scale = 1 / row[enters];
    for (double& cell : row) cell *= scale;
    for (std::size_t i = 0; i <= rows_; ++i) {
      const double factor = cells_[i][enters];
      if (i == leaves || factor == 0) continue;
      for (std::size_t j = 0; j <= columns_; ++j) cells_[i][j] -= factor * row[j];
      cells_[i][enters] = 0;
    }
  }

  std::size_t rows_, columns_;
  std::vector<std::vector<double>> cells_;
};

constexpr double kSameTime = 1e-9;  // relative to the makespan without skips, the unit of time
constexpr int kMostPaths = 1000;    // far more than any plan has needed

/// A path through the plan. It takes `whole` minus the sum of `saved` times share over all groups.
struct SkipPath {
  double whole = 0;
  std::vector<double> saved;
};

class SkipSearch {
 public:
  SkipSearch(const Plan& plan, const Layout& layout, const Costs& costs,
             const std::vector<double>& most)
      : plan_(plan), layout_(layout), costs_(costs), group_(stage_groups(layout)) {
    groups_ = group_.empty() ? 0 : *std::max_element(group_.begin(), group_.end()) + 1;
    best_.resize(at(groups_));
    most_.resize(at(groups_), 1);
    for (std::size_t s = 0; s < group_.size(); ++s)
      most_[at(group_[s])] = std::min(most_[at(group_[s])], most[s]);
    unit_ = simulate_with(best_).makespan;
  }

  /// Finds the minimum makespan over the known paths, and adds paths until none is missing.
  void shorten() {
    while (unit_ > 0 && std::ssize(paths_) < kMostPaths) {
      const auto [time, shares] = least_time();
      bound_ = time;
      if (!try_shares(shares, time)) return;
    }
  }

  /// Finds the shares with the smallest sum for that makespan; all 0 if nothing is gained. If links
  /// are shared, possibly no shares satisfy all paths; then those found by shorten() are kept.
  void spare() {
    if (best_time_ > 1 - 10 * kSameTime) {
      std::fill(best_.begin(), best_.end(), 0);
      return;
    }
    const double limit = best_time_ + kSameTime;
    while (unit_ > 0 && std::ssize(paths_) < kMostPaths) {
      const std::optional<std::vector<double>> shares = least_shares(limit);
      if (!shares) return;
      double time = 0;
      paths_.push_back(critical_path(*shares, time));
      if (time > limit + kSameTime) continue;
      best_ = *shares;
      return;
    }
  }

  WeightSkips result() const {
    WeightSkips skips;
    for (const int group : group_) skips.share.push_back(best_[at(group)]);
    skips.before = unit_;
    skips.after = simulate_with(best_).makespan;
    skips.bound = std::min(bound_, best_time_) * unit_;
    return skips;
  }

 private:
  Timeline simulate_with(const std::vector<double>& shares) const {
    Costs costs = costs_;
    for (std::size_t s = 0; s < group_.size(); ++s)
      costs.stages[s].weight *= 1 - shares[at(group_[s])];
    return simulate(plan_, layout_, costs);
  }

  /// The critical path with these shares, in units of the makespan without them; `time` is its end.
  SkipPath critical_path(const std::vector<double>& shares, double& time) const {
    const Timeline timeline = simulate_with(shares);
    SkipPath path{0, std::vector<double>(at(groups_))};
    for (const PathStep& step : timeline.critical_path) {
      const std::vector<Action>& row = plan_.rows[at(step.rank)];
      const int last = step.position + (row[at(step.position)].overlapped ? 1 : 0);
      for (int position = step.position; position <= last; ++position)
        if (const Action& action = row[at(position)]; makes_weight_gradient(action.kind))
          path.saved[at(group_[at(action.stage)])] +=
              costs_.stages[at(action.stage)].weight / unit_;
    }
    time = timeline.makespan / unit_;
    path.whole = std::inner_product(shares.begin(), shares.end(), path.saved.begin(), time);
    return path;
  }

  /// Keeps the shares if they are the best yet, and adds their path; false if no path is missing.
  bool try_shares(const std::vector<double>& shares, double expected) {
    double time = 0;
    paths_.push_back(critical_path(shares, time));
    if (time < best_time_) {
      best_ = shares;
      best_time_ = time;
    }
    return time > expected + kSameTime;
  }

  /// The dual program: one column of `gain` per path, and one per group for its largest share. It
  /// has one row per group, whose price is the group's share.
  LinearProgram program(double limit, double offset) const {
    LinearProgram result;
    for (const SkipPath& path : paths_) result.gain.push_back(path.whole - offset);
    for (int g = 0; g < groups_; ++g) {
      std::vector<double>& row = result.rows.emplace_back();
      for (const SkipPath& path : paths_) row.push_back(path.saved[at(g)]);
      for (int other = 0; other < groups_; ++other) row.push_back(other == g ? -1 : 0);
      result.limit.push_back(limit);
      result.gain.push_back(-most_[at(g)]);
    }
    return result;
  }

  /// Minimizes the time t such that no path takes longer than t.
  std::pair<double, std::vector<double>> least_time() const {
    LinearProgram dual = program(0, 0);
    std::vector<double>& time = dual.rows.emplace_back(dual.gain.size());
    std::fill_n(time.begin(), paths_.size(), 1);
    dual.limit.push_back(1);
    std::optional<std::vector<double>> prices = row_prices(dual);
    CONCERTINA_CHECK(prices.has_value(), "the makespan has no minimum");
    const double least = prices->back();
    prices->pop_back();
    return {least, clamped(std::move(*prices))};
  }

  /// Minimizes the sum of shares such that no path exceeds `time`; nothing if that is impossible.
  std::optional<std::vector<double>> least_shares(double time) const {
    std::optional<std::vector<double>> prices = row_prices(program(1, time));
    if (prices) prices = clamped(std::move(*prices));
    return prices;
  }

  std::vector<double> clamped(std::vector<double> shares) const {
    for (std::size_t g = 0; g < shares.size(); ++g)
      shares[g] = shares[g] < kSameTime ? 0 : std::min(shares[g], most_[g]);
    return shares;
  }

  const Plan& plan_;
  const Layout& layout_;
  const Costs& costs_;
  std::vector<double> most_;  // by group
  std::vector<int> group_;
  int groups_ = 0;
  std::vector<SkipPath> paths_;
  std::vector<double> best_;
  double unit_ = 0, best_time_ = 1, bound_ = 0;  // times in units of the makespan without skips
};

}  // namespace

std::optional<std::vector<double>> row_prices(const LinearProgram& program) {
  CONCERTINA_CHECK(program.limit.size() == program.rows.size(), "{} limits for {} rows",
                   program.limit.size(), program.rows.size());
  Tableau tableau(program);
  if (!tableau.solve()) return std::nullopt;
  std::vector<double> prices;
  for (std::size_t i = 0; i < program.rows.size(); ++i)
    prices.push_back(std::max(tableau.price(i), 0.0));
  return prices;
}

std::vector<int> stage_groups(const Layout& layout) {
  const std::vector<StagePlacement> stages = layout.stages();
  // Whether every pipeline has a stage boundary before the unit.
  std::vector<int> cut(at(layout.unit_count()) + 1, 1);
  for (const StagePlacement& stage : stages)
    for (int unit = stage.first_unit + 1; unit < stage.last_unit; ++unit) cut[at(unit)] = 0;
  std::partial_sum(cut.begin(), cut.end(), cut.begin());
  std::vector<int> groups;
  for (const StagePlacement& stage : stages) groups.push_back(cut[at(stage.first_unit)] - 1);
  return groups;
}

WeightSkips skip_weights(const Plan& plan, const Layout& layout, const Costs& costs,
                         const std::vector<double>& most) {
  CONCERTINA_CHECK(std::ssize(most) == layout.stage_count(), "{} largest shares for {} stages",
                   most.size(), layout.stage_count());
  for (const double share : most)
    CONCERTINA_CHECK(share >= 0 && share <= 1, "invalid largest share {}", share);
  SkipSearch search(plan, layout, costs, most);
  search.shorten();
  search.spare();
  return search.result();
}

}  // namespace concertina
