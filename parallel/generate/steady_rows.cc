#include "parallel/generate/steady_rows.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <queue>

#include "core/index.h"

namespace concertina {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();
constexpr double kTolerance = 1e-9;  // of sums of shares, and of times

class Steady {
 public:
  Steady(const RowJudge& judge, const SteadyRule& rule, const std::vector<int>& most,
         double kept_for_weight)
      : judge_(judge),
        rule_(rule),
        most_(most),
        kept_(kept_for_weight),
        rows_(at(judge.ranks())),
        ranks_(at(judge.ranks())) {
    for (int s = 0; s < static_cast<int>(judge.stages().size()); ++s) {
      const StageInfo& stage = judge.stages()[at(s)];
      ranks_[at(stage.rank)].stages.push_back(s);
      const int count = stage.last_microbatch - stage.first_microbatch;
      stages_.push_back(
          {std::vector<double>(at(count), kUnknown), std::vector<double>(at(count), kUnknown)});
      left_ += 3 * count;
    }
    for (Rank& rank : ranks_) std::reverse(rank.stages.begin(), rank.stages.end());
  }

  std::optional<std::vector<std::vector<Action>>> run() && {
    for (int rank = 0; rank < judge_.ranks(); ++rank) choose_again(rank);
    for (; left_ > 0; --left_) {
      while (!turns_.empty() && turns_.top().number != ranks_[at(turns_.top().rank)].number)
        turns_.pop();
      if (turns_.empty()) return std::nullopt;
      start(turns_.top().rank);
    }
    return std::move(rows_);
  }

 private:
  struct Choice {
    double start = kUnknown;
    Kind kind = Kind::F;
    int stage = -1;
  };
  struct Stage {
    std::vector<double> forward, gradient;         // ends, by microbatch
    int forwards = 0, gradients = 0, weights = 0;  // started
  };
  struct Rank {
    std::vector<int> stages;  // the deepest first
    double clock = 0, idle = 0, live = 0;
    bool begun = false, warm = false;  // has started something; has started an I
    bool forward_turn = true;
    Choice choice;
    int number = 0;  // of the choice: an earlier one's turn is void
  };
  /// When a rank's choice can start. The earliest goes first; of equal ones, the first rank's.
  struct Turn {
    double start = 0;
    int rank = 0, number = 0;
    bool operator>(const Turn& other) const {
      return start != other.start ? start > other.start : rank > other.rank;
    }
  };

  double forward_ready(int stage) const {
    const Stage& own = stages_[at(stage)];
    if (own.forwards == std::ssize(own.forward)) return kUnknown;
    if (judge_.stages()[at(stage)].first) return 0;
    return stages_[at(stage - 1)].forward[at(own.forwards)] + judge_.message(stage - 1, stage);
  }
  double gradient_ready(int stage) const {
    const Stage& own = stages_[at(stage)];
    if (own.gradients == own.forwards) return kUnknown;
    const double made = own.forward[at(own.gradients)];
    if (judge_.stages()[at(stage)].last) return made;
    return std::max(made, stages_[at(stage + 1)].gradient[at(own.gradients)] +
                              judge_.message(stage + 1, stage));
  }
  bool full(const Rank& rank) const {
    if (most_.empty()) return false;
    return rank.live + 1 > most_[at(static_cast<int>(&rank - ranks_.data()))] + kTolerance;
  }
  double seconds(Kind kind, int stage) const { return judge_.seconds({kind, stage, 0}); }

  /// The rank's F or I that can start first; of several the deepest.
  Choice first_of(const Rank& rank, Kind kind) const {
    Choice best{kUnknown, kind, -1};
    for (const int stage : rank.stages) {
      const double ready = kind == Kind::F ? forward_ready(stage) : gradient_ready(stage);
      const double start = std::max(rank.clock, ready);
      if (start < best.start) best = {start, kind, stage};
    }
    return best;
  }
  Choice weight_of(const Rank& rank) const {
    for (const int stage : rank.stages)
      if (stages_[at(stage)].weights < stages_[at(stage)].gradients)
        return {rank.clock, Kind::W, stage};
    return {};
  }

  void choose_again(int number) {
    Rank& rank = ranks_[at(number)];
    rank.choice = choose(rank);
    ++rank.number;
    if (rank.choice.start < kUnknown) turns_.push({rank.choice.start, number, rank.number});
  }

