#include "tests/parallel_plan/rendezvous.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace concertina::rendezvous {
namespace {

constexpr int kSendBuffers = 2;  // for gradients, a rank

bool sends(Kind kind) {
  return kind == Kind::SEND_F || kind == Kind::SEND_B;
}
bool moves_data(Kind kind) {
  return sends(kind) || kind == Kind::RECV_F || kind == Kind::RECV_B;
}
int find(const std::vector<Action>& row, Kind kind, int stage, int microbatch) {
  const auto it = std::find_if(row.begin(), row.end(), [&](const Action& a) {
    return a.kind == kind && a.stage == stage && a.microbatch == microbatch;
  });
  return it == row.end() ? -1 : static_cast<int>(it - row.begin());
}

}  // namespace

Machine::Machine(const Plan& plan, const Layout& layout, Wire wire, int leaf_microbatches)
    : plan_(plan), wire_(wire) {
  for (const Pipeline& pipeline : layout.pipelines) {
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
      Stage stage{pipeline.stages[s].rank, pipeline.first_microbatch, pipeline.last_microbatch};
      if (s > 0) stage.previous = pipeline.stages[s - 1].rank;
      if (s + 1 < pipeline.stages.size()) stage.next = pipeline.stages[s + 1].rank;
      stages_.push_back(stage);
    }
  }
  makes_sense_ = does_the_work();
  for (int rank = 0; rank < std::ssize(plan.rows) && makes_sense_; ++rank)
    makes_sense_ = row_makes_sense(rank);
  makes_sense_ = makes_sense_ && leaves_ascend(leaf_microbatches);
  if (!makes_sense_) return;
  queue_messages();
  makes_sense_ = messages_fit();
  for (int rank = 0; rank < std::ssize(plan.rows); ++rank) {
    needs_.emplace_back();
    for (int i = 0; i < std::ssize(plan.rows[rank]); ++i) needs_[rank].push_back(needs(rank, i));
  }
}

/// The rank at the other end of a transfer.
int Machine::peer(const Action& action) const {
  const bool to_next = action.kind == Kind::SEND_F || action.kind == Kind::RECV_B;
  return to_next ? stages_[action.stage].next : stages_[action.stage].previous;
}

/// The actions of all rows are those of the step, as multisets.
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
      if (there.contains({stage.rank, static_cast<int>(Kind::B), s, m})) {
        want(stage.rank, Kind::B, s, m);
      } else {
        want(stage.rank, Kind::I, s, m);
        want(stage.rank, Kind::W, s, m);
      }
      if (stage.next >= 0 && stage.next != stage.rank) {
        want(stage.rank, Kind::SEND_F, s, m);
        want(stage.rank, Kind::RECV_B, s, m);
      }
      if (stage.previous >= 0 && stage.previous != stage.rank) {
        want(stage.rank, Kind::RECV_F, s, m);
        want(stage.rank, Kind::SEND_B, s, m);
      }
    }
    want(stage.rank, Kind::REDUCE, s, -1);
  }
  for (int rank = 0; rank < std::ssize(plan_.rows); ++rank) want(rank, Kind::STEP, 0, -1);
  return there == due;
}

/// Nothing reads what its own rank has not made or asked for yet.
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
    if (kind == Kind::I || kind == Kind::B) {
      ready = before(Kind::F, s, m);
      if (stage.next == rank) ready = ready && gradient_before(s + 1, m);
      if (stage.next >= 0 && stage.next != rank)  // there is no gradient of what was never sent
        ready = ready && before(Kind::SEND_F, s, m) && before(Kind::RECV_B, s, m);
    }
    if (kind == Kind::W) ready = before(Kind::I, s, m);
    if (kind == Kind::SEND_F) ready = before(Kind::F, s, m);
    if (kind == Kind::SEND_B) ready = gradient_before(s, m);
    if (kind == Kind::REDUCE)
      for (int later = i; later < std::ssize(row); ++later)
        ready = ready && !((row[later].kind == Kind::B || row[later].kind == Kind::W) &&
                           row[later].stage == s);
    if (!ready) return false;
  }
  return true;
}

bool Machine::leaves_ascend(int leaf_microbatches) const {
  for (const std::vector<Action>& row : plan_.rows) {
    std::map<std::pair<int, int>, int> newest;  // microbatch, by stage and leaf
    for (const Action& a : row) {
      if (a.kind != Kind::B && a.kind != Kind::W) continue;
      const auto [it, fresh] =
          newest.try_emplace({a.stage, a.microbatch / leaf_microbatches}, a.microbatch);
      if (!fresh && it->second > a.microbatch) return false;
      it->second = a.microbatch;
    }
  }
  return true;
}

