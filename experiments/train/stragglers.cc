#include "experiments/train/stragglers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/step_history.h"

namespace concertina {
namespace {

/// Lower than the promised 10% by the possible error of a median over a window.
const double kLeastGrowth = std::log(1.07);
const double kLeastOfReplicas = std::log(1.10);
/// A rise must also exceed this multiple of one cell's noise.
constexpr double kNoises = 4;

/// Robust standard deviation.
double noise(std::span<const double> values) {
  const double middle = median({values.begin(), values.end()});
  std::vector<double> off;
  for (const double value : values) off.push_back(std::abs(value - middle));
  return 1.4826 * median(off);
}

/// How far the window of `row` is above the cells before it; 0 unless that exceeds `least` and the
/// noise.
double rise(const std::vector<double>& row, std::size_t before, double least) {
  const std::span<const double> all(row), old = all.first(before), window = all.subspan(before);
  const double size = median({window.begin(), window.end()}) - median({old.begin(), old.end()});
  return size > std::max(least, kNoises * std::max(noise(old), noise(window))) ? size : 0;
}

double log_of(double seconds) {
  return std::log(std::max(1e-9, seconds));
}

/// Row `own` divided by the median of the rows `others`, cell by cell.
std::vector<double> over_median(const std::vector<std::vector<double>>& rows, std::size_t own,
                                const std::vector<std::size_t>& others) {
  std::vector<double> over = rows[own];
  for (std::size_t i = 0; i < over.size(); ++i) {
    std::vector<double> values;
    for (const std::size_t other : others) values.push_back(rows[other][i]);
    over[i] -= median(values);
  }
  return over;
}

/// Whether to report a rise of `size`: one that fluctuates with the noise is reported once.
bool is_new(int& cooldown, double size) {
  if (size == 0) return cooldown = std::max(0, cooldown - 1), false;
  return std::exchange(cooldown, static_cast<int>(2 * Stragglers::kWindow)) == 0;
}

/// The units of a rank's stages, in their order.
std::vector<int> work_of(const Layout& layout, int rank) {
  std::vector<int> work;
  for (const Pipeline& pipeline : layout.pipelines)
    for (const StagePlacement& stage : pipeline.stages)
      if (stage.rank == rank) {
        work.push_back(stage.first_unit);
        work.push_back(stage.last_unit);
      }
  return work;
}

}  // namespace

std::string to_text(const Straggler& s) {
  if (s.peer >= 0)
    return fmt::format(
        "the link from rank {} to rank {} is slower than before: over {} steps, the messages for "
        "{} are late, and a step takes {:.2f} times as long; no rank computes more slowly",
        s.peer, s.rank, s.steps, name_of(s.action), s.times);
  return fmt::format(
      "rank {} is slower than {}: its {} takes {:.2f} times as long as {}, over {} steps", s.rank,
      s.replicas ? "its replicas" : "the others", name_of(s.action), s.times,
      s.replicas ? "theirs" : "before", s.steps);
}

void Stragglers::begin(const Layout& layout, const std::vector<int>& working, bool reads_cache) {
  members_.clear();
  reads_cache_ = reads_cache;
  skipped_ = 0;
  open_ = {};
  cells_.clear();
  const auto index_of = [&](int rank) {
    return static_cast<int>(std::ranges::find(working, rank) - working.begin());
  };
  std::vector<std::vector<int>> work;
  for (const int rank : working) work.push_back(work_of(layout, rank));
  for (const int rank : working) {
    Member& member = members_.emplace_back(Member{.rank = rank});
    const std::size_t own = members_.size() - 1;
    for (std::size_t step = 1; step < working.size(); ++step) {
      const std::size_t other = (own + step) % working.size();
      if (member.others.size() < kCompared) member.others.push_back(other);
      if (member.replicas.size() < kCompared && work[other] == work[own])
        member.replicas.push_back(other);
    }
  }
  for (const Pipeline& pipeline : layout.pipelines)
    for (std::size_t s = 1; s < pipeline.stages.size(); ++s) {
      const int from = pipeline.stages[s - 1].rank, to = pipeline.stages[s].rank;
      if (from == to) continue;
      members_[static_cast<std::size_t>(index_of(to))].links[0] = index_of(from);
      members_[static_cast<std::size_t>(index_of(from))].links[1] = index_of(to);
    }
}

std::optional<Straggler> Stragglers::add(std::span<const StepPace> paces, double seconds) {
  if (paces.size() != members_.size() || members_.size() < 2) return std::nullopt;
  open_.paces.resize(paces.size());
  const auto sum = [](auto& sums, const auto& values) {
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += values[i];
  };
  for (std::size_t m = 0; m < paces.size(); ++m) {
    sum(open_.paces[m].compute, paces[m].compute);
    sum(open_.paces[m].sent, paces[m].sent);
    sum(open_.paces[m].received, paces[m].received);
  }
  open_.seconds += seconds;
  ++open_.steps;
  if (open_.seconds < kCellSeconds) return std::nullopt;
  close_cell();
  return cells_.size() >= kLeastBefore + kWindow ? decide() : std::nullopt;
}

void Stragglers::close_cell() {
  const auto divide = [steps = open_.steps](auto& sums) {
    for (double& one : sums) one /= steps;
  };
  for (StepPace& pace : open_.paces) divide(pace.compute), divide(pace.sent), divide(pace.received);
  open_.seconds /= open_.steps;
  if (++skipped_ > kWarmUp) cells_.push_back(open_);
  if (cells_.size() > kMostBefore + kWindow) cells_.erase(cells_.begin());
  open_ = {};
}

int Stragglers::window_steps() const {
  int steps = 0;
  for (std::size_t i = before(); i < cells_.size(); ++i) steps += cells_[i].steps;
  return steps;
}

double Stragglers::compute(const Cell& cell, std::size_t member) const {
  double seconds = 0;
  for (std::size_t kind = reads_cache_ ? 1 : 0; kind < 4; ++kind)
    seconds += cell.paces[member].compute[kind];
  return seconds;
}

/// The logarithm of `member`'s compute time, by cell.
Stragglers::Row Stragglers::growth(std::size_t member) const {
  Row row;
  for (const Cell& cell : cells_) row.push_back(log_of(compute(cell, member)));
  return row;
}

/// The action whose time has grown most, and the factor.
std::pair<Kind, double> Stragglers::slowest_kind(std::size_t member) const {
  std::pair<Kind, double> slowest{Kind::F, 0};
  for (std::size_t kind = reads_cache_ ? 1 : 0; kind < 4; ++kind) {
    std::vector<double> old, window;
    for (std::size_t i = 0; i < cells_.size(); ++i)
      (i < before() ? old : window).push_back(cells_[i].paces[member].compute[kind]);
    const double grown = median(old) > 0 ? median(window) / median(old) : 0;
    if (grown > slowest.second) slowest = {static_cast<Kind>(kind), grown};
  }
  return slowest;
}

std::optional<Straggler> Stragglers::decide() {
  std::optional<Straggler> found = slower_than_before();
  if (!found) found = slower_than_replicas();
  if (!found) found = slower_link();
  if (found) found->steps = window_steps();
  return found;
}

/// Finds a rank that has slowed down compared with its own past, by more than the other ranks have.
std::optional<Straggler> Stragglers::slower_than_before() {
  std::vector<Row> own;
  for (std::size_t m = 0; m < members_.size(); ++m) {
    Row row = growth(m);
    const double typical = median({row.begin(), row.begin() + static_cast<long>(before())});
    for (double& value : row) value -= typical;
    own.push_back(std::move(row));
  }
  std::optional<Straggler> found;
  double most = 0;
  for (std::size_t m = 0; m < members_.size(); ++m) {
    const Row over = over_median(own, m, members_[m].others);
    // If only the others have become faster, this rank is not a straggler.
    const double size =
        std::min(rise(over, before(), kLeastGrowth), rise(own[m], before(), kLeastGrowth));
    members_[m].reported_replicas = members_[m].reported_replicas || size > 0;
    if (!is_new(members_[m].cooldown, size) || size <= most) continue;
    most = size;
    const auto [kind, times] = slowest_kind(m);
    found = Straggler{.rank = members_[m].rank, .action = kind, .times = times};
  }
  return found;
}

/// Finds a rank that consistently takes longer than other ranks with the same stages.
std::optional<Straggler> Stragglers::slower_than_replicas() {
  std::vector<Row> rows;
  for (std::size_t m = 0; m < members_.size(); ++m) rows.push_back(growth(m));
  for (std::size_t m = 0; m < members_.size(); ++m) {
    Member& member = members_[m];
    if (member.replicas.empty() || member.reported_replicas) continue;
    const Row over = over_median(rows, m, member.replicas);
    // Over all cells, so that temporary load on the machine does not count.
    const double size = median(over);
    if (size < std::max(kLeastOfReplicas, kNoises * noise(over))) continue;
    member.reported_replicas = true;
    return Straggler{.rank = member.rank,
                     .action = slowest_kind(m).first,
                     .times = std::exp(size),
                     .replicas = true};
  }
  return std::nullopt;
}

/// Finds a link whose messages are late while steps take longer, though no rank is slower.
std::optional<Straggler> Stragglers::slower_link() {
  Row steps;
  for (const Cell& cell : cells_) steps.push_back(log_of(cell.seconds));
  const double grown = rise(steps, before(), kLeastGrowth);
  double most = 0;
  Straggler found{.times = std::exp(grown)};
  Member* late = nullptr;
  for (std::size_t m = 0; m < members_.size(); ++m) {
    if (rise(growth(m), before(), kLeastGrowth) > 0) return std::nullopt;
    for (const int way : {0, 1}) {
      const int from = members_[m].links[way];
      if (from < 0) continue;
      Row transit;
      for (const Cell& cell : cells_)
        transit.push_back(
            cell.paces[m].received[static_cast<std::size_t>(way)] -
            cell.paces[static_cast<std::size_t>(from)].sent[static_cast<std::size_t>(way)]);
      // Both clocks drift alike within a window, and a transit lasts less than a step.
      const double size = rise(transit, before(), 0);
      if (size <= most) continue;
      most = size;
      late = &members_[m];
      found.rank = late->rank;
      found.peer = members_[static_cast<std::size_t>(from)].rank;
      found.action = way == 0 ? Kind::RECV_F : Kind::RECV_B;
    }
  }
  bool fresh = false;
  for (Member& member : members_)
    if (is_new(member.link_cooldown, &member == late ? grown : 0)) fresh = true;
  return fresh ? std::optional(found) : std::nullopt;
}

}  // namespace concertina
