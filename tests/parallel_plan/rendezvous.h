// What it means that a plan runs, written down a second time and as plainly as possible: rows, one
// program counter each, and messages that pass when both ends are posted. Shares no code with
// parallel/plan/check.cc, which it judges.
#pragma once

#include <cstddef>
#include <random>
#include <utility>
#include <vector>

#include "parallel/plan/schedule.h"

namespace concertina::rendezvous {

enum class Wire {
  pairs,  // a first-in, first-out channel for each ordered pair of ranks
  stream  // all transfers of a rank pass in the order of its row
};

enum class Outcome {
  runs,   // to its end, and every gradient is right
  wrong,  // it would compute something else, whatever the order
  hangs
};

/// Position in the row, -1 if it is not there.
int find(const std::vector<Action>& row, Kind kind, int stage, int microbatch);

class Machine {
 public:
  /// A complete plan, with transfers and reduction.
  Machine(const Plan& plan, const Layout& layout, Wire wire, int leaf_microbatches = 1);

  /// One execution, in an order that `random` chooses.
  Outcome run(std::mt19937& random) const;
  /// Every execution. They must all end in the same way; `ends` gets how many ends there are.
  Outcome explore(std::size_t most_states) const;
  /// The length of the shortest cycle of a plan that hangs: the fewest rows and streams of which
  /// each waits for the next.
  int shortest_cycle() const;

 private:
  struct Stage {
    int rank = 0, first = 0, last = 0;  // microbatches [first, last)
    int previous = -1, next = -1;       // rank of that neighbour, -1 if there is none
    bool trains = true;                 // it has gradients
    bool feeds_back = false;            // the stage before it has them too
  };
  struct End {  // of a message
    int rank = 0, position = 0;
    auto operator<=>(const End&) const = default;
  };
  /// How far everything has come. `passed` counts messages: by channel, or by rank on streams.
  struct State {
    std::vector<int> next, passed;
    auto operator<=>(const State&) const = default;
  };
  struct Queued {  // where an end of a message stands
    int channel = 0, number = 0, in_stream = 0;
  };
  using Move = std::pair<bool, int>;  // a row goes on, or a message passes; which

  const Action& at(End end) const { return plan_.rows[end.rank][end.position]; }
  int peer(const Action& action) const;
  bool does_the_work() const;
  bool row_makes_sense(int rank) const;
  bool leaves_ascend(int leaf_microbatches) const;
  void queue_messages();
  bool messages_fit() const;
  bool is_through(const State& state, End end) const;
  std::vector<End> needs(int rank, int i) const;
  std::vector<int> obstacles(const State& state, End end) const;
  State last_state(std::mt19937& random) const;
  bool may_step(const State& state, int rank) const;
  bool may_pass(const State& state, int queue) const;
  State after(const State& state, Move move) const;
  std::vector<Move> moves(const State& state) const;
  bool is_over(const State& state) const;
  State start() const;

  const Plan& plan_;
  const Wire wire_;
  std::vector<Stage> stages_;
  bool makes_sense_ = true;
  std::vector<std::pair<int, int>> channels_;         // from, to
  std::vector<std::vector<End>> sends_, takes_;       // by channel
  std::vector<std::vector<End>> streams_;             // by rank
  std::vector<std::vector<Queued>> queued_;           // by rank and position
  std::vector<std::vector<std::vector<End>>> needs_;  // likewise
};

}  // namespace concertina::rendezvous