void Machine::queue_messages() {
  std::map<std::pair<int, int>, int> number;
  streams_.resize(plan_.rows.size());
  for (int rank = 0; rank < std::ssize(plan_.rows); ++rank) {
    queued_.emplace_back(plan_.rows[rank].size());
    for (int i = 0; i < std::ssize(plan_.rows[rank]); ++i) {
      const Action& a = plan_.rows[rank][i];
      if (!moves_data(a.kind)) continue;
      const std::pair<int, int> ends =
          sends(a.kind) ? std::pair(rank, peer(a)) : std::pair(peer(a), rank);
      const auto [it, fresh] = number.try_emplace(ends, static_cast<int>(channels_.size()));
      if (fresh) {
        channels_.push_back(ends);
        sends_.emplace_back();
        takes_.emplace_back();
      }
      std::vector<End>& queue = (sends(a.kind) ? sends_ : takes_)[it->second];
      queued_[rank][i] = {it->second, static_cast<int>(queue.size()),
                          static_cast<int>(streams_[rank].size())};
      queue.push_back({rank, i});
      streams_[rank].push_back({rank, i});
    }
  }
}

/// Whatever the timing, the k-th send of a channel lands in its k-th receive.
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

bool Machine::is_through(const State& state, End end) const {
  const Queued& queued = queued_[end.rank][end.position];
  if (wire_ == Wire::stream) return queued.in_stream < state.passed[end.rank];
  return queued.number < state.passed[queued.channel];
}

/// The transfers of its own row that action `i` waits for.
std::vector<Machine::End> Machine::needs(int rank, int i) const {
  const std::vector<Action>& row = plan_.rows[rank];
  const Kind kind = row[i].kind;
  const int s = row[i].stage, m = row[i].microbatch;
  const Stage& stage = stages_[s];
  const auto remote = [&](int neighbour) { return neighbour >= 0 && neighbour != rank; };
  std::vector<End> ends;
  const auto need = [&](Kind what) { ends.push_back({rank, find(row, what, s, m)}); };
  if (kind == Kind::F && remote(stage.previous)) need(Kind::RECV_F);
  if ((kind == Kind::B || kind == Kind::I) && remote(stage.next)) need(Kind::RECV_B);
  if ((kind == Kind::B || kind == Kind::W) && remote(stage.next)) need(Kind::SEND_F);
  std::vector<End> gradients;  // sends, of the whole row
  int taken = 0;               // send buffers, by the actions before
  for (int k = 0; k < std::ssize(row); ++k) {
    if (row[k].kind == Kind::SEND_B) gradients.push_back({rank, k});
    if (k < i && (row[k].kind == Kind::B || row[k].kind == Kind::I) &&
        remote(stages_[row[k].stage].previous))
      ++taken;
  }
  if (kind == Kind::STEP) return gradients;
  if ((kind == Kind::B || kind == Kind::I) && remote(stage.previous) && taken >= kSendBuffers)
    ends.push_back(gradients[taken - kSendBuffers]);
  if (row[i].overlapped)  // both start once both can
    for (const End end : needs(rank, i + 1)) ends.push_back(end);
  return ends;
}

bool Machine::may_step(const State& state, int rank) const {
  if (state.next[rank] == std::ssize(plan_.rows[rank])) return false;
  for (const End end : needs_[rank][state.next[rank]])
    if (!is_through(state, end)) return false;
  return true;
}

/// `queue`: a channel (also on streams: its next message).
bool Machine::may_pass(const State& state, int queue) const {
  const auto posted = [&](End end) { return state.next[end.rank] > end.position; };
  const auto [from, to] = channels_[queue];
  if (wire_ == Wire::pairs) {
    const int k = state.passed[queue];
    return k < std::ssize(sends_[queue]) && posted(sends_[queue][k]) && posted(takes_[queue][k]);
  }
  if (state.passed[from] == std::ssize(streams_[from])) return false;
  if (state.passed[to] == std::ssize(streams_[to])) return false;
  const End send = streams_[from][state.passed[from]], take = streams_[to][state.passed[to]];
  return sends(at(send).kind) && !sends(at(take).kind) && peer(at(send)) == to &&
         peer(at(take)) == from && posted(send) && posted(take);
}