  Choice choose(const Rank& rank) const {
    const Choice forward = first_of(rank, Kind::F), backward = first_of(rank, Kind::I);
    return rank.warm ? steady(rank, forward, backward) : warm_up(rank, forward, backward);
  }

  Choice warm_up(const Rank& rank, const Choice& forward, const Choice& backward) const {
    if (full(rank) || forward.stage < 0) return backward;
    if (!rule_.crowd && backward.start < kUnknown &&
        forward.start + seconds(Kind::F, forward.stage) > backward.start + kTolerance)
      return backward;
    return forward.start <= backward.start ? forward : backward;
  }

  Choice steady(const Rank& rank, Choice forward, const Choice& backward) const {
    const double now = rank.clock;
    const Choice weight = weight_of(rank);
    if (full(rank)) {
      if (rank.forward_turn && weight.stage >= 0 && forward.start <= now) return weight;
      forward.start = kUnknown;
    }
    const bool forward_first = rank.forward_turn && forward.start < kUnknown;
    const Choice& one = forward_first ? forward : backward;
    const Choice& two = forward_first ? backward : forward;
    if (one.start <= now + kTolerance) return one;
    if (rule_.any_turn && two.start <= now + kTolerance) return two;
    const bool either = rule_.any_turn || one.start == kUnknown;
    const Choice& next = either && two.start < one.start ? two : one;
    return weight.stage >= 0 && fills(rank, weight, next.start - now) ? weight : next;
  }

  /// Whether W goes first where the rank would wait for `wait` seconds.
  bool fills(const Rank& rank, const Choice& weight, double wait) const {
    if (wait >= rule_.gap * seconds(Kind::W, weight.stage) - kTolerance) return true;
    return rule_.spread && rank.idle + wait > most_idle_ + kTolerance;
  }

  void start(int number) {
    Rank& rank = ranks_[at(number)];
    const auto [begin, kind, index] = rank.choice;
    Stage& stage = stages_[at(index)];
    const StageInfo& info = judge_.stages()[at(index)];
    if (rank.begun) rank.idle += begin - rank.clock;
    most_idle_ = std::max(most_idle_, rank.idle);
    rank.begun = true;
    rank.clock = begin + seconds(kind, index);
    int& started = kind == Kind::F   ? stage.forwards
                   : kind == Kind::I ? stage.gradients
                                     : stage.weights;
    rows_[at(number)].push_back({kind, index, started + info.first_microbatch});
    if (kind == Kind::F) {
      stage.forward[at(started)] = rank.clock;
      rank.live += 1;
    } else if (kind == Kind::I) {
      stage.gradient[at(started)] = rank.clock;
      rank.live -= 1 - kept_;
      rank.warm = true;
    } else {
      rank.live -= kept_;
    }
    if (kind != Kind::W) rank.forward_turn = kind == Kind::I;
    ++started;
    choose_again(number);
    if (kind == Kind::F && !info.last) choose_again(judge_.stages()[at(index + 1)].rank);
    if (kind == Kind::I && !info.first) choose_again(judge_.stages()[at(index - 1)].rank);
  }

  const RowJudge& judge_;
  const SteadyRule& rule_;
  const std::vector<int>& most_;
  const double kept_;
  std::vector<std::vector<Action>> rows_;
  std::vector<Rank> ranks_;
  std::vector<Stage> stages_;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns_;
  double most_idle_ = 0;
  std::int64_t left_ = 0;  // actions
};

}  // namespace

std::vector<SteadyRule> steady_rules() {
  constexpr double kNever = 1e300;  // W only where there is nothing else to do, or no room
  std::vector<SteadyRule> rules;
  for (const auto& [gap, spread] :
       {std::pair{1.0, true}, {0.5, true}, {0.0, true}, {kNever, false}})
    for (const bool crowd : {false, true})
      for (const bool any_turn : {false, true}) rules.push_back({gap, spread, crowd, any_turn});
  return rules;
}

std::optional<std::vector<std::vector<Action>>> steady_rows(const RowJudge& judge,
                                                            const SteadyRule& rule,
                                                            const std::vector<int>& most,
                                                            double kept_for_weight) {
  return Steady(judge, rule, most, kept_for_weight).run();
}

}  // namespace concertina
