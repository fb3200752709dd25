#include "parallel/generate/list_rows.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <queue>

#include "core/index.h"

namespace concertina {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kTolerance = 1e-9;  // tolerance for sums of shares and for times

/// The rows so far, and the next possible action of each rank.
class ListRows {
 public:
  /// `most` limits what each rank may keep, in stage activations; empty: unlimited.
  ListRows(const RowJudge& judge, const std::vector<int>& most, double kept_for_weight)
      : judge_(judge),
        most_(most),
        kept_(kept_for_weight),
        rows_(at(judge.ranks())),
        ranks_(at(judge.ranks())) {
    for (int s = 0; s < static_cast<int>(judge.stages().size()); ++s) {
      const StageInfo& stage = judge.stages()[at(s)];
      ranks_[at(stage.rank)].stages.push_back(s);
      const int count = stage.last_microbatch - stage.first_microbatch;
      stages_.push_back(
          {std::vector<double>(at(count), kNever), std::vector<double>(at(count), kNever)});
      left_ += std::int64_t{3} * count;
    }
    for (Rank& rank : ranks_) std::reverse(rank.stages.begin(), rank.stages.end());
  }
  virtual ~ListRows() = default;

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

 protected:
  struct Choice {
    double start = kNever;
    Kind kind = Kind::F;
    int stage = -1;
  };
  struct Rank {
    std::vector<int> stages;  // deepest first
    double clock = 0, idle = 0, live = 0;
    bool begun = false, warm = false;  // has started any action; has started an I
    bool forward_turn = true;
    Choice choice;
    int number = 0;  // number of the choice; turns of earlier choices are void
  };

  /// Returns what an idle `rank` starts next. Depends only on the rank and on the stages adjacent
  /// to its own.
  virtual Choice choose(const Rank& rank) const = 0;

