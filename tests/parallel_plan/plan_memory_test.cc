// Buffer counts, compared with a direct computation of lifetimes and with closed forms.
#include "parallel/plan/plan_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "parallel/generate/passes.h"
#include "parallel/plan/plan_graph.h"
#include "parallel/plan/plan_index.h"
#include "parallel/plan/reduction_tree.h"
#include "tests/parallel_plan/layouts.h"

namespace concertina {
namespace {

/// Positions [taken, released] in a row.
struct Lifetime {
  int taken = 0, released = 0;
};

int most_alive(const std::vector<Lifetime>& lifetimes, int positions) {
  int most = 0;
  for (int at = 0; at < positions; ++at) {
    const auto alive = std::count_if(lifetimes.begin(), lifetimes.end(), [&](const Lifetime& l) {
      return l.taken <= at && at <= l.released;
    });
    most = std::max(most, static_cast<int>(alive));
  }
  return most;
}

/// RowMemory by definition: each buffer of each microbatch, with its first and last action.
RowMemory by_definition(const Plan& plan, const Layout& layout, int rank) {
  const PlanIndex index(plan, layout);
  const int positions = static_cast<int>(plan.rows[rank].size());
  const auto at = [&](int node) { return index.place(node).position; };
  RowMemory memory;
  std::vector<Lifetime> inputs, outputs, output_grads;
  int sends = 0, frozen_sends = 0;
  for (int s = 0; s < static_cast<int>(index.stages().size()); ++s) {
    const StageInfo& stage = index.stages()[s];
    if (stage.rank != rank) continue;
    std::vector<Lifetime> saved, grads;
    for (int m = stage.first_microbatch; m < stage.last_microbatch; ++m) {
      const int forward = at(index.find(Kind::F, s, m));
      const int last = stage.trains ? at(index.find_last(s, m)) : forward;
      if (stage.trains) saved.push_back({forward, last});
      if (index.find(Kind::I, s, m) >= 0) grads.push_back({at(index.find(Kind::I, s, m)), last});
      if (!stage.first)
        inputs.push_back({at(stage.remote_previous ? index.find(Kind::RECV_F, s, m)
                                                   : index.find(Kind::F, s - 1, m)),
                          stage.keeps_input ? last : forward});
      frozen_sends += stage.remote_next && !stage.trains ? 1 : 0;
      if (!stage.trains) continue;
      if (stage.remote_next) outputs.push_back({forward, last});
      if (!stage.last)
        output_grads.push_back({at(stage.remote_next ? index.find(Kind::RECV_B, s, m)
                                                     : index.find_input_gradient(s + 1, m)),
                                last});
      sends += stage.remote_previous && index.stages()[s - 1].trains ? 1 : 0;
    }
    memory.stages.push_back({s, most_alive(saved, positions), most_alive(grads, positions)});
  }
  memory.inputs = most_alive(inputs, positions);
  memory.outputs = most_alive(outputs, positions);
  memory.output_grads = most_alive(output_grads, positions);
  memory.input_grads = std::min(kSendBuffers, sends);
  memory.frozen_outputs = std::min(kSendBuffers, frozen_sends);
  return memory;
}

void expect_as_defined(const Plan& plan, const Layout& layout) {
  const std::vector<RowMemory> memory = plan_memory(plan, layout);
  ASSERT_EQ(memory.size(), plan.rows.size());
  for (std::size_t rank = 0; rank < memory.size(); ++rank)
    EXPECT_EQ(memory[rank], by_definition(plan, layout, static_cast<int>(rank)));
}

TEST(PlanMemory, IsAsDefined) {
  for (const Entry<Schedule>& schedule : schedules()) {
    if (schedule.value.any_layout)
      for (const auto& [name, layout] : odd_layouts())
        expect_as_defined(make_plan(layout, schedule.name), layout);
    const Layout own = folded(schedule, 4, 6);
    expect_as_defined(make_plan(own, schedule.name), own);
  }
}

TEST(PlanMemory, IsAsDefinedWithFrozenUnits) {
  for (const Entry<Schedule>& schedule : schedules()) {
    std::vector<Layout> layouts{folded(schedule, 4, 6)};
    if (schedule.value.any_layout)
      for (const auto& [name, layout] : odd_layouts()) layouts.push_back(layout);
    for (Layout& layout : layouts) {
      const int units = layout.pipelines[0].stages.back().last_unit;
      for (layout.frozen_units = 1; layout.frozen_units < units; ++layout.frozen_units)
        expect_as_defined(make_plan(layout, schedule.name), layout);
    }
  }
}

TEST(PlanMemory, KnowsSplitBackwards) {
  const Layout layout = over({0, 0, 1}, 2);
  const Plan plan = parse_plan(
      "0F0,1F0,1SEND_F0,0F1,1F1,1SEND_F1,1RECV_B0,1I0,0I0,1RECV_B1,1I1,0I1,1W0,0W0,1W1,0W1\n"
      "2RECV_F0,2F0,2B0,2SEND_B0,2RECV_F1,2F1,2B1,2SEND_B1\n",
      "text");
  expect_as_defined(plan, layout);
  EXPECT_EQ(plan_memory(plan, layout)[0], (RowMemory{{{0, 2, 2}, {1, 2, 2}}, 2, 2, 4, 0}));
}

}  // namespace
}  // namespace concertina
