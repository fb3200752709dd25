// Finds the rank, or the link between two stages, that has become slower than the others.
// Invariants: pure; a slowdown of all ranks alike is not a straggler; each straggler is reported
// once until it recovers; a step costs one sum per rank; decides at most twice a second.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "parallel/plan/layout.h"
#include "parallel/plan/step_record.h"

namespace concertina {

struct Straggler {
  int rank = 0;
  Kind action = Kind::F;  // action that takes longer; for a link, RECV_F or RECV_B
  int peer = -1;          // sender of the link; -1: the rank computes more slowly
  double times = 0;       // factor relative to the past or to replicas; for a link, of step time
  bool replicas = false;  // `times` is relative to its replicas
  int steps = 0;          // number of steps in which it was observed
};
/// "rank 1 is slower than the others: its F takes 1.3 times as long as before, over 10 steps".
std::string to_text(const Straggler& straggler);

class Stragglers {
 public:
  /// Resets everything for steps of `layout` by `working` ranks. `reads_cache`: ignore F.
  void begin(const Layout& layout, const std::vector<int>& working, bool reads_cache);

  /// Adds a step that took `seconds` in total; `paces`: by index of the working ranks.
  std::optional<Straggler> add(std::span<const StepPace> paces, double seconds);

  // A cell is one step, or all steps within half a second if steps are shorter, since shorter
  // scheduler effects are noise. Stragglers are found by comparing a window with earlier cells.
  static constexpr double kCellSeconds = 0.5;
  static constexpr std::size_t kWarmUp = 2, kWindow = 10, kLeastBefore = 20, kMostBefore = 64;
  static constexpr std::size_t kCompared = 8;  // ranks that a rank is compared with

 private:
  struct Member {
    int rank = 0;
    std::vector<std::size_t> others{};    // at most kCompared, by index
    std::vector<std::size_t> replicas{};  // members with the same stages
    int links[2] = {-1, -1};              // members from which it receives in F and in B
    int cooldown = 0, link_cooldown = 0;  // cells until it can be reported again
    bool reported_replicas = false;
  };
  struct Cell {
    std::vector<StepPace> paces;  // means, by member
    double seconds = 0;           // per step
    int steps = 0;
  };
  using Row = std::vector<double>;  // by cell

  void close_cell();
  std::optional<Straggler> decide();
  std::optional<Straggler> slower_than_before();
  std::optional<Straggler> slower_than_replicas();
  std::optional<Straggler> slower_link();
  Row growth(std::size_t member) const;
  double compute(const Cell& cell, std::size_t member) const;
  std::pair<Kind, double> slowest_kind(std::size_t member) const;
  std::size_t before() const { return cells_.size() - kWindow; }
  int window_steps() const;

  std::vector<Member> members_;
  bool reads_cache_ = false;
  std::size_t skipped_ = 0;  // cells of the warm-up
  Cell open_;
  std::vector<Cell> cells_;  // at most kMostBefore + kWindow
};

}  // namespace concertina
