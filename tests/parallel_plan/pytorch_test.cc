// Schedules written by PyTorch (pytorch/make_schedules.py): every action is kept, and they run here
// too.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <utility>

#include "core/error.h"
#include "parallel/generate/passes.h"
#include "parallel/plan/infer_layout.h"
#include "parallel/plan/schedule.h"
#include "parallel/simulate/simulate.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

std::map<std::string, std::string> files() {
  std::map<std::string, std::string> texts;
  for (const fs::directory_entry& entry : fs::directory_iterator(CONCERTINA_PYTORCH)) {
    if (entry.path().extension() != ".csv") continue;
    std::ostringstream text;
    text << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    texts[entry.path().filename()] = text.str();
  }
  return texts;
}

TEST(PyTorch, WroteFilesOfBothFormats) {
  int compute = 0, comms = 0, overlapped = 0, notes = 0;
  for (const auto& [name, text] : files()) {
    (name.find(".comms.") == std::string::npos ? compute : comms) += 1;
    overlapped += text.find("OVERLAP_F_B") != std::string::npos;
    notes += text.find("RESHARD") != std::string::npos;
  }
  EXPECT_GE(compute, 10);
  EXPECT_GE(comms, 10);
  EXPECT_GE(overlapped, 4);
  EXPECT_EQ(notes, comms);
}

/// Returns the text without idle cells and actions that are ignored here.
std::string actions_of(const std::string& text) {
  std::string actions;
  std::istringstream lines(text);
  for (std::string line, token; std::getline(lines, line); actions += '\n') {
    std::istringstream tokens(line);
    for (bool first = true; std::getline(tokens, token, ',');)
      if (!token.empty() && token.find("SHARD") == std::string::npos &&
          token.find("WAIT_") == std::string::npos)
        actions += (std::exchange(first, false) ? "" : ",") + token;
  }
  return actions;
}

TEST(PyTorch, ReadsBackActionForAction) {
  for (auto [name, text] : files()) {
    SCOPED_TRACE(name);
    std::erase(text, '\r');
    EXPECT_EQ(to_text(parse_plan(text, name)), actions_of(text));
  }
}

/// Returns what is wrong with a file that must be rejected, or nothing.
std::string fault_of(const std::string& name) {
  // In PyTorch 2.15.0, the last rank's order counts its forwards from 1.
  if (name == "1f1b-p3-m5.compute.csv") return "rank 2 action 8 2F5 is superfluous";
  return "";
}

TEST(PyTorch, SchedulesRunHere) {
  for (const auto& [name, text] : files()) {
    SCOPED_TRACE(name);
    const Plan plan = parse_plan(text, name);
    try {
      const Layout layout = infer_layout(plan, name);
      const Plan all = run_passes({plan, "", name}, layout);
      EXPECT_EQ(fault_of(name), "");
      EXPECT_FALSE(check(all, layout));
      EXPECT_GT(simulate(all, layout, unit_costs(layout)).makespan, 0);
    } catch (const Error& error) {
      ASSERT_NE(fault_of(name), "") << error.message();
      EXPECT_TRUE(error.message().starts_with(fault_of(name))) << error.message();
      EXPECT_EQ(error.where(), name);
    }
  }
}

TEST(PyTorch, FilesWithTransfersKeepTheirOrder) {
  for (const auto& [name, text] : files()) {
    if (name.find(".comms.") == std::string::npos) continue;
    SCOPED_TRACE(name);
    const auto shared = [](Plan plan) {
      for (auto& row : plan.rows)
        std::erase_if(row, [](const Action& action) {
          return action.kind == Kind::REDUCE || action.kind == Kind::STEP;
        });
      return plan;
    };
    const Plan plan = parse_plan(text, name);
    const Plan all = run_passes({plan, "", name}, infer_layout(plan, name));
    EXPECT_EQ(shared(all), shared(plan));
    EXPECT_NE(all, plan);
  }
}

}  // namespace
}  // namespace concertina
