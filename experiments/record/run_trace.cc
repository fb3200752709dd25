#include "experiments/record/run_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace concertina {

int stage_in_pipeline(const Layout& layout, int stage) {
  return stage - layout.first_stage(layout.pipeline_of(stage));
}

std::vector<int> replicas_of(const Layout& layout) {
  std::vector<std::set<int>> seen;
  std::vector<int> replicas;
  for (const Pipeline& pipeline : layout.pipelines) {
    std::set<int> ranks;
    for (const StagePlacement& stage : pipeline.stages) ranks.insert(stage.rank);
    const auto at = std::ranges::find(seen, ranks);
    replicas.push_back(static_cast<int>(at - seen.begin()));
    if (at == seen.end()) seen.push_back(std::move(ranks));
  }
  return replicas;
}

std::string kind_name(Kind kind) {
  constexpr const char* kNames[] = {"F",      "I",      "W",      "B",      "SEND_F",
                                    "RECV_F", "SEND_B", "RECV_B", "REDUCE", "STEP"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(Kind::STEP) + 1);
  return kNames[static_cast<std::size_t>(kind)];
}

std::string title(const Action& action, const Layout& layout) {
  if (action.kind == Kind::STEP) return "optimizer";
  const int stage = stage_in_pipeline(layout, action.stage);
  if (action.kind == Kind::REDUCE) return fmt::format("reduce stage {}", stage);
  return fmt::format("{} {} stage {}", kind_name(action.kind), action.microbatch, stage);
}

}  // namespace concertina
