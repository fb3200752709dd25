// Pool of the states of a communicator's Works: created on demand, then reused.
// Invariant: after warm-up neither take() nor give() allocates. Single-threaded.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace concertina {

template <class State>
class WorkPool {
 public:
  /// Returns an idle state, created by `make` if there is none.
  template <class Make>
  State& take(const Make& make) {
    if (idle_.empty()) add(make);
    State& state = *idle_.back();
    idle_.pop_back();
    return state;
  }
  /// Ensures at least `count` states in total.
  template <class Make>
  void reserve(std::size_t count, const Make& make) {
    while (all_.size() < count) add(make);
  }
  void give(State& state) { idle_.push_back(&state); }
  std::size_t in_use() const { return all_.size() - idle_.size(); }

 private:
  template <class Make>
  void add(const Make& make) {
    all_.push_back(make());
    idle_.reserve(all_.capacity());
    idle_.push_back(all_.back().get());
  }

  std::vector<std::unique_ptr<State>> all_;
  std::vector<State*> idle_;
};

}  // namespace concertina
