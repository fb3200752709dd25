// The text form of plans: exact round trips, and errors that say what is wrong and where.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "parallel/plan/schedule.h"
#include "tests/errors.h"

namespace concertina {
namespace {

Action random_action() {
  const auto kind = static_cast<Kind>(*rc::gen::inRange(0, 10));
  if (kind == Kind::STEP) return {kind, 0, -1};
  const int stage = *rc::gen::inRange(0, 1000);
  return {kind, stage, kind == Kind::REDUCE ? -1 : *rc::gen::inRange(0, 100000)};
}

/// Appends one action, or a pair.
void append_random(std::vector<Action>& row) {
  const Action action = random_action();
  row.push_back(action);
  if (action.kind != Kind::F || !*rc::gen::arbitrary<bool>()) return;
  row.back().overlapped = true;
  const Kind kind = *rc::gen::element(Kind::B, Kind::I);
  row.push_back({kind, *rc::gen::inRange(0, 1000), *rc::gen::inRange(0, 1000)});
}

TEST(ScheduleText, RoundTripsExactly) {
  EXPECT_TRUE(rc::check([] {
    Plan plan;
    plan.rows.resize(*rc::gen::inRange(1, 6));
    for (std::vector<Action>& row : plan.rows)
      for (int left = *rc::gen::inRange(1, 8); left > 0; --left) append_random(row);
    const std::string text = to_text(plan);
    RC_ASSERT(parse_plan(text, "text") == plan);
    RC_ASSERT(to_text(parse_plan(text, "text")) == text);
  }));
}

TEST(ScheduleText, IdleCellsAndWhatOnlyPyTorchHasAreSkipped) {
  EXPECT_EQ(to_text(parse_plan(
                "0UNSHARD,,0F0,0WAIT_SEND_F3\n,1F0,17RESHARD,1WAIT_REDUCE_GRAD,1B0\n", "text")),
            "0F0\n1F0,1B0\n");
}

TEST(ScheduleText, NamesRowColumnAndToken) {
  const std::pair<std::string, std::vector<std::string>> cases[] = {
      {"stage number", {"F0", "-1F0"}},
      {"unknown kind 'X'", {"0X0"}},
      {"microbatch number", {"0F", "0F1x", "0WAIT_SEND_F"}},
      {"unknown kind 'STEP'", {"0STEP"}},
      {"no microbatch", {"0REDUCE_GRAD1", "0UNSHARD1"}},
      {"unknown kind 'f'", {"0f0"}},
      {"exceeds the maximum", {"0F9999999999", "1000000000F0"}},
      {"unknown kind", {"0OVERLAP_F_B"}},
      {"must end with", {"(0F0;1B0)", "(0F0;1B0OVERLAP_F_B", "(0F0;1B0)OVERLAP"}},
      {"followed by a B",
       {"()OVERLAP_F_B", "(0F0;)OVERLAP_F_B", "(0F0)OVERLAP_F_B", "(1B0;0F0)OVERLAP_F_B",
        "(0F0;1W0)OVERLAP_F_B", "(0F0;1F1)OVERLAP_F_B"}},
      {"followed by",
       {"(0F0;1RESHARD)OVERLAP_F_B", "(0F0;1B1;2B2)OVERLAP_F_B", "(0F0;1B1;0UNSHARD)OVERLAP_F_B"}}};
  for (const auto& [why, tokens] : cases)
    for (const std::string& token : tokens) {
      SCOPED_TRACE(token);
      const Error error =
          input_error([&] { parse_plan("0F0,0B0\n1F0," + token + ",1B0\n", "plan.csv"); });
      expect_has(error.message(), "'" + token + "'");
      expect_has(error.message(), why);
      EXPECT_EQ(error.where(), "plan.csv:2:2 (row:column)");
      expect_has(error.fix(), "RECV_B");
    }
}

TEST(ScheduleText, BlankLinesAreNoRanks) {
  const std::string rows = "0F0,0B0\n1F0,1B0\n";
  for (const char* tail : {"", "\n", "\n\n", " \t\r\n", "\r\n\r\n"})
    EXPECT_EQ(parse_plan(rows + tail, "plan.csv"), parse_plan(rows, "plan.csv"));
  for (const char* blank : {"\n", " \r\n"}) {
    const Error error = input_error(
        [&] { parse_plan(std::string("0F0,0B0\n") + blank + "1F0,1B0\n", "plan.csv"); });
    EXPECT_EQ(error.where(), "plan.csv:2");
  }
}

TEST(ScheduleText, RefusesNothingAtAll) {
  for (const char* text : {"", "\n", " , ,\n\n", "0UNSHARD\n"})
    EXPECT_THROW(parse_plan(text, "plan.csv"), Error);
}

TEST(ScheduleText, MessagesHoldAsMuchOfAToken) {
  for (const std::string& token : {std::string(1 << 20, 'x'), "0" + std::string(1 << 20, 'X')}) {
    const Error error = input_error([&] { parse_plan("0F0," + token, "plan.csv"); });
    EXPECT_LT(error.message().size(), 300U);
    expect_has(error.message(), fmt::format("({} bytes)", token.size()));
  }
}

}  // namespace
}  // namespace concertina
