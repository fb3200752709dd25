#include "parallel/generate/greedy_rows.h"

#include <algorithm>
#include <limits>

#include "core/index.h"

namespace concertina {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

class Greedy {
 public:
  Greedy(const RowJudge& judge, const GreedyRule& rule)
      : judge_(judge),
        rule_(rule),
        rows_(at(judge.ranks())),
        clock_(at(judge.ranks()), 0.0),
        live_(at(judge.ranks()), 0),
        forward_turn_(at(judge.ranks()), true),
        stages_of_(at(judge.ranks())) {
    for (int s = 0; s < static_cast<int>(judge.stages().size()); ++s) {
      const StageInfo& stage = judge.stages()[at(s)];
      stages_of_[at(stage.rank)].push_back(s);
      const int count = stage.last_microbatch - stage.first_microbatch;
      ends_.push_back({std::vector<double>(at(count), kNever),
                       std::vector<double>(at(count), kNever), 0, 0, 0});
      left_ += 3 * count;
    }
  }

  std::optional<std::vector<std::vector<Action>>> run() && {
    while (left_ > 0)
      if (!step()) return std::nullopt;
    return std::move(rows_);
  }

 private:
  struct Ends {
    std::vector<double> forward, gradient;  // of each microbatch; infinity: not started
    int forwards, gradients, weights;       // started
  };
  struct Choice {
    double start = kNever;
    int rank = -1;
    Action action;
  };

  /// The rank that can start first takes its choice.
  bool step() {
    Choice best;
    for (int rank = 0; rank < judge_.ranks(); ++rank)
      if (const Choice choice = choose(rank); choice.start < best.start) best = choice;
    if (best.rank < 0) return false;
    start(best);
    return true;
  }

  double forward_ready(int stage) const {
    const Ends& own = ends_[at(stage)];
    const StageInfo& info = judge_.stages()[at(stage)];
    if (own.forwards == static_cast<int>(own.forward.size())) return kNever;
    if (info.first) return 0;
    return ends_[at(stage - 1)].forward[at(own.forwards)] + judge_.message(stage - 1, stage);
  }
  double gradient_ready(int stage) const {
    const Ends& own = ends_[at(stage)];
    if (own.gradients == own.forwards) return kNever;
    const double made = own.forward[at(own.gradients)];
    if (judge_.stages()[at(stage)].last) return made;
    return std::max(
        made, ends_[at(stage + 1)].gradient[at(own.gradients)] + judge_.message(stage + 1, stage));
  }
  bool full(int rank) const {
    return !rule_.most.empty() && live_[at(rank)] >= rule_.most[at(rank)];
  }

  Choice choose(int rank) const {
    const double now = clock_[at(rank)];
    Choice forward, backward, weight;
    const auto offer = [&](Choice& choice, Kind kind, int stage, int microbatch, double ready) {
      const double start = std::max(now, ready);
      if (start < choice.start)
        choice = {
            start, rank, {kind, stage, microbatch + judge_.stages()[at(stage)].first_microbatch}};
    };
    const std::vector<int>& stages = stages_of_[at(rank)];
    for (std::size_t i = 0; i < stages.size(); ++i) {
      const int shallow = stages[i], deep = stages[stages.size() - 1 - i];
      const int f = rule_.deep_forwards ? deep : shallow;
      if (!full(rank)) offer(forward, Kind::F, f, ends_[at(f)].forwards, forward_ready(f));
      offer(backward, Kind::I, deep, ends_[at(deep)].gradients, gradient_ready(deep));
      if (ends_[at(deep)].weights < ends_[at(deep)].gradients)
        offer(weight, Kind::W, deep, ends_[at(deep)].weights, now);
    }
    const bool forward_first =
        rule_.first == GreedyRule::First::forward ||
        (rule_.first == GreedyRule::First::by_turns && forward_turn_[at(rank)]);
    const Choice& one = forward_first ? forward : backward;
    const Choice& two = forward_first ? backward : forward;
    const Choice& next = one.start <= std::max(now, two.start) ? one : two;
    if (weight.rank < 0) return next;
    if (rule_.weights == GreedyRule::Weights::at_once) return weight;
    if (full(rank) && rule_.weights == GreedyRule::Weights::when_full) return weight;
    return next.start <= now ? next : weight;
  }

  void start(const Choice& choice) {
    const Action& action = choice.action;
    Ends& ends = ends_[at(action.stage)];
    const double end = choice.start + judge_.seconds(action);
    const auto index = at(action.microbatch - judge_.stages()[at(action.stage)].first_microbatch);
    clock_[at(choice.rank)] = end;
    --left_;
    rows_[at(choice.rank)].push_back(action);
    if (action.kind == Kind::F) {
      ends.forward[index] = end;
      ++ends.forwards;
      ++live_[at(choice.rank)];
      forward_turn_[at(choice.rank)] = false;
    } else if (action.kind == Kind::I) {
      ends.gradient[index] = end;
      ++ends.gradients;
      forward_turn_[at(choice.rank)] = true;
    } else {
      ++ends.weights;
      --live_[at(choice.rank)];
    }
  }

  const RowJudge& judge_;
  const GreedyRule& rule_;
  std::vector<std::vector<Action>> rows_;
  std::vector<double> clock_;
  std::vector<int> live_;
  std::vector<bool> forward_turn_;
  std::vector<std::vector<int>> stages_of_;  // by rank, ascending
  std::vector<Ends> ends_;
  int left_ = 0;
};

/// The microbatches that 1F1B keeps on each rank, some more for each chunk, at most `most`.
std::vector<int> falling_bounds(const Layout& layout, const std::vector<int>& most, int extra) {
  const int ranks = rank_count(layout);
  std::vector<int> chunks(at(ranks), 0), bounds;
  for (const Pipeline& pipeline : layout.pipelines)
    for (const StagePlacement& stage : pipeline.stages) ++chunks[at(stage.rank)];
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

std::optional<std::vector<std::vector<Action>>> greedy_rows(const RowJudge& judge,
                                                            const GreedyRule& rule) {
  return Greedy(judge, rule).run();
}

}  // namespace concertina
