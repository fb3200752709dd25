// An independent, simple definition of running a plan: rows with a program counter each, and
// messages that pass when both ends are posted. Shares no code with parallel/plan/check.cc, which
// it verifies.
#pragma once

#include <cstddef>
#include <random>
#include <utility>
#include <vector>

#include "parallel/plan/schedule.h"

namespace concertina::rendezvous {

enum class Wire {
  pairs,  // a FIFO channel for each ordered pair of ranks
  stream  // all transfers of a rank pass in the order of its row
};

enum class Outcome {
  runs,   // runs to its end, and every gradient is right
  wrong,  // computes something else, whatever the order
  hangs
};

/// Returns the position in the row, or -1.
int find(const std::vector<Action>& row, Kind kind, int stage, int microbatch);

class Machine {
 public:
  /// A complete plan, with transfers and reduction.
  Machine(const Plan& plan, const Layout& layout, Wire wire, int leaf_microbatches = 1);

  /// Runs once, in an order chosen by `random`.
  Outcome run(std::mt19937& random) const;
  /// Tries every order. All must have the same outcome; `ends` gets the number of final states.
  Outcome explore(std::size_t most_states) const;
  /// Returns the length of the shortest cycle of a plan that hangs: the fewest rows and streams
  /// that wait for each other in a circle.
  int shortest_cycle() const;

 private:
  struct Stage {
    int rank = 0, first = 0, last = 0;  // microbatches [first, last)
    int previous = -1, next = -1;       // rank of that neighbor, or -1
    bool trains = true;                 // it has gradients
    bool feeds_back = false;            // the stage before it has them too
  };
  struct End {  // of a message
    int rank = 0, position = 0;
    auto operator<=>(const End&) const = default;
  };
  /// The progress of all. `passed` counts messages: by channel or, on streams, by rank.
  struct State {
    std::vector<int> next, passed;
    auto operator<=>(const State&) const = default;
  };
  struct Queued {  // the place of an end of a message
    int channel = 0, number = 0, in_stream = 0;
  };
  using Move = std::pair<bool, int>;  // whether a row advances or a message passes; which

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
