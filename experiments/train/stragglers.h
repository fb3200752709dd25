// Finds the rank, or the link between two stages, that has become slower than the others.
// Invariants: pure; what slows all ranks alike is no straggler; each is told once until it is over;
// a step costs a sum per rank, and what is decided is decided at most twice a second.
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
  Kind action = Kind::F;  // that takes longer; for a link, what receives: RECV_F or RECV_B
  int peer = -1;          // of the link, which sends; -1: the rank computes longer
  double times = 0;       // as long as before, or as its replicas; of a link, per step
  bool replicas = false;  // compared with them
  int steps = 0;          // over which it was seen
};
/// "rank 1 is slower than the others: its F takes 1.3 times as long as before, over 10 steps".
std::string to_text(const Straggler& straggler);

class Stragglers {
 public:
  /// Forgets all, for steps of `layout` by `working` ranks. `reads_cache`: F may take any time.
  void begin(const Layout& layout, const std::vector<int>& working, bool reads_cache);

  /// A step that took `seconds` in all; `paces`: by index of the working ranks.
  std::optional<Straggler> add(std::span<const StepPace> paces, double seconds);

  // A cell is a step, or all steps of half a second where they are shorter: what a scheduler does
  // within less is noise. A straggler is found over a window of cells, against those before it.
  static constexpr double kCellSeconds = 0.5;
  static constexpr std::size_t kWarmUp = 2, kWindow = 10, kLeastBefore = 20, kMostBefore = 64;
  static constexpr std::size_t kCompared = 8;  // ranks with which one is compared

 private:
  struct Member {
    int rank = 0;
    std::vector<std::size_t> others{};    // at most kCompared of them, by index
    std::vector<std::size_t> replicas{};  // of those with the same stages
    int links[2] = {-1, -1};              // who sends F, B to it: indices of members
    int told = 0, told_link = 0;          // cells for which it is not told again
    bool told_replicas = false;
  };
  struct Cell {
    std::vector<StepPace> paces;  // means, by member
    double seconds = 0;           // of a step
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