Machine::State Machine::after(const State& state, Move move) const {
  State result = state;
  if (move.first) {
    ++result.next[move.second];
  } else if (wire_ == Wire::pairs) {
    ++result.passed[move.second];
  } else {
    ++result.passed[channels_[move.second].first];
    ++result.passed[channels_[move.second].second];
  }
  return result;
}

std::vector<Machine::Move> Machine::moves(const State& state) const {
  std::vector<Move> result;
  for (int rank = 0; rank < std::ssize(plan_.rows); ++rank)
    if (may_step(state, rank)) result.emplace_back(true, rank);
  for (int c = 0; c < std::ssize(channels_); ++c)
    if (may_pass(state, c)) result.emplace_back(false, c);
  return result;
}

bool Machine::is_over(const State& state) const {
  for (std::size_t rank = 0; rank < plan_.rows.size(); ++rank)
    if (state.next[rank] < std::ssize(plan_.rows[rank])) return false;
  return true;
}

Machine::State Machine::start() const {
  return {std::vector<int>(plan_.rows.size(), 0),
          std::vector<int>(wire_ == Wire::pairs ? channels_.size() : plan_.rows.size(), 0)};
}

Outcome Machine::run(std::mt19937& random) const {
  if (!makes_sense_) return Outcome::wrong;
  return is_over(last_state(random)) ? Outcome::runs : Outcome::hangs;
}

Machine::State Machine::last_state(std::mt19937& random) const {
  for (State state = start();;) {
    const std::vector<Move> possible = moves(state);
    if (possible.empty()) return state;
    state = after(state, possible[random() % possible.size()]);
  }
}

/// What the message with this end waits for: rows (numbered by rank), streams (behind these).
std::vector<int> Machine::obstacles(const State& state, End end) const {
  std::vector<int> points;
  const Queued& queued = queued_[end.rank][end.position];
  for (const End side :
       {sends_[queued.channel][queued.number], takes_[queued.channel][queued.number]}) {
    if (state.next[side.rank] <= side.position)
      points.push_back(side.rank);
    else if (wire_ == Wire::stream && !(streams_[side.rank][state.passed[side.rank]] == side))
      points.push_back(static_cast<int>(plan_.rows.size()) + side.rank);
  }
  return points;
}

int Machine::shortest_circle() const {
  std::mt19937 random;
  const State state = last_state(random);
  const int ranks = static_cast<int>(plan_.rows.size()), points = 2 * ranks;
  constexpr int kFar = 1 << 20;
  std::vector<std::vector<int>> steps(points, std::vector<int>(points, kFar));
  for (int rank = 0; rank < ranks; ++rank) {
    if (state.next[rank] < std::ssize(plan_.rows[rank]))
      for (const End end : needs_[rank][state.next[rank]])
        if (!is_through(state, end))
          for (const int to : obstacles(state, end)) steps[rank][to] = 1;
    if (wire_ == Wire::stream && state.passed[rank] < std::ssize(streams_[rank]))
      for (const int to : obstacles(state, streams_[rank][state.passed[rank]]))
        steps[ranks + rank][to] = 1;
  }
  for (int k = 0; k < points; ++k)
    for (int i = 0; i < points; ++i)
      for (int j = 0; j < points; ++j)
        steps[i][j] = std::min(steps[i][j], steps[i][k] + steps[k][j]);
  int shortest = kFar;
  for (int i = 0; i < points; ++i) shortest = std::min(shortest, steps[i][i]);
  return shortest;
}

Outcome Machine::explore(std::size_t most_states) const {
  if (!makes_sense_) return Outcome::wrong;
  std::set<State> seen{start()};
  std::vector<State> front{start()};
  int over = 0, stuck = 0;
  while (!front.empty()) {
    const State state = front.back();
    front.pop_back();
    const std::vector<Move> possible = moves(state);
    if (possible.empty()) ++(is_over(state) ? over : stuck);
    for (const Move& move : possible)
      if (State next = after(state, move); seen.insert(next).second) front.push_back(next);
    EXPECT_LE(seen.size(), most_states);
    if (seen.size() > most_states) break;
  }
  EXPECT_EQ(over + stuck, 1) << "where it ends depends on the timing";
  return over > 0 ? Outcome::runs : Outcome::hangs;
}

}  // namespace concertina::rendezvous