  double seconds(Kind kind, int stage) const { return judge_.seconds({kind, stage, 0}); }
  double most_idle() const { return most_idle_; }
  bool full(const Rank& rank) const {
    if (most_.empty()) return false;
    return rank.live + 1 > most_[at(static_cast<int>(&rank - ranks_.data()))] + kTolerance;
  }
  /// Returns the rank's F or I that can start first; ties go to the deepest or shallowest stage.
  Choice first_of(const Rank& rank, Kind kind, bool deep = true) const {
    Choice best{kNever, kind, -1};
    for (std::size_t i = 0; i < rank.stages.size(); ++i) {
      const int stage = rank.stages[deep ? i : rank.stages.size() - 1 - i];
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

 private:
  struct Stage {
    std::vector<double> forward, gradient;         // end times, by microbatch
    int forwards = 0, gradients = 0, weights = 0;  // number started
  };
  /// The time at which a rank's choice can start.
  struct Turn {
    double start = 0;
    int rank = 0, number = 0;
    bool operator>(const Turn& other) const {
      return start != other.start ? start > other.start : rank > other.rank;
    }
  };

  double forward_ready(int stage) const {
    const Stage& own = stages_[at(stage)];
    if (own.forwards == std::ssize(own.forward)) return kNever;
    if (judge_.stages()[at(stage)].first) return 0;
    return stages_[at(stage - 1)].forward[at(own.forwards)] + judge_.message(stage - 1, stage);
  }
  double gradient_ready(int stage) const {
    const Stage& own = stages_[at(stage)];
    if (own.gradients == own.forwards) return kNever;
    const double made = own.forward[at(own.gradients)];
    if (judge_.stages()[at(stage)].last) return made;
    return std::max(made, stages_[at(stage + 1)].gradient[at(own.gradients)] +
                              judge_.message(stage + 1, stage));
  }

  void choose_again(int number) {
    Rank& rank = ranks_[at(number)];
    rank.choice = choose(rank);
    ++rank.number;
    if (rank.choice.start < kNever) turns_.push({rank.choice.start, number, rank.number});
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
  const std::vector<int>& most_;
  const double kept_;
  std::vector<std::vector<Action>> rows_;
  std::vector<Rank> ranks_;
  std::vector<Stage> stages_;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns_;
  double most_idle_ = 0;
  std::int64_t left_ = 0;  // actions
};

class Greedy final : public ListRows {
 public:
  Greedy(const RowJudge& judge, const GreedyRule& rule)
      : ListRows(judge, rule.most, 1), rule_(rule) {}

 private:
  Choice choose(const Rank& rank) const override {
    Choice forward;
    if (!full(rank)) forward = first_of(rank, Kind::F, rule_.deep_forwards);
    const Choice backward = first_of(rank, Kind::I), weight = weight_of(rank);
    const bool forward_first = rule_.first == GreedyRule::First::forward ||
                               (rule_.first == GreedyRule::First::by_turns && rank.forward_turn);
    const Choice& one = forward_first ? forward : backward;
    const Choice& two = forward_first ? backward : forward;
    const Choice& next = one.start <= std::max(rank.clock, two.start) ? one : two;
    if (weight.stage < 0) return next;
    if (rule_.weights == GreedyRule::Weights::at_once) return weight;
    if (full(rank) && rule_.weights == GreedyRule::Weights::when_full) return weight;
    return next.start <= rank.clock ? next : weight;
  }

  const GreedyRule& rule_;
};

class Steady final : public ListRows {
 public:
  Steady(const RowJudge& judge, const SteadyRule& rule, const std::vector<int>& most,
         double kept_for_weight)
      : ListRows(judge, most, kept_for_weight), rule_(rule) {}

 private:
  Choice choose(const Rank& rank) const override {
    const Choice forward = first_of(rank, Kind::F), backward = first_of(rank, Kind::I);
    return rank.warm ? steady(rank, forward, backward) : warm_up(rank, forward, backward);
  }

  Choice warm_up(const Rank& rank, const Choice& forward, const Choice& backward) const {
    if (full(rank) || forward.stage < 0) return backward;
    if (!rule_.crowd && backward.start < kNever &&
        forward.start + seconds(Kind::F, forward.stage) > backward.start + kTolerance)
      return backward;
    return forward.start <= backward.start ? forward : backward;
  }

  Choice steady(const Rank& rank, Choice forward, const Choice& backward) const {
    const double now = rank.clock;
    const Choice weight = weight_of(rank);
    if (full(rank)) {
      if (rank.forward_turn && weight.stage >= 0 && forward.start <= now) return weight;
      forward.start = kNever;
    }
    const bool forward_first = rank.forward_turn && forward.start < kNever;
    const Choice& one = forward_first ? forward : backward;
    const Choice& two = forward_first ? backward : forward;
    if (one.start <= now + kTolerance) return one;
    if (rule_.any_turn && two.start <= now + kTolerance) return two;
    const bool either = rule_.any_turn || one.start == kNever;
    const Choice& next = either && two.start < one.start ? two : one;
    return weight.stage >= 0 && fills(rank, weight, next.start - now) ? weight : next;
  }

  /// Whether W goes first if the rank would otherwise wait for `wait` seconds.
  bool fills(const Rank& rank, const Choice& weight, double wait) const {
    if (wait >= rule_.gap * seconds(Kind::W, weight.stage) - kTolerance) return true;
    return rule_.spread && rank.idle + wait > most_idle() + kTolerance;
  }

  const SteadyRule& rule_;
};

/// Returns 1F1B's number of kept microbatches by rank, plus `extra` per chunk, at most `most`.
std::vector<int> falling_bounds(const Layout& layout, const std::vector<int>& most, int extra) {
  const int ranks = rank_count(layout);
  std::vector<int> chunks(at(ranks), 0), bounds;
  for (const StagePlacement& stage : layout.stages()) ++chunks[at(stage.rank)];
  for (int rank = 0; rank < ranks; ++rank) {
    const int bound = (ranks - rank) + ranks * (chunks[at(rank)] - 1) + extra;
    bounds.push_back(most.empty() ? bound : std::min(bound, most[at(rank)]));
  }
  return bounds;
}

}  // namespace

std::vector<GreedyRule> greedy_rules(const Layout& layout, const std::vector<int>& most) {
  std::vector<GreedyRule> rules;
  for (const auto first :
       {GreedyRule::First::backward, GreedyRule::First::forward, GreedyRule::First::by_turns})
    for (const bool deep : {true, false})
      for (const auto weights : {GreedyRule::Weights::at_once, GreedyRule::Weights::when_idle,
                                 GreedyRule::Weights::when_full})
        for (const auto& bound : {most, falling_bounds(layout, most, 0),
                                  falling_bounds(layout, most, rank_count(layout) / 2)})
          rules.push_back({first, deep, weights, bound});
  return rules;
}

std::vector<SteadyRule> steady_rules() {
  constexpr double kSeldom = 1e300;  // W only if nothing else can run, or memory is full
  std::vector<SteadyRule> rules;
  for (const auto& [gap, spread] :
       {std::pair{1.0, true}, {0.5, true}, {0.0, true}, {kSeldom, false}})
    for (const bool crowd : {false, true})
      for (const bool any_turn : {false, true}) rules.push_back({gap, spread, crowd, any_turn});
  return rules;
}

std::optional<std::vector<std::vector<Action>>> greedy_rows(const RowJudge& judge,
                                                            const GreedyRule& rule) {
  return Greedy(judge, rule).run();
}

std::optional<std::vector<std::vector<Action>>> steady_rows(const RowJudge& judge,
                                                            const SteadyRule& rule,
                                                            const std::vector<int>& most,
                                                            double kept_for_weight) {
  return Steady(judge, rule, most, kept_for_weight).run();
}

}  // namespace concertina
