// What a plan must satisfy with any timing: all work once, and nothing is read before it exists.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "tests/parallel_plan/rendezvous.h"

namespace concertina::rendezvous {

/// Checks that the actions of all rows are those of the step, as multisets.
bool Machine::does_the_work() const {
  using Key = std::tuple<int, int, int, int>;  // rank, kind, stage, microbatch
  std::multiset<Key> there, due;
  for (int rank = 0; rank < std::ssize(plan_.rows); ++rank)
    for (const Action& a : plan_.rows[rank])
      there.insert({rank, static_cast<int>(a.kind), a.stage, a.microbatch});
  const auto want = [&](int rank, Kind kind, int stage, int microbatch) {
    due.insert({rank, static_cast<int>(kind), stage, microbatch});
  };
  for (int s = 0; s < std::ssize(stages_); ++s) {
    const Stage& stage = stages_[s];
    for (int m = stage.first; m < stage.last; ++m) {
      want(stage.rank, Kind::F, s, m);
      const bool next = stage.next >= 0 && stage.next != stage.rank;
      const bool previous = stage.previous >= 0 && stage.previous != stage.rank;
      if (next) want(stage.rank, Kind::SEND_F, s, m);
      if (previous) want(stage.rank, Kind::RECV_F, s, m);
      if (next && stage.trains) want(stage.rank, Kind::RECV_B, s, m);
      if (previous && stage.feeds_back) want(stage.rank, Kind::SEND_B, s, m);
      if (!stage.trains) continue;
      if (there.contains({stage.rank, static_cast<int>(Kind::B), s, m})) {
        want(stage.rank, Kind::B, s, m);
      } else {
        want(stage.rank, Kind::I, s, m);
        want(stage.rank, Kind::W, s, m);
      }
    }
    if (stage.trains) want(stage.rank, Kind::REDUCE, s, -1);
  }
  for (int rank = 0; rank < std::ssize(plan_.rows); ++rank) want(rank, Kind::STEP, 0, -1);
  return there == due;
}

/// Checks that nothing is read before its own rank has computed or received it.
bool Machine::row_makes_sense(int rank) const {
  const std::vector<Action>& row = plan_.rows[rank];
  if (row.empty() || row.back().kind != Kind::STEP) return false;
  for (int i = 0; i < std::ssize(row); ++i) {
    const Kind kind = row[i].kind;
    const int s = row[i].stage, m = row[i].microbatch;
    if (row[i].overlapped &&
        (kind != Kind::F || (row[i + 1].kind != Kind::B && row[i + 1].kind != Kind::I) ||
         row[i + 1].microbatch == m))
      return false;
    if (kind == Kind::STEP) continue;
    const auto before = [&](Kind what, int other, int microbatch) {
      const int found = find(row, what, other, microbatch);
      return found >= 0 && found < i;
    };
    const auto gradient_before = [&](int other, int microbatch) {
      return before(Kind::B, other, microbatch) || before(Kind::I, other, microbatch);
    };
    const Stage& stage = stages_[s];
    bool ready = true;
    if (kind == Kind::F && stage.previous >= 0)
      ready = stage.previous == rank ? before(Kind::F, s - 1, m) : before(Kind::RECV_F, s, m);
    if (makes_input_gradient(kind)) {
      ready = before(Kind::F, s, m);
      if (stage.next == rank) ready = ready && gradient_before(s + 1, m);
      if (stage.next >= 0 && stage.next != rank)  // no gradient for an output that was not sent
        ready = ready && before(Kind::SEND_F, s, m) && before(Kind::RECV_B, s, m);
    }
    if (kind == Kind::W) ready = before(Kind::I, s, m);
    if (kind == Kind::SEND_F) ready = before(Kind::F, s, m);
    if (kind == Kind::SEND_B) ready = gradient_before(s, m);
    if (kind == Kind::REDUCE)
      for (int later = i; later < std::ssize(row); ++later)
        ready = ready && !(makes_weight_gradient(row[later].kind) && row[later].stage == s);
    if (!ready) return false;
  }
  return true;
}

bool Machine::leaves_ascend(int leaf_microbatches) const {
  for (const std::vector<Action>& row : plan_.rows) {
    std::map<std::pair<int, int>, int> newest;  // microbatch, by stage and leaf
    for (const Action& a : row) {
      if (!makes_weight_gradient(a.kind)) continue;
      const auto [it, fresh] =
          newest.try_emplace({a.stage, a.microbatch / leaf_microbatches}, a.microbatch);
      if (!fresh && it->second > a.microbatch) return false;
      it->second = a.microbatch;
    }
  }
  return true;
}

/// Checks that the k-th send of a channel matches its k-th receive, whatever the timing.
bool Machine::messages_fit() const {
  for (std::size_t c = 0; c < channels_.size(); ++c) {
    if (sends_[c].size() != takes_[c].size()) return false;
    for (std::size_t k = 0; k < sends_[c].size(); ++k) {
      const Action& send = at(sends_[c][k]);
      const Action& take = at(takes_[c][k]);
      const bool fits = send.kind == Kind::SEND_F
                            ? take == Action{Kind::RECV_F, send.stage + 1, send.microbatch}
                            : take == Action{Kind::RECV_B, send.stage - 1, send.microbatch};
      if (!fits) return false;
    }
  }
  return true;
}

}  // namespace concertina::rendezvous
