// The text form of plans: exact round trips, and errors that say where and what.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "core/error.h"
#include "parallel/schedule.h"

namespace concertina {
namespace {

Action random_action() {
  const auto kind = static_cast<Kind>(*rc::gen::inRange(0, 10));
  if (kind == Kind::STEP) return {kind, 0, -1};
  const int stage = *rc::gen::inRange(0, 1000);
  return {kind, stage, kind == Kind::REDUCE ? -1 : *rc::gen::inRange(0, 100000)};
}

TEST(ScheduleText, RoundTripsExactly) {
  EXPECT_TRUE(rc::check([] {
    Plan plan;
    plan.rows.resize(*rc::gen::inRange(1, 6));
    plan.rows[0].push_back(random_action());
    for (std::vector<Action>& row : plan.rows)
      for (int left = *rc::gen::inRange(0, 8); left > 0; --left) row.push_back(random_action());
    const std::string text = to_text(plan);
    RC_ASSERT(parse_plan(text, "text") == plan);
    RC_ASSERT(to_text(parse_plan(text, "text")) == text);
  }));
}

TEST(ScheduleText, IsPyTorchsForm) {
  const Plan plan =
      parse_plan("0F0,0SEND_F0, ,0RECV_B0,0I0,0W0,0REDUCE_GRAD\r\n1RECV_F0,,1F0,1B0\n", "plan.csv");
  ASSERT_EQ(plan.rows.size(), 2u);
  EXPECT_EQ(plan.rows[0], (std::vector<Action>{{Kind::F, 0, 0},
                                               {Kind::SEND_F, 0, 0},
                                               {Kind::RECV_B, 0, 0},
                                               {Kind::I, 0, 0},
                                               {Kind::W, 0, 0},
                                               {Kind::REDUCE, 0, -1}}));
  EXPECT_EQ(plan.rows[1],
            (std::vector<Action>{{Kind::RECV_F, 1, 0}, {Kind::F, 1, 0}, {Kind::B, 1, 0}}));
}

TEST(ScheduleText, NamesRowColumnAndToken) {
  const std::pair<std::string, std::string> cases[] = {{"F0", "stage number"},
                                                       {"0X0", "unknown kind 'X'"},
                                                       {"0F", "microbatch number"},
                                                       {"0F1x", "microbatch number"},
                                                       {"0STEP", "unknown kind 'STEP'"},
                                                       {"0REDUCE_GRAD1", "no microbatch"},
                                                       {"0f0", "unknown kind 'f'"},
                                                       {"0F9999999999", "microbatch number"},
                                                       {"-1F0", "stage number"},
                                                       {"0UNSHARD", "unknown kind 'UNSHARD'"},
                                                       {"(0F0;1B0)OVERLAP_F_B", "stage number"}};
  for (const auto& [token, why] : cases) {
    SCOPED_TRACE(token);
    try {
      parse_plan("0F0,0B0\n1F0," + token + ",1B0\n", "plan.csv");
      FAIL() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::bad_input);
      EXPECT_NE(error.message().find("'" + token + "'"), std::string::npos) << error.message();
      EXPECT_NE(error.message().find(why), std::string::npos) << error.message();
      EXPECT_EQ(error.where(), "plan.csv:2:2 (row:column)");
      EXPECT_NE(error.fix().find("RECV_B"), std::string::npos);
    }
  }
}

TEST(ScheduleText, RefusesNothingAtAll) {
  for (const char* text : {"", "\n", " , ,\n\n"}) EXPECT_THROW(parse_plan(text, "plan.csv"), Error);
}

TEST(ScheduleText, InfersTheLayoutOfOnePipeline) {
  const Layout v = infer_layout(parse_plan("0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n", "v.csv"), "v.csv");
  ASSERT_EQ(v.pipelines.size(), 1u);
  EXPECT_EQ(v.pipelines[0].stages,
            (std::vector<StagePlacement>{{0, 0, 1}, {1, 1, 2}, {1, 2, 3}, {0, 3, 4}}));
  EXPECT_EQ(v.pipelines[0].microbatches(), 1);
  for (const char* text : {"0F0,0B0\n0F1,0B1\n", "0F0,0B0\n2F0,2B0\n", "0B0\n"})
    EXPECT_THROW(infer_layout(parse_plan(text, "x.csv"), "x.csv"), Error) << text;
}

}  // namespace
}  // namespace concertina
