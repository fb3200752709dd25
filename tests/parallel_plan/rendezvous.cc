#include "tests/parallel_plan/rendezvous.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace concertina::rendezvous {
namespace {

constexpr int kSendBuffers = 2;  // per rank: for gradients, and for outputs of frozen stages

bool sends(Kind kind) {
  return kind == Kind::SEND_F || kind == Kind::SEND_B;
}
bool moves_data(Kind kind) {
  return sends(kind) || kind == Kind::RECV_F || kind == Kind::RECV_B;
}

}  // namespace

int find(const std::vector<Action>& row, Kind kind, int stage, int microbatch) {
  const auto it = std::find_if(row.begin(), row.end(), [&](const Action& a) {
    return a.kind == kind && a.stage == stage && a.microbatch == microbatch;
  });
  return it == row.end() ? -1 : static_cast<int>(it - row.begin());
}

Machine::Machine(const Plan& plan, const Layout& layout, Wire wire, int leaf_microbatches)
    : plan_(plan), wire_(wire) {
  for (const Pipeline& pipeline : layout.pipelines) {
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
      Stage stage{pipeline.stages[s].rank, pipeline.first_microbatch, pipeline.last_microbatch};
      if (s > 0) stage.previous = pipeline.stages[s - 1].rank;
      if (s + 1 < pipeline.stages.size()) stage.next = pipeline.stages[s + 1].rank;
      stage.trains = pipeline.stages[s].last_unit > layout.frozen_units;
      stage.feeds_back = s > 0 && pipeline.stages[s - 1].last_unit > layout.frozen_units;
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

/// Returns the rank at the other end of a transfer.
int Machine::peer(const Action& action) const {
  const bool to_next = action.kind == Kind::SEND_F || action.kind == Kind::RECV_B;
  return to_next ? stages_[action.stage].next : stages_[action.stage].previous;
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

bool Machine::is_through(const State& state, End end) const {
  const Queued& queued = queued_[end.rank][end.position];
  if (wire_ == Wire::stream) return queued.in_stream < state.passed[end.rank];
  return queued.number < state.passed[queued.channel];
}

/// Returns the transfers of its own row that action `i` waits for.
std::vector<Machine::End> Machine::needs(int rank, int i) const {
  const std::vector<Action>& row = plan_.rows[rank];
  const Kind kind = row[i].kind;
  const int s = row[i].stage, m = row[i].microbatch;
  const Stage& stage = stages_[s];
  const auto remote = [&](int neighbor) { return neighbor >= 0 && neighbor != rank; };
  std::vector<End> ends;
  const auto need = [&](Kind what) { ends.push_back({rank, find(row, what, s, m)}); };
  if (kind == Kind::F && remote(stage.previous)) need(Kind::RECV_F);
  if (makes_input_gradient(kind) && remote(stage.next)) need(Kind::RECV_B);
  if (makes_weight_gradient(kind) && remote(stage.next)) need(Kind::SEND_F);
  // Messages without a reply, which are gradients and outputs of frozen stages: which action fills
  // a buffer, and which sends it.
  const auto fills = [&](const Action& a, bool gradient) {
    const Stage& of = stages_[a.stage];
    return gradient ? makes_input_gradient(a.kind) && remote(of.previous) && of.feeds_back
                    : a.kind == Kind::F && remote(of.next) && !of.trains;
  };
  for (const bool gradient : {true, false}) {
    std::vector<End> sent;  // of the whole row
    int taken = 0;          // buffers, by the actions before
    for (int k = 0; k < std::ssize(row); ++k) {
      if (gradient ? row[k].kind == Kind::SEND_B
                   : row[k].kind == Kind::SEND_F && !stages_[row[k].stage].trains)
        sent.push_back({rank, k});
      taken += k < i && fills(row[k], gradient);
    }
    if (kind == Kind::STEP) ends.insert(ends.end(), sent.begin(), sent.end());
    if (fills(row[i], gradient) && taken >= kSendBuffers)
      ends.push_back(sent[taken - kSendBuffers]);
  }
  if (row[i].overlapped)  // both start when both can
    for (const End end : needs(rank, i + 1)) ends.push_back(end);
  return ends;
}

bool Machine::may_step(const State& state, int rank) const {
  if (state.next[rank] == std::ssize(plan_.rows[rank])) return false;
  for (const End end : needs_[rank][state.next[rank]])
    if (!is_through(state, end)) return false;
  return true;
}

/// `queue`: a channel (on streams, also its next message).
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

/// Returns what this end's message waits for: rows (by rank) and streams (numbered after them).
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

int Machine::shortest_cycle() const {
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
  EXPECT_EQ(over + stuck, 1) << "the outcome depends on the timing";
  return over > 0 ? Outcome::runs : Outcome::hangs;
}

}  // namespace concertina::rendezvous
