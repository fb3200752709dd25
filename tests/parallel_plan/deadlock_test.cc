// The checker's verdict on deadlocks against an interpreter that just runs the plan, rank by rank
// in random order, on plans whose transfers were moved at random.
#include "parallel/deadlock.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <set>

#include "parallel/check.h"
#include "parallel/passes.h"
#include "tests/parallel_plan/layouts.h"

namespace concertina {
namespace {

/// A message, by its SEND.
using Message = std::pair<Kind, std::pair<int, int>>;

Message message_of(const Action& action) {
  const Action send = is_send(action.kind) ? action : counterpart(action);
  return {send.kind, {send.stage, send.microbatch}};
}

class Interpreter {
 public:
  Interpreter(const Plan& plan, const Layout& layout, Channels channels)
      : plan_(plan),
        stages_(stage_infos(layout)),
        channels_(channels),
        next_(plan.rows.size(), 0),
        queues_(plan.rows.size()),
        sends_(plan.rows.size()),
        gradients_(plan.rows.size(), 0) {}

  /// True if every row runs to its end.
  bool run() {
    const int ranks = static_cast<int>(plan_.rows.size());
    for (bool moved = true; moved;) {
      moved = false;
      for (int turn = 0, rank = *rc::gen::inRange(0, ranks); turn < ranks;
           ++turn, rank = (rank + 1) % ranks)
        while (step(rank)) moved = true;
      moved |= transfer();
    }
    for (int rank = 0; rank < ranks; ++rank)
      if (next_[rank] < plan_.rows[rank].size()) return false;
    return true;
  }

 private:
  bool step(int rank) {
    if (next_[rank] == plan_.rows[rank].size()) return false;
    const Action& action = plan_.rows[rank][next_[rank]];
    if (is_transfer(action.kind)) {
      queues_[rank].push_back(message_of(action));
      if (action.kind == Kind::SEND_B) sends_[rank].push_back(message_of(action));
    } else if (is_compute(action.kind) && !ready(action, rank)) {
      return false;
    }
    ++next_[rank];
    return true;
  }

  bool ready(const Action& action, int rank) {
    const StageInfo& stage = stages_[action.stage];
    const auto arrived = [&](Kind receive) {
      return done_.contains(message_of({receive, action.stage, action.microbatch}));
    };
    if (action.kind == Kind::W) return true;
    if (action.kind == Kind::F) return !stage.remote_previous || arrived(Kind::RECV_F);
    if (stage.remote_next && !arrived(Kind::RECV_B)) return false;
    if (!stage.remote_previous) return true;
    const int oldest = gradients_[rank] - kGradientSendBuffers;
    if (oldest >= 0 &&
        (oldest >= static_cast<int>(sends_[rank].size()) || !done_.contains(sends_[rank][oldest])))
      return false;
    ++gradients_[rank];
    return true;
  }

  /// Completes one message that may go; false if there is none.
  bool transfer() {
    for (std::size_t rank = 0; rank < queues_.size(); ++rank) {
      for (std::size_t i = 0; i < queues_[rank].size(); ++i) {
        const Message message = queues_[rank][i];
        const int peers = static_cast<int>(
            std::count_if(queues_.begin(), queues_.end(), [&](const std::vector<Message>& queue) {
              const auto found = std::find(queue.begin(), queue.end(), message);
              return found != queue.end() &&
                     (channels_ == Channels::pairs || found == queue.begin());
            }));
        if (peers < 2) continue;
        done_.insert(message);
        for (std::vector<Message>& queue : queues_) std::erase(queue, message);
        return true;
      }
    }
    return false;
  }

  const Plan& plan_;
  const std::vector<StageInfo> stages_;
  const Channels channels_;
  std::vector<std::size_t> next_;
  std::vector<std::vector<Message>> queues_, sends_;
  std::vector<int> gradients_;
  std::set<Message> done_;
};

/// Moves some transfers to other places of their rows.
Plan shuffled(Plan plan) {
  for (int moves = *rc::gen::inRange(1, 6); moves > 0; --moves) {
    std::vector<Action>& row = plan.rows[*rc::gen::inRange(0, static_cast<int>(plan.rows.size()))];
    const int from = *rc::gen::inRange(0, static_cast<int>(row.size()));
    if (!is_transfer(row[from].kind)) continue;
    const int to = std::clamp(from + *rc::gen::inRange(-4, 5), 0, static_cast<int>(row.size()) - 1);
    const Action moved = row[from];
    row.erase(row.begin() + from);
    row.insert(row.begin() + to, moved);
  }
  return plan;
}

std::string verdict(const Plan& plan, const Layout& layout) {
  const auto violation = check(plan, layout, {.reduction = false});
  if (violation && violation->rule != Rule::deadlock) return "broken";
  const bool pairs = Interpreter(plan, layout, Channels::pairs).run();
  const bool stream = Interpreter(plan, layout, Channels::stream).run();
  const PlanIndex index(plan, layout);
  RC_ASSERT(pairs == !find_deadlock(plan, index, Channels::pairs));
  RC_ASSERT(stream == !find_deadlock(plan, index, Channels::stream));
  RC_ASSERT((pairs && stream) == !violation);
  return stream ? "runs" : pairs ? "hangs on a stream" : "hangs on pairs";
}

TEST(Deadlock, VerdictIsThatOfAnInterpreter) {
  std::map<std::string, int> verdicts;
  EXPECT_TRUE(rc::check([&] {
    const std::vector<Layout> layouts{straight(2, 4), straight(3, 5), two_and_one(), opposite(3, 3),
                                      over({0, 1, 1, 0}, 4)};
    const Layout layout = *rc::gen::elementOf(layouts);
    const std::string name = *rc::gen::elementOf(std::vector<std::string>{"gpipe", "1f1b"});
    const Plan plan = make_plan(layout, name, {.reduction = false});
    for (int variant = 0; variant < 20; ++variant) ++verdicts[verdict(shuffled(plan), layout)];
  }));
  EXPECT_GT(verdicts["runs"], 50);
  EXPECT_GT(verdicts["hangs on a stream"], 50);
}

TEST(Deadlock, IsFoundQuicklyInLargePlans) {
  const Layout layout = straight(32, 256);
  Plan plan = make_plan(layout, "1f1b", {.reduction = false});
  std::vector<Action>& row = plan.rows[16];  // posts its last gradient ahead of its last input
  const auto last = std::find(row.begin(), row.end(), Action{Kind::RECV_F, 16, 255});
  const Action moved = *last;
  row.erase(last);
  row.insert(std::find(row.begin(), row.end(), Action{Kind::F, 16, 255}), moved);
  const auto gradient = std::find(row.begin(), row.end(), Action{Kind::RECV_B, 16, 240});
  row.erase(gradient);
  row.insert(std::find(row.begin(), row.end(), Action{Kind::RECV_F, 16, 230}),
             Action{Kind::RECV_B, 16, 240});
  const PlanIndex index(plan, layout);
  const auto circle = find_deadlock(plan, index, Channels::stream);
  ASSERT_TRUE(circle);
  EXPECT_LT(std::count(circle->begin(), circle->end(), '\n'), 8) << *circle;
}

}  // namespace
}  // namespace concertina
