// Plans known to hang or to compute wrong results, each followed by correct twins.
#include <gtest/gtest.h>

#include "parallel/generate/passes.h"
#include "parallel/plan/check.h"
#include "tests/errors.h"
#include "tests/parallel_plan/layouts.h"
#include "tests/parallel_plan/rendezvous.h"

namespace concertina {
namespace {

constexpr std::string_view kAccepted = "accepted";

struct Known {
  std::string name;
  Layout layout;
  std::string rows;
  std::string verdict;  // of limits_of(); a rule's name, or kAccepted
  std::string part;     // of its text
  int leaf_microbatches = 1;
};

/// Each case is followed by its twins.
std::vector<Known> waits() {
  const Layout two = straight(2, 2), three = straight(3, 2);
  return {
      {"both ranks send first", two,
       "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
       "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n",
       "stream_order",
       "with one stream of transfers per rank, these actions wait in a cycle:\n"
       "the message of rank 0 action 3 0SEND_F1 is queued on rank 1 after that of rank 1 "
       "action 3 1SEND_B0\n"
       "the message of rank 1 action 3 1SEND_B0 is queued on rank 0 after that of rank 0 "
       "action 3 0SEND_F1"},
      {"one of them receives first", two,
       "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
       "1RECV_F0,1F0,1B0,1RECV_F1,1SEND_B0,1F1,1B1,1SEND_B1\n",
       "accepted", ""},
      {"rank 0 waits for a gradient that needs its next forward", two,
       "0F0,0SEND_F0,0RECV_B0,0B0,0F1,0SEND_F1,0RECV_B1,0B1\n"
       "1RECV_F0,1F0,1RECV_F1,1F1,1B0,1SEND_B0,1B1,1SEND_B1\n",
       "deadlock",
       "without buffering, these actions wait in a cycle:\n"
       "rank 0 action 3 0B0 waits for rank 1 action 5 1SEND_B0 to be posted, which comes after "
       "action 3 1F1\n"
       "rank 1 action 3 1F1 waits for rank 0 action 5 0SEND_F1 to be posted, which comes after "
       "action 3 0B0"},
      {"it sends that first", two,
       "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
       "1RECV_F0,1F0,1RECV_F1,1F1,1B0,1SEND_B0,1B1,1SEND_B1\n",
       "accepted", ""},
      {"a receive from one peer is queued behind one from another", three,
       "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
       "1RECV_F0,1F0,1SEND_F0,1RECV_B0,1RECV_F1,1F1,1SEND_F1,1B0,1SEND_B0,1RECV_B1,1B1,1SEND_B1\n"
       "2RECV_F0,2F0,2RECV_F1,2B0,2SEND_B0,2F1,2B1,2SEND_B1\n",
       "stream_order", "with one stream"},
      {"the peers agree on who comes first", three,
       "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
       "1RECV_F0,1F0,1SEND_F0,1RECV_F1,1RECV_B0,1F1,1B0,1SEND_F1,1SEND_B0,1RECV_B1,1B1,1SEND_B1\n"
       "2RECV_F0,2F0,2B0,2SEND_B0,2RECV_F1,2F1,2B1,2SEND_B1\n",
       "accepted", ""},
      {"receives from one peer are crossed", two,
       "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
       "1RECV_F1,1RECV_F0,1F0,1F1,1B0,1SEND_B0,1B1,1SEND_B1\n",
       "channel_order",
       "message 0 from rank 0 to rank 1 is sent by rank 0 action 1 0SEND_F0 but received by rank 1 "
       "action 0 1RECV_F1"},
      {"they are not", two,
       "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
       "1RECV_F0,1RECV_F1,1F0,1F1,1B0,1SEND_B0,1B1,1SEND_B1\n",
       "accepted", ""},
      {"opposite pipelines, each rank at the other's second stage first", opposite(2, 1),
       "3RECV_F1,3F1,0F0,0SEND_F0,0RECV_B0,0B0,3B1,3SEND_B1\n"
       "1RECV_F0,1F0,2F1,2SEND_F1,2RECV_B1,2B1,1B0,1SEND_B0\n",
       "deadlock", "without buffering"},
      {"each at its own first stage first", opposite(2, 1),
       "0F0,0SEND_F0,3RECV_F1,3F1,3B1,3SEND_B1,0RECV_B0,0B0\n"
       "2F1,1RECV_F0,2SEND_F1,1F0,2RECV_B1,1B0,1SEND_B0,2B1\n",
       "accepted", ""},
      {"gradients stay in the two send buffers", straight(2, 3),
       "0F0,0SEND_F0,0F1,0SEND_F1,0F2,0SEND_F2,0RECV_B0,0B0,0RECV_B1,0B1,0RECV_B2,0B2\n"
       "1RECV_F0,1F0,1RECV_F1,1F1,1RECV_F2,1F2,1B0,1B1,1B2,1SEND_B0,1SEND_B1,1SEND_B2\n",
       "send_buffer",
       "rank 1 action 8 1B2 waits for the send buffer of rank 1 action 9 1SEND_B0, which comes "
       "after "
       "action 8 1B2"},
      {"one of them is sent in time", straight(2, 3),
       "0F0,0SEND_F0,0F1,0SEND_F1,0F2,0SEND_F2,0RECV_B0,0B0,0RECV_B1,0B1,0RECV_B2,0B2\n"
       "1RECV_F0,1F0,1RECV_F1,1F1,1RECV_F2,1F2,1B0,1B1,1SEND_B0,1B2,1SEND_B1,1SEND_B2\n",
       "accepted", ""},
  };
}

std::vector<Known> wrong_work() {
  const Layout one = straight(1, 2), two = straight(2, 1);
  const std::string second = "1RECV_F0,1F0,1B0,1SEND_B0,1REDUCE_GRAD,STEP\n";
  return {
      {"all work, reduced inside the row", over({0, 0}, 1),
       "0F0,1F0,1B0,1REDUCE_GRAD,0B0,0REDUCE_GRAD,STEP\n", "accepted", ""},
      {"a reduction too early", over({0, 0}, 1), "0F0,1F0,1B0,0REDUCE_GRAD,0B0,1REDUCE_GRAD,STEP\n",
       "reduction", "0REDUCE_GRAD precedes rank 0 action 4 0B0, whose gradient it reduces"},
      {"a reduction before the last W", one, "0F0,0F1,0B0,0I1,0REDUCE_GRAD,0W1,STEP\n", "reduction",
       "precedes rank 0 action 5 0W1"},
      {"no reduction", over({0, 0}, 1), "0F0,1F0,1B0,1REDUCE_GRAD,0B0,STEP\n", "reduction",
       "0REDUCE_GRAD is missing on rank 0"},
      {"no step on one rank", two, "0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD\n" + second, "reduction",
       "STEP is missing on rank 0, expected at the end"},
      {"work behind the step", one, "0F0,0F1,0B0,0REDUCE_GRAD,STEP,0B1\n", "reduction",
       "follows STEP"},
      // Undetected by a check of sets: the same actions, some of them repeated.
      {"a forward twice", one, "0F0,0F1,0F1,0B0,0B1\n", "cover", "repeats action 1"},
      {"a backward twice, another one never", one, "0F0,0F1,0B0,0B0\n", "cover", "0B0 repeats"},
      {"a send twice", two, "0F0,0SEND_F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD,STEP\n" + second,
       "cover", "repeats"},
      // Undetected by a check of their number.
      {"as many microbatches, one out of range", one, "0F0,0F2,0B0,0B2\n", "range", "0F2"},
      {"microbatches from one on", one, "0F1,0F2,0B1,0B2\n", "range", "0F2"},
      {"a stage that does not exist", one, "0F0,0F1,0B0,1B1\n", "range", "1B1"},
      {"each once", one, "0F0,0F1,0B1,0B0\n", "accepted", ""},
      {"a stage on the wrong rank", two, "0F0,1F0,1B0,0B0\n,\n", "placement",
       "stage 1 is on rank 1"},
      {"both forms of a backward", one, "0F0,0F1,0B0,0W0,0B1\n", "cover", "includes this work"},
      {"W without its I", one, "0F0,0F1,0W0,0B1\n", "cover", "0I0 is missing"},
      {"W before its I", one, "0F0,0F1,0I0,0W1,0I1,0W0\n", "dependency", "0W1 precedes"},
      {"W after its I", one, "0F0,0F1,0I0,0I1,0W1,0W0\n", "accepted", ""},
      {"descending inside a leaf", one, "0F0,0F1,0B1,0B0\n", "leaf_order", "0B0 adds to leaf 0", 2},
      {"ascending", one, "0F0,0F1,0I1,0B0,0W1\n", "accepted", "", 2},
      {"a message without a receiver", two, "0F0,0SEND_F0,0B0\n1F0,1B0\n", "cover", "missing"},
      {"a receive after its use", two, "0F0,0SEND_F0,0B0,0RECV_B0\n1RECV_F0,1F0,1B0,1SEND_B0\n",
       "dependency", "0RECV_B0"},
      {"a send before there is anything", two,
       "0SEND_F0,0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n", "dependency", "0SEND_F0"},
      {"a send behind its answer", two, "0F0,0RECV_B0,0B0,0SEND_F0\n1RECV_F0,1F0,1B0,1SEND_B0\n",
       "dependency", "0SEND_F0"},
      {"transfers inside of a rank", over({0, 0}, 1), "0F0,0SEND_F0,1RECV_F0,1F0,1B0,0B0\n",
       "cover", "neighboring stage is not on another rank"},
      {"a receive that is due before the next one", straight(2, 2),
       "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B1,0B0,0B1\n"
       "1RECV_F0,1F0,1RECV_F1,1F1,1B0,1SEND_B0,1B1,1SEND_B1\n",
       "cover", "0RECV_B0 is missing on rank 0, expected before action 4 0RECV_B1"},
      {"each rank at the other's next stage first", over({0, 1, 1, 0}, 2),
       "0F0,3F1,0F1,3F0,0B0,0B1,3B0,3B1\n1F0,2F1,1F1,2F0,1B0,1B1,2B0,2B1\n", "dependency",
       "which it depends on"},
      {"opposite pipelines without transfers", opposite(2, 1), "3F1,0F0,0B0,3B1\n1F0,2F1,2B1,1B0\n",
       "deadlock",
       "rank 0 action 0 3F1 waits for rank 1 action 1 2F1, which comes after action 0 1F0\n"
       "rank 1 action 0 1F0 waits for rank 0 action 1 0F0, which comes after action 0 3F1"},
      {"a row for nobody", one, "0F0,0F1,0B0,0B1\n,\n", "shape", "2 rows"},
  };
}

void expect_verdict(const Known& known) {
  SCOPED_TRACE(known.name + "\n" + known.rows);
  const Plan plan = parse_plan(known.rows, known.name);
  Limits limits = limits_of(plan);
  limits.leaf_microbatches = known.leaf_microbatches;
  const auto violation = check(plan, known.layout, limits);
  EXPECT_EQ(violation ? name_of(violation->rule) : kAccepted, known.verdict)
      << (violation ? violation->text : "");
  if (!violation) return;
  expect_has(violation->text, known.part);
}

TEST(KnownPlans, AreClassified) {
  for (const Known& known : waits()) expect_verdict(known);
  for (const Known& known : wrong_work()) expect_verdict(known);
}

Plan with_reduction(Plan plan, const Layout& layout) {
  for (int rank = 0; rank < std::ssize(plan.rows); ++rank) {
    for (int stage = 0; stage < layout.stage_count(); ++stage)
      if (layout.stage(stage).rank == rank) plan.rows[rank].push_back({Kind::REDUCE, stage, -1});
    plan.rows[rank].push_back({Kind::STEP, 0, -1});
  }
  return plan;
}

/// Confirms the table's deadlocks: the machine hangs in them, and runs their twins.
TEST(KnownPlans, HangInTheMachineToo) {
  using rendezvous::Machine, rendezvous::Outcome, rendezvous::Wire;
  std::mt19937 random(4);
  for (const Known& known : waits()) {
    if (known.verdict == "channel_order") continue;
    SCOPED_TRACE(known.name);
    const Plan plan = with_reduction(parse_plan(known.rows, known.name), known.layout);
    const auto violation = check(plan, known.layout);
    EXPECT_EQ(Machine(plan, known.layout, Wire::stream).run(random),
              known.verdict == kAccepted ? Outcome::runs : Outcome::hangs);
    const bool at_once = violation && violation->text.starts_with("without buffering");
    EXPECT_EQ(Machine(plan, known.layout, Wire::pairs).run(random),
              at_once ? Outcome::hangs : Outcome::runs);
  }
}

/// Puts each SEND right after its producer and each RECV right before its consumer, as a lowering
/// does that considers one rank at a time.
Plan with_late_receives(const std::string& compute, const Layout& layout) {
  const std::vector<StageInfo> stages = stage_infos(layout);
  Plan plan;
  for (const std::vector<Action>& row : parse_plan(compute, "compute").rows) {
    std::vector<Action>& result = plan.rows.emplace_back();
    for (const Action& action : row) {
      const int stage = action.stage, m = action.microbatch;
      const bool forward = action.kind == Kind::F;
      const bool from = forward ? stages[stage].remote_previous : stages[stage].remote_next;
      const bool to = forward ? stages[stage].remote_next : stages[stage].remote_previous;
      if (from) result.push_back({forward ? Kind::RECV_F : Kind::RECV_B, stage, m});
      result.push_back(action);
      if (to) result.push_back({forward ? Kind::SEND_F : Kind::SEND_B, stage, m});
    }
  }
  return plan;
}

// pytorch#126419: 1F1B with one message at a time hung on some machines and not on others; the fix
// was to receive the next input together with sending a gradient.
TEST(KnownPlans, OneMessageATimeHangs1f1bOnAStream) {
  const Layout layout = straight(4, 8);
  const Plan compute = make_plan(layout, "1f1b", {.transfers = false, .reduction = false});
  const Plan plan = with_late_receives(to_text(compute), layout);
  const auto violation = check(plan, layout, limits_of(plan));
  ASSERT_TRUE(violation);
  EXPECT_EQ(violation->rule, Rule::stream_order);
  EXPECT_TRUE(violation->text.starts_with("with one stream")) << violation->text;
  EXPECT_FALSE(check(make_plan(layout, "1f1b"), layout));
}

// pytorch#172668: interleaved 1F1B with 2 ranks and 4 stages, each RECV moved right before its use.
// It ran on one host and hung on two: rank 0 at 0SEND_F1 before 2RECV_F0, rank 1 at 1SEND_F0 before
// 1RECV_F1.
TEST(KnownPlans, LateReceivesHangInterleavedOnAStream) {
  const Layout layout = over({0, 1, 0, 1}, 4);
  const std::string compute =
      "0F0,0F1,2F0,2F1,0F2,2B0,0F3,2B1,2F2,0B0,2F3,0B1,2B2,2B3,0B2,0B3\n"
      "1F0,1F1,3F0,3B0,3F1,3B1,1F2,1B0,1F3,1B1,3F2,3B2,3F3,3B3,1B2,1B3\n";
  Plan plan = with_late_receives(compute, layout);
  auto violation = check(plan, layout, limits_of(plan));
  ASSERT_TRUE(violation);
  EXPECT_EQ(violation->text,
            "with one stream of transfers per rank, these actions wait in a cycle:\n"
            "the message of rank 0 action 3 0SEND_F1 is queued on rank 1 after that of rank 1 "
            "action 2 1SEND_F0\n"
            "the message of rank 1 action 2 1SEND_F0 is queued on rank 0 after that of rank 0 "
            "action 3 0SEND_F1");

  // The first fix tried there, moving each RECV on rank 1 before the preceding SEND, hangs later.
  std::vector<Action>& row = plan.rows[1];
  for (std::size_t i = 0; i + 1 < row.size(); ++i)
    if (is_send(row[i].kind) && is_transfer(row[i + 1].kind) && !is_send(row[i + 1].kind))
      std::swap(row[i], row[i + 1]), ++i;
  violation = check(plan, layout, limits_of(plan));
  ASSERT_TRUE(violation);
  EXPECT_EQ(violation->rule, Rule::stream_order);
  expect_has(violation->text,
             "3SEND_B0 is queued on rank 0 after that of rank 0 action 11 "
             "0SEND_F2");

  const Plan ours = add_transfers({parse_plan(compute, "compute"), layout});
  EXPECT_FALSE(check(ours, layout, limits_of(ours)));
}

}  // namespace
}  // namespace concertina
